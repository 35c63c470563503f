"""Read an agent's output and report, and classify the end of its run. Pure."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import chain
from typing import Annotated, assert_never

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    StrictFloat,
    StrictInt,
    StrictStr,
    TypeAdapter,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)

from mulligan.agents.prices import cost_of, price_of
from mulligan.agents.wordings import Cause, LastWords, cause_of
from mulligan.config.adapters import Adapter, Fact, Meaning, Rule
from mulligan.config.operator import AgentSettings
from mulligan.config.settings import Price, format_duration
from mulligan.domain.attempt import AgentReport, Fault, ReportedStatus, TimeLimit, signal_of
from mulligan.domain.learning import learnable
from mulligan.domain.outcome import Outcome
from mulligan.domain.patterns import expression
from mulligan.domain.result import AgentFacts, RestKind
from mulligan.text.escape import one_line, visible

LINE_CHARS = 200

SUMMARY_CHARS = 2000

# Read the output of an agent as it comes, by the rules of its adapter.

MAX_LINE_BYTES = 8 * 1024 * 1024
"""Longer lines are skipped, so that an agent that prints a file cannot fill the memory."""

MAX_REFUSED = 50
"""Limit of refused tools to name."""

MAX_SEEN = 10_000
"""Limit of lines to remember for `Rule.once`; an agent repeats a line soon, or not at all."""

EMPTY_VALUES: tuple[JsonValue, ...] = (None, "", [], {})

Line = Mapping[str, JsonValue]


@dataclass
class StreamFacts:
    """The facts read from an agent's output so far."""

    texts: dict[Fact, str] = field(default_factory=dict[Fact, str])
    numbers: dict[Fact, float] = field(default_factory=dict[Fact, float])
    refused: list[str] = field(default_factory=list[str])
    ended: Meaning | None = None
    waiting: bool = False

    def count(self, fact: Fact) -> int | None:
        """Return a count, rounded; None if the output did not report it."""
        number = self.numbers.get(fact)
        return None if number is None else round(number)

    @property
    def status(self) -> int | None:
        """Return the last HTTP error status that the model's service reported."""
        found = STATUS.search(self.texts.get(Fact.STATUS, ""))
        return int(found[1]) if found else None


class Reader:
    """Reads an agent's output in chunks of any size; `facts` holds the results so far."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self.facts = StreamFacts()
        self._rules = rules
        self._rest = bytearray()
        self._seen = dict[tuple[int, str], None]()

    def feed(self, chunk: bytes) -> None:
        """Read a chunk; keep an incomplete last line for the next call."""
        self._rest += chunk
        *lines, rest = bytes(self._rest).split(b"\n") if b"\n" in chunk else [bytes(self._rest)]
        self._rest = bytearray(rest if len(rest) <= MAX_LINE_BYTES else b"")
        for line in lines:
            self._read(line)

    def close(self) -> StreamFacts:
        """Read the last line, which may lack a newline; return all facts."""
        self._read(bytes(self._rest))
        self._rest.clear()
        return self.facts

    def read_record(self, content: bytes) -> None:
        """Read a file's content, one JSON object, as if it were one line of output."""
        if line := json_object(content):
            self._apply(line, "")

    def _read(self, line: bytes) -> None:
        if line.strip():
            found = json_object(line)
            self._apply(found, line.decode(errors="replace") if found is None else "")

    def _apply(self, line: Line | None, text: str) -> None:
        for number, rule in enumerate(self._rules):
            fitting = _fit(rule, line, text)
            if fitting is not None and self._is_new(number, rule, fitting):
                _apply_rule(self.facts, rule, fitting)

    def _is_new(self, number: int, rule: Rule, line: Line) -> bool:
        if not rule.once:
            return True
        identity = (number, " ".join(map(str, values(line, rule.once))))
        if identity in self._seen:
            return False
        self._seen[identity] = None
        if len(self._seen) > MAX_SEEN:
            del self._seen[next(iter(self._seen))]
        return True


def _fit(rule: Rule, line: Line | None, text: str) -> Line | None:
    """Return the input of a rule: the JSON line, or the groups matched in a line of text."""
    if rule.line:
        found = expression(rule.line).search(text) if line is None else None
        return found.groupdict() if found else None
    if line is None or not (rule.where or rule.matching):
        return None
    fits = all(_is_one_of([*values(line, path)], wanted) for path, wanted in rule.where.items())
    matches = all(
        any(expression(pattern).search(text) for text in _texts(values(line, path)))
        for path, pattern in rule.matching.items()
    )
    return line if fits and matches else None


def _is_one_of(found: Sequence[JsonValue], wanted: JsonValue) -> bool:
    if wanted is None:
        return all(value in EMPTY_VALUES for value in found)
    allowed = wanted if isinstance(wanted, list) else [wanted]
    return any(value in allowed for value in found)


def _apply_rule(facts: StreamFacts, rule: Rule, line: Line) -> None:
    for fact, paths in rule.take.items():
        _take(facts, fact, [[*values(line, path)] for path in paths])
    for fact, paths in rule.add.items():
        known = _numbers(value for path in paths for value in values(line, path))
        if known:
            facts.numbers[fact] = facts.numbers.get(fact, 0) + sum(known)
    for fact, text in rule.put.items():
        _take(facts, fact, [[text]])
    if rule.means:
        _apply_meaning(facts, rule.means)


def _apply_meaning(facts: StreamFacts, meaning: Meaning) -> None:
    match meaning:
        case Meaning.WAITING:
            facts.waiting = True
        case Meaning.PROGRESS:
            facts.waiting = False
            for fact in (Fact.STATUS, Fact.MESSAGE):
                facts.texts.pop(fact, None)
        case Meaning.REFUSED:
            facts.refused = facts.refused or ["a tool"]
        case Meaning.RESULT | Meaning.FAILED | Meaning.CRASHED | Meaning.LIMIT:
            facts.ended = meaning
        case _:
            assert_never(meaning)


NUMBERS = frozenset({Fact.TURNS, Fact.INPUT, Fact.CACHED, Fact.OUTPUT, Fact.COST})


def _take(facts: StreamFacts, fact: Fact, found: Sequence[Sequence[JsonValue]]) -> None:
    """Store what was found at each path: the sum of numbers, or the last of several texts."""
    if fact in NUMBERS:
        if known := _numbers(value for values in found for value in values):
            facts.numbers[fact] = sum(known)
        return
    texts = [_texts(values) for values in found]
    if fact is Fact.REFUSED:
        new = [text for text in dict.fromkeys(chain(*texts)) if text not in facts.refused]
        facts.refused += new[: MAX_REFUSED - len(facts.refused)]
    elif any(texts):
        facts.texts[fact] = " ".join(each[-1] for each in texts if each)


def _numbers(found: Iterable[JsonValue]) -> list[float]:
    return [number for value in found if (number := number_in(value)) is not None]


def _texts(found: Iterable[JsonValue]) -> list[str]:
    return [_text(value) for value in found if value not in EMPTY_VALUES]


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def values(line: JsonValue | Line, path: str) -> Iterator[JsonValue]:
    """Yield the values at a dotted path.

    `*` matches each element of a list or an object; `key=value` matches each object of a list
    whose `key` has that value.
    """
    if not path:
        yield line if not isinstance(line, Mapping) else dict(line)
        return
    first, _, rest = path.partition(".")
    inside: Sequence[JsonValue] = ()
    if isinstance(line, Mapping):
        inside = [*line.values()] if first == "*" else [line[first]] if first in line else []
    elif isinstance(line, list):
        inside = [each for each in line if first == "*" or _has(each, first)]
    for each in inside:
        yield from values(each, rest)


def _has(element: JsonValue, wanted: str) -> bool:
    key, is_asked, value = wanted.partition("=")
    return bool(is_asked) and isinstance(element, dict) and element.get(key) == value


NUMBER = re.compile(r"\$?([0-9][0-9,]*(?:\.[0-9]+)?)\s*([kKmM]?)")

UNITS = {"k": 1_000, "m": 1_000_000}

MAX_NUMBER = 2.0**53


def number_in(value: JsonValue) -> float | None:
    """Parse a number or a text like `1.2k`; None if it is no number, negative or too large."""
    if isinstance(value, str) and (found := NUMBER.fullmatch(value.strip())):
        value = float(found[1].replace(",", "")) * UNITS.get(found[2].lower(), 1)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value <= MAX_NUMBER else None


STATUS = re.compile(r"(?<![0-9])(?<![0-9][.:])([45][0-9]{2})(?![0-9])")

JSON_OBJECT = TypeAdapter(dict[str, JsonValue])


def json_object(line: bytes) -> dict[str, JsonValue] | None:
    """Parse a line that is a JSON object; None for any other."""
    if not line.lstrip().startswith(b"{"):
        return None
    try:
        return JSON_OBJECT.validate_json(line)
    except ValidationError:
        return None


# Judge a run by the facts of its output.

WORDS_CHARS = 300

TEXTS: Mapping[str, Fact] = {
    "version": Fact.VERSION,
    "model": Fact.MODEL,
    "session_id": Fact.SESSION,
}


def facts_from_stream(
    facts: StreamFacts,
    settings: AgentSettings,
    prices: Mapping[str, Price],
    exit_code: int | None = None,
    stopped_by: TimeLimit | None = None,
) -> AgentFacts:
    """Build the facts of a run; a limit that stopped it replaces the agent's stop reason.

    If the output does not name the model, use the configured one.
    """
    known = {Fact.MODEL: settings.model} if settings.model else dict[Fact, str]()
    known |= facts.texts
    texts = {
        name: one_line(known[fact], WORDS_CHARS) for name, fact in TEXTS.items() if fact in known
    }
    stop = facts.texts.get(Fact.STOP)
    if stopped_by and stopped_by is not TimeLimit.OWN_LIMIT:
        stop = stopped_by.value
    return AgentFacts(
        kind=settings.kind,
        exit_code=exit_code,
        turns=facts.count(Fact.TURNS),
        input_tokens=facts.count(Fact.INPUT),
        cached_tokens=facts.count(Fact.CACHED),
        output_tokens=facts.count(Fact.OUTPUT),
        cost_usd=cost_from_stream(facts, settings.model, prices),
        stop_reason=one_line(stop, WORDS_CHARS) if stop else None,
        last_activity=one_line(facts.texts.get(Fact.ACTIVITY, ""), WORDS_CHARS) or None,
        api_status=facts.status,
        refused=tuple(facts.refused),
        refused_hosts=(),
        version=texts.get("version"),
        model=texts.get("model"),
        session_id=texts.get("session_id"),
    )


def cost_from_stream(facts: StreamFacts, model: str, prices: Mapping[str, Price]) -> float | None:
    """Return the cost in USD: as reported, else tokens times price; None if both are unknown.

    What a run reported before its end may be too low, so the higher one counts then.
    """
    reported = facts.numbers.get(Fact.COST)
    price = price_of(facts.texts.get(Fact.MODEL, model), prices)
    is_final = reported is not None and facts.ended is not None
    if price and not is_final and facts.numbers.keys() & {Fact.INPUT, Fact.OUTPUT}:
        tokens = [facts.count(fact) or 0 for fact in (Fact.INPUT, Fact.CACHED, Fact.OUTPUT)]
        reported = max(reported or 0.0, cost_of(price, *tokens))
    return None if reported is None else round(reported, 6)


DENIED = frozenset({401, 402, 403})

NOT_FOUND = 404

LIMITED = 429

TRANSIENT_STATUSES = frozenset({408, 409, LIMITED})

SERVER_ERROR = 500

OVERLOADED = 529
"""Anthropic's status while its service is overloaded."""


def service_fault(facts: StreamFacts) -> Fault | None:
    """Explain the service error that ended a run; None if none did, or for other 4xx statuses."""
    waits = facts.waiting and facts.ended in {None, Meaning.CRASHED}
    if facts.ended is not Meaning.FAILED and not waits:
        return None
    message, status = facts.texts.get(Fact.MESSAGE, ""), facts.status
    found = cause_of(LastWords((message,)))
    cause = cause_of_status(status) or (found[0] if found else None)
    if status == LIMITED and found:
        # OpenAI and Google answer 429 if the credit is used up, too.
        cause = found[0]
    words = one_line(message, WORDS_CHARS).rstrip(".")
    reason = f"{words}{f' (HTTP {status})' if status else ''}".strip() or "it gave no answer"
    if cause:
        return blame(cause, reason)
    if status is None or status in TRANSIENT_STATUSES or status >= SERVER_ERROR:
        return Fault(Outcome.INFRASTRUCTURE, f"The model's service failed: {reason}.")
    return None


def cause_of_status(status: int | None) -> Cause | None:
    """Return what an HTTP status of the model's service means for every run of the agent."""
    if status in DENIED:
        return Cause.REFUSED
    if status == NOT_FOUND:
        return Cause.NO_MODEL
    if status == OVERLOADED:
        return Cause.OVERLOADED
    return Cause.LIMITED if status == LIMITED else None


def blame(cause: Cause, reason: str) -> Fault:
    """Build the fault of a cause; `reason` is the service's or the agent's own words."""
    match cause:
        case Cause.REFUSED:
            message = (
                f"The model's service refused: {reason}; check the agent's key and its credit."
            )
            return Fault(Outcome.DENIED, message, rest=RestKind.REFUSED)
        case Cause.NO_MODEL:
            fix = "fix agent.model, or the model's address"
            message = f"The model was not found: {reason}; {fix}."
            return Fault(Outcome.MISCONFIGURED, message, rest=RestKind.REFUSED)
        case Cause.LIMITED:
            message = f"The agent's account has reached a limit: {reason}."
            return Fault(Outcome.INFRASTRUCTURE, message, rest=RestKind.LIMITED)
        case Cause.UNREACHABLE:
            message = f"The model's service could not be reached: {reason}."
            return Fault(Outcome.INFRASTRUCTURE, message, rest=RestKind.UNREACHABLE)
        case Cause.OVERLOADED:
            message = f"The model's service is overloaded: {reason}."
            return Fault(Outcome.INFRASTRUCTURE, message, rest=RestKind.LIMITED)
        case Cause.NEEDS_A_PERSON:
            message = f"The agent needs a person: {reason}; start it by hand and do what it asks."
            return Fault(Outcome.MISCONFIGURED, message, rest=RestKind.REFUSED)
        case Cause.DISK_FULL:
            message = f"The agent had no room on its disk: {reason}; free some disk space."
            return Fault(Outcome.INFRASTRUCTURE, message)
        case Cause.NOT_STARTED:
            message = f"The agent's program cannot be started: {reason}; install what it needs."
            return Fault(Outcome.MISCONFIGURED, message, rest=RestKind.NOT_STARTED)
        case _:
            assert_never(cause)


def fault_of_run(facts: StreamFacts, words: LastWords | None) -> Fault | None:
    """Explain a run by the service error that ended it, else by the `words` of a failed run.

    The words count only if no structured fact blames the agent's account (OUTCOME-2).
    """
    fault = service_fault(facts)
    found = cause_of(words) if words and not (fault and fault.rest) else None
    return blame(found[0], one_line(found[1], WORDS_CHARS).rstrip(".")) if found else fault


def silent_service(silence: timedelta, least: timedelta) -> Fault | None:
    """Blame the service for a run that a time limit stopped, if it had been silent for `least`."""
    if silence < least:
        return None
    lasted = format_duration(timedelta(seconds=round(silence.total_seconds())))
    return Fault(
        Outcome.INFRASTRUCTURE,
        f"The model's service was asked, and sent nothing for {lasted}, until the time limit.",
    )


def refusing_service(status: int, unreachable: str = "") -> Fault:
    """Blame the service for a run that failed after the service's last answer had this status.

    `unreachable` says why no answer arrived, if a person must fix that.
    """
    if cause := cause_of_status(status):
        return blame(cause, f"its last answer was HTTP {status}")
    if unreachable:
        message = f"The model's service could not be reached: {unreachable}."
        return Fault(Outcome.MISCONFIGURED, message, rest=RestKind.UNREACHABLE)
    reason = f"its last answer was HTTP {status}" if status else "it could not be reached"
    rest = None if status else RestKind.UNREACHABLE
    return Fault(Outcome.INFRASTRUCTURE, f"The model's service failed: {reason}.", rest=rest)


NAMED_TOOLS = 5


def refusal(facts: StreamFacts, adapter: Adapter) -> str:
    """Name the refused tools and the fix, for the user; "" if no tool was refused."""
    if not facts.refused:
        return ""
    named = ", ".join(one_line(tool, WORDS_CHARS) for tool in facts.refused[:NAMED_TOOLS])
    return f"The agent was refused {named}; {adapter.fix or 'allow it in its settings'}."


def is_cut_off(facts: StreamFacts, adapter: Adapter, exit_code: int | None) -> bool:
    """Return whether the record is missing that this agent prints at the end of a complete run.

    A record of an error of its own is none. An agent that prints no records was cut off if a
    signal killed it.
    """
    is_missing = adapter.needs_result and facts.ended in {None, Meaning.FAILED}
    is_killed = facts.ended is None and signal_of(exit_code) is not None
    return is_missing or is_killed or facts.ended is Meaning.CRASHED


def reported_error(facts: StreamFacts) -> str:
    """Return the error that the agent reported as its own; "" for none."""
    if facts.ended is not Meaning.CRASHED:
        return ""
    named = facts.texts.get(Fact.MESSAGE) or facts.texts.get(Fact.STOP)
    return one_line(named or "without a reason", WORDS_CHARS)


# Read the last words of a run.

MAX_LINES = 30
"""Lines at the end of the output to read: a stack trace may follow the error."""

MAX_PROSE_LINES = 3
"""The same where the model may have written them."""


def last_words(tail: bytes, adapter: Adapter) -> LastWords:
    """Find the last words in the end of an output.

    Where an agent prints its messages as JSON, other lines are the program's, never the model's.
    """
    printed = list[str]()
    for line in reversed(tail.splitlines()):
        if json_object(line) is None:
            text = visible(line.decode(errors="replace")).strip()
            printed += [text] if text else []
        elif (message := _message(line, adapter)) is not None:
            if printed or not message.strip():
                break
            return LastWords(_first(message.splitlines(), MAX_PROSE_LINES), is_prose=True)
        if len(printed) == MAX_LINES:
            break
    is_prose = not _prints_json(adapter)
    most = MAX_PROSE_LINES if is_prose else MAX_LINES
    return LastWords(tuple(reversed(printed[:most])), is_prose)


def _message(line: bytes, adapter: Adapter) -> str | None:
    """Return the message in a line of JSON; "" for a tool use, None for any other line."""
    reader = Reader(adapter.reads)
    reader.feed(line)
    texts = reader.close().texts
    if Fact.SAID in texts or Fact.MESSAGE in texts:
        return texts.get(Fact.MESSAGE) or texts.get(Fact.SAID, "")
    return "" if Fact.ACTIVITY in texts else None


def _first(lines: Sequence[str], most: int) -> tuple[str, ...]:
    found = (visible(line).strip() for line in lines)
    return tuple(line for line in found if line)[:most]


def _prints_json(adapter: Adapter) -> bool:
    return not adapter.record and any(rule.where or rule.matching for rule in adapter.reads)


# Read the end of the output of an agent without rules.


def _or_none(value: object, validate: ValidatorFunctionWrapHandler) -> object:
    try:
        return validate(value)
    except ValidationError:
        return None


Tolerant = WrapValidator(_or_none)

Count = Annotated[Annotated[StrictInt, Field(ge=0, lt=2**63)] | None, Tolerant]

Amount = Annotated[Annotated[StrictFloat, Field(ge=0, allow_inf_nan=False)] | None, Tolerant]

Text = Annotated[StrictStr | None, Tolerant]


class Usage(BaseModel):
    """The usage record in an agent's last JSON line; a value of the wrong type becomes None."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    input_tokens: Count = None
    output_tokens: Count = None
    cost_usd: Amount = None
    turns: Count = None
    version: Text = None
    model: Text = None
    session_id: Text = None
    stop_reason: Text = None
    result: Text = None
    summary: Text = None


@dataclass(frozen=True, slots=True)
class ClosingOutput:
    """The content at the end of an agent's output."""

    usage: Usage
    summary: str
    last_activity: str | None
    question: str = ""


USAGE_LINES = 20
"""Number of last lines to search for a usage record; warnings may follow it."""


def read_output(tail: bytes) -> ClosingOutput:
    """Read the usage record, the closing text and the last line from the end of the output."""
    lines = [line for line in tail.splitlines() if line.strip()]
    usage = Usage()
    for position in range(len(lines) - 1, max(len(lines) - 1 - USAGE_LINES, -1), -1):
        record = json_object(lines[position])
        if record and Usage.model_fields.keys() & record.keys():
            usage = Usage.model_validate(record)
            del lines[position]
            break
    summary = _shortened(usage.result or usage.summary or "", SUMMARY_CHARS) or _closing_text(lines)
    return ClosingOutput(usage, summary, _last_line(lines), closing_question(summary))


def _closing_text(lines: Sequence[bytes]) -> str:
    """Join the last lines that are not JSON, up to SUMMARY_CHARS."""
    kept, room = list[str](), SUMMARY_CHARS
    for line in _shown(line for line in reversed(lines) if json_object(line) is None):
        room -= len(line) + 1
        if kept and room < -1:
            break
        kept.append(line)
    return _shortened("\n".join(reversed(kept)), SUMMARY_CHARS)


def _last_line(lines: Sequence[bytes]) -> str | None:
    folded = (one_line(line, LINE_CHARS) for line in _shown(reversed(lines)))
    return next(folded, None)


def _shown(lines: Iterable[bytes]) -> Iterable[str]:
    """Decode lines without colours and invisible characters; drop empty ones."""
    texts = (visible(line.decode(errors="replace")).rstrip() for line in lines)
    return (text for text in texts if text.strip())


def facts_of(
    closing: ClosingOutput, kind: str, exit_code: int, stopped_by: TimeLimit | None
) -> AgentFacts:
    """Build the facts of a run; a limit that stopped it replaces the agent's stop reason."""
    usage = closing.usage
    return AgentFacts(
        kind=kind,
        version=_name(usage.version),
        model=_name(usage.model),
        session_id=_name(usage.session_id),
        exit_code=exit_code,
        turns=usage.turns,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cost_usd=usage.cost_usd,
        stop_reason=stopped_by.value if stopped_by else _name(usage.stop_reason),
        last_activity=closing.last_activity,
    )


def priced(facts: AgentFacts, model: str, prices: Mapping[str, Price]) -> AgentFacts:
    """Add the cost of the tokens if the agent reported none; `model` is the configured one."""
    price = price_of(facts.model or model, prices)
    tokens = [facts.input_tokens, facts.cached_tokens, facts.output_tokens]
    if facts.cost_usd is not None or price is None or tokens == [None] * 3:
        return facts
    cost = cost_of(price, *(count or 0 for count in tokens))
    return facts.model_copy(update={"cost_usd": round(cost, 6)})


def _name(text: str | None) -> str | None:
    return one_line(text or "", LINE_CHARS) or None


QUESTION_MARKS = ("?", "\uff1f", "\u061f")
"""Latin, Chinese and Japanese, Arabic."""

MARKUP = "*_`\"'\u201d\u2019\u00bb)] "

CHOICE = re.compile(r"(?:[-*+\u2022]|\(?[0-9A-Za-z]{1,2}[.):])\s")

SENTENCE_END = re.compile(r"(?<=[.!?])\s+")


def closing_question(text: str) -> str:
    """Return the question that ends a text, before a final list of choices; else ""."""
    for line in filter(None, map(str.strip, reversed(text.splitlines()))):
        if line.rstrip(MARKUP).endswith(QUESTION_MARKS):
            return one_line(SENTENCE_END.split(line)[-1].strip("*_ "), LINE_CHARS)
        if not CHOICE.match(line):
            break
    return ""


# Read the report that an agent may write to $MULLIGAN_REPORT.

REASON_CHARS = 2000

EVIDENCE_CHARS = 4000

LONGEST_TITLE = 300
"""A longer proposal is no title."""


def _status(value: object) -> object:
    return value.strip().lower().replace("-", "_") if isinstance(value, str) else value


def _evidence(value: object) -> object:
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False)


class _Report(BaseModel):
    """The content of `$MULLIGAN_REPORT`; accepts `BLOCKED` in capitals and evidence as a list."""

    status: Annotated[ReportedStatus, BeforeValidator(_status)]
    reason: Annotated[str, Field(min_length=1)]
    evidence: Annotated[str, BeforeValidator(_evidence)] = ""


def read_learned(content: bytes) -> tuple[str, ...]:
    """Read the facts noted in `$MULLIGAN_REPORT`; skip anything else (LEARNING-1)."""
    noted = (json_object(content) or {}).get("learned")
    return learnable(noted if isinstance(noted, list) else ())


def read_title(content: bytes) -> str:
    """Read the title that `$MULLIGAN_REPORT` proposes for the change; "" without one (PR-11)."""
    proposed = (json_object(content) or {}).get("title")
    is_short = isinstance(proposed, str) and len(proposed) <= LONGEST_TITLE
    return proposed if isinstance(proposed, str) and is_short else ""


def read_report(content: bytes) -> AgentReport | None:
    """Parse the content of `$MULLIGAN_REPORT`; ValueError with a short reason if it is invalid.

    Return None if the file only notes facts, or proposes a title.
    """
    record = json_object(content) or {}
    if record.keys() & {"learned", "title"} and not record.keys() & {"status", "reason"}:
        return None
    try:
        report = _Report.model_validate_json(content)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "it"
        raise ValueError(f"{where}: {one_line(first['msg'], LINE_CHARS)}") from error
    return AgentReport(
        status=report.status,
        reason=_shortened(report.reason, REASON_CHARS),
        evidence=_shortened(report.evidence, EVIDENCE_CHARS),
    )


def shortened(text: str) -> str:
    """Cut an agent's closing text to the length for a pull request (SUMMARY_CHARS)."""
    return _shortened(text, SUMMARY_CHARS)


def _shortened(text: str, most: int) -> str:
    shown = visible(text).strip()
    return shown if len(shown) <= most else f"{shown[: most - 1].rstrip()}…"
