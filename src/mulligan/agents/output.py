"""Read what an agent prints and reports, and judge how its run ended. Pure."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
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
from mulligan.config.adapters import Adapter, Fact, Meaning, Rule
from mulligan.config.operator import AgentSettings
from mulligan.config.settings import Price
from mulligan.domain.attempt import AgentReport, Fault, ReportedStatus, TimeLimit
from mulligan.domain.outcome import Outcome
from mulligan.domain.result import AgentFacts
from mulligan.text.escape import one_line, visible

LINE_CHARS = 200

SUMMARY_CHARS = 2000

# Read the output of an agent as it comes, by the rules of its adapter.

MAX_LINE_BYTES = 8 * 1024 * 1024
"""A longer line is passed over: an agent that prints a file must not fill the memory."""

EMPTY_VALUES: tuple[JsonValue, ...] = (None, "", [], {})

Line = Mapping[str, JsonValue]


@dataclass
class StreamFacts:
    """What an agent's output has told so far."""

    texts: dict[Fact, str] = field(default_factory=dict[Fact, str])
    numbers: dict[Fact, float] = field(default_factory=dict[Fact, float])
    refused: list[str] = field(default_factory=list[str])
    ended: Meaning | None = None
    waiting: bool = False

    def count(self, fact: Fact) -> int | None:
        """Give a number that counts things; None where it was not told."""
        number = self.numbers.get(fact)
        return None if number is None else round(number)

    @property
    def status(self) -> int | None:
        """Give the HTTP status with which the model's service refused last."""
        found = STATUS.search(self.texts.get(Fact.STATUS, ""))
        return int(found[1]) if found else None


class Reader:
    """Is fed with an agent's output in chunks of any size; `heard` is what it told so far."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self.facts = StreamFacts()
        self._rules = rules
        self._rest = bytearray()
        self._seen = set[tuple[int, str]]()

    def feed(self, chunk: bytes) -> None:
        """Read what was printed; the last line waits for its end."""
        self._rest += chunk
        *lines, rest = bytes(self._rest).split(b"\n") if b"\n" in chunk else [bytes(self._rest)]
        self._rest = bytearray(rest if len(rest) <= MAX_LINE_BYTES else b"")
        for line in lines:
            self._read(line)

    def close(self) -> StreamFacts:
        """Read a last line that has no end."""
        self._read(bytes(self._rest))
        self._rest.clear()
        return self.facts

    def read_record(self, content: bytes) -> None:
        """Read a file that holds one JSON object, as if it were one line."""
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
        identity = (number, " ".join(map(str, values(line, rule.once))))
        if rule.once and identity in self._seen:
            return False
        self._seen.add(identity)
        return True


def _fit(rule: Rule, line: Line | None, text: str) -> Line | None:
    """Give what a rule reads in: the JSON line, or the groups found in a line of text."""
    if rule.line:
        found = re.search(rule.line, text) if line is None else None
        return found.groupdict() if found else None
    if line is None or not (rule.where or rule.matching):
        return None
    fits = all(_is_one_of([*values(line, path)], wanted) for path, wanted in rule.where.items())
    matches = all(
        any(re.search(pattern, _text(value)) for value in values(line, path))
        for path, pattern in rule.matching.items()
    )
    return line if fits and matches else None


def _is_one_of(found: Sequence[JsonValue], wanted: JsonValue) -> bool:
    if wanted is None:
        return all(value in EMPTY_VALUES for value in found)
    allowed = wanted if isinstance(wanted, list) else [wanted]
    return any(value in allowed for value in found)


def _apply_rule(heard: StreamFacts, rule: Rule, line: Line) -> None:
    for fact, paths in rule.take.items():
        _take(heard, fact, [[*values(line, path)] for path in paths])
    for fact, paths in rule.add.items():
        known = _numbers(value for path in paths for value in values(line, path))
        if known:
            heard.numbers[fact] = heard.numbers.get(fact, 0) + sum(known)
    for fact, text in rule.put.items():
        _take(heard, fact, [[text]])
    if rule.means:
        _apply_meaning(heard, rule.means)


def _apply_meaning(heard: StreamFacts, meaning: Meaning) -> None:
    match meaning:
        case Meaning.WAITING:
            heard.waiting = True
        case Meaning.PROGRESS:
            heard.waiting = False
            for fact in (Fact.STATUS, Fact.MESSAGE):
                heard.texts.pop(fact, None)
        case Meaning.REFUSED:
            heard.refused = heard.refused or ["a tool"]
        case Meaning.RESULT | Meaning.FAILED | Meaning.LIMIT:
            heard.ended = meaning
        case _:
            assert_never(meaning)


NUMBERS = frozenset({Fact.TURNS, Fact.INPUT, Fact.CACHED, Fact.OUTPUT, Fact.COST})


def _take(heard: StreamFacts, fact: Fact, found: Sequence[Sequence[JsonValue]]) -> None:
    """Take what was found at each path: numbers are added up, of several texts the last counts."""
    if fact in NUMBERS:
        if known := _numbers(value for values in found for value in values):
            heard.numbers[fact] = sum(known)
        return
    texts = [[_text(value) for value in values if value not in EMPTY_VALUES] for values in found]
    if fact is Fact.REFUSED:
        heard.refused = [*dict.fromkeys([*heard.refused, *chain(*texts)])]
    elif any(texts):
        heard.texts[fact] = " ".join(each[-1] for each in texts if each)


def _numbers(found: Iterable[JsonValue]) -> list[float]:
    return [number for value in found if (number := number_in(value)) is not None]


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def values(line: JsonValue | Line, path: str) -> Iterator[JsonValue]:
    """Give what is at a dotted path.

    `*` stands for each element of a list or an object, `key=value` for each that has that.
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
    """Read a number, written as one or as `1.2k`; None for what is none, or is not sensible."""
    if isinstance(value, str) and (found := NUMBER.fullmatch(value.strip())):
        value = float(found[1].replace(",", "")) * UNITS.get(found[2].lower(), 1)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value <= MAX_NUMBER else None


STATUS = re.compile(r"(?<![0-9])(?<![0-9][.:])([45][0-9]{2})(?![0-9])")

JSON_OBJECT = TypeAdapter(dict[str, JsonValue])


def json_object(line: bytes) -> dict[str, JsonValue] | None:
    """Read a line that is a JSON object; None for any other."""
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
    heard: StreamFacts,
    settings: AgentSettings,
    prices: Mapping[str, Price],
    exit_code: int | None = None,
    stopped_by: TimeLimit | None = None,
) -> AgentFacts:
    """Put the facts of a run together; a limit that stopped it goes before the agent's words.

    An agent that does not name its model has the one that it was given.
    """
    known = {Fact.MODEL: settings.model} if settings.model else dict[Fact, str]()
    known |= heard.texts
    texts = {
        name: one_line(known[fact], WORDS_CHARS) for name, fact in TEXTS.items() if fact in known
    }
    stop = heard.texts.get(Fact.STOP)
    if stopped_by and stopped_by is not TimeLimit.OWN_LIMIT:
        stop = stopped_by.value
    return AgentFacts(
        kind=settings.kind,
        exit_code=exit_code,
        turns=heard.count(Fact.TURNS),
        input_tokens=heard.count(Fact.INPUT),
        cached_tokens=heard.count(Fact.CACHED),
        output_tokens=heard.count(Fact.OUTPUT),
        cost_usd=cost_from_stream(heard, settings.model, prices),
        stop_reason=one_line(stop, WORDS_CHARS) if stop else None,
        last_activity=one_line(heard.texts.get(Fact.ACTIVITY, ""), WORDS_CHARS) or None,
        api_status=heard.status,
        refused=tuple(heard.refused),
        refused_hosts=(),
        version=texts.get("version"),
        model=texts.get("model"),
        session_id=texts.get("session_id"),
    )


def cost_from_stream(heard: StreamFacts, model: str, prices: Mapping[str, Price]) -> float | None:
    """Give the cost in USD as it was told, else by the model's price; None where neither is."""
    told = heard.numbers.get(Fact.COST)
    if told is not None or not heard.numbers.keys() & {Fact.INPUT, Fact.OUTPUT}:
        return None if told is None else round(told, 6)
    price = price_of(heard.texts.get(Fact.MODEL, model), prices)
    if price is None:
        return None
    tokens = [heard.count(fact) or 0 for fact in (Fact.INPUT, Fact.CACHED, Fact.OUTPUT)]
    return round(cost_of(price, *tokens), 6)


DENIED_WORDS = re.compile(
    r"credit balance|insufficient[_ ]quota|exceeded your current quota|plan and billing"
    r"|payment required|API key not valid|API_KEY_INVALID",
    re.IGNORECASE,
)
"""How Anthropic (400), OpenAI (429) and Google (400, 429) refuse a key, or what it may spend."""

DENIED = frozenset({401, 402, 403})

NOT_FOUND = 404

TRANSIENT_STATUSES = frozenset({408, 409, 429})

SERVER_ERROR = 500


def service_fault(facts: StreamFacts) -> Fault | None:
    """Say how the model's service ended a run; None where it did not, or it was its request."""
    if facts.ended is not Meaning.FAILED and not (facts.ended is None and facts.waiting):
        return None
    said, status = facts.texts.get(Fact.MESSAGE, ""), facts.status
    words = one_line(said, WORDS_CHARS).rstrip(".")
    told = f"{words}{f' (HTTP {status})' if status else ''}".strip() or "it gave no answer"
    if status in DENIED or DENIED_WORDS.search(said):
        fix = "see to the agent's key and its credit"
        return Fault(Outcome.DENIED, f"The model's service refused: {told}; {fix}.")
    if status == NOT_FOUND:
        fix = "mend agent.model, or the address that it is asked at"
        return Fault(Outcome.MISCONFIGURED, f"The model was not found: {told}; {fix}.")
    if status is None or status in TRANSIENT_STATUSES or status >= SERVER_ERROR:
        return Fault(Outcome.INFRASTRUCTURE, f"The model's service failed: {told}.")
    return None


NAMED_TOOLS = 5


def refusal(heard: StreamFacts, adapter: Adapter) -> str:
    """Say which tools were refused, and how that is mended; nothing where none was."""
    if not heard.refused:
        return ""
    named = ", ".join(one_line(tool, WORDS_CHARS) for tool in heard.refused[:NAMED_TOOLS])
    return f"The agent was refused {named}; {adapter.fix or 'allow it in its settings'}."


def is_cut_off(heard: StreamFacts, adapter: Adapter) -> bool:
    """Tell whether the record is missing with which this agent ends every run."""
    return adapter.needs_result and heard.ended is None


# Read the end of the output of an agent without rules.


def _or_nothing(value: object, validate: ValidatorFunctionWrapHandler) -> object:
    try:
        return validate(value)
    except ValidationError:
        return None


Tolerant = WrapValidator(_or_nothing)

Count = Annotated[Annotated[StrictInt, Field(ge=0, lt=2**63)] | None, Tolerant]

Amount = Annotated[Annotated[StrictFloat, Field(ge=0, allow_inf_nan=False)] | None, Tolerant]

Text = Annotated[StrictStr | None, Tolerant]


class Usage(BaseModel):
    """What an agent's last JSON line may say; a value of the wrong kind is left out."""

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
    """What the end of an agent's output tells."""

    usage: Usage
    summary: str
    last_activity: str | None
    question: str = ""


USAGE_LINES = 20
"""The last lines among which a usage record is looked for: warnings may follow it."""


def read_output(tail: bytes) -> ClosingOutput:
    """Read the end of an agent's output: its usage record, its closing words, its last line."""
    lines = [line for line in tail.splitlines() if line.strip()]
    usage = Usage()
    for position in range(len(lines) - 1, max(len(lines) - 1 - USAGE_LINES, -1), -1):
        record = json_object(lines[position])
        if record and Usage.model_fields.keys() & record.keys():
            usage = Usage.model_validate(record)
            del lines[position]
            break
    said = _shortened(usage.result or usage.summary or "", SUMMARY_CHARS) or _closing_words(lines)
    return ClosingOutput(usage, said, _last_line(lines), closing_question(said))


def _closing_words(lines: Sequence[bytes]) -> str:
    """Join the last lines that are written for people, as many as there is room for."""
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
    """Give the lines of which something is left without colours and invisible characters."""
    texts = (visible(line.decode(errors="replace")).rstrip() for line in lines)
    return (text for text in texts if text.strip())


def facts_of(
    said: ClosingOutput, kind: str, exit_code: int, stopped_by: TimeLimit | None
) -> AgentFacts:
    """Put the facts of a run together; a limit that stopped it goes before the agent's words."""
    usage = said.usage
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
        last_activity=said.last_activity,
    )


def _name(text: str | None) -> str | None:
    return one_line(text or "", LINE_CHARS) or None


QUESTION_MARKS = ("?", "\uff1f", "\u061f")
"""Latin, Chinese and Japanese, Arabic."""

MARKUP = "*_`\"'\u201d\u2019\u00bb)] "

CHOICE = re.compile(r"(?:[-*+\u2022]|\(?[0-9A-Za-z]{1,2}[.):])\s")

SENTENCE_END = re.compile(r"(?<=[.!?])\s+")


def closing_question(said: str) -> str:
    """Give the question that ends what an agent said, before its choices if it lists some."""
    for line in filter(None, map(str.strip, reversed(said.splitlines()))):
        if line.rstrip(MARKUP).endswith(QUESTION_MARKS):
            return one_line(SENTENCE_END.split(line)[-1].strip("*_ "), LINE_CHARS)
        if not CHOICE.match(line):
            break
    return ""


# Read the report that an agent may write to $MULLIGAN_REPORT.

REASON_CHARS = 2000

EVIDENCE_CHARS = 4000


def _status(value: object) -> object:
    return value.strip().lower().replace("-", "_") if isinstance(value, str) else value


def _words(value: object) -> object:
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False)


class _Report(BaseModel):
    """`$MULLIGAN_REPORT`, as agents write it: `BLOCKED` and evidence as a list will do."""

    status: Annotated[ReportedStatus, BeforeValidator(_status)]
    reason: Annotated[str, Field(min_length=1)]
    evidence: Annotated[str, BeforeValidator(_words)] = ""


def read_report(content: bytes) -> AgentReport:
    """Read `$MULLIGAN_REPORT`; a ValueError says in a few words what is wrong with it."""
    try:
        report = _Report.model_validate_json(content)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "it"
        message = f"{where}: {one_line(first['msg'], LINE_CHARS)}"
        raise ValueError(message) from error
    return AgentReport(
        status=report.status,
        reason=_shortened(report.reason, REASON_CHARS),
        evidence=_shortened(report.evidence, EVIDENCE_CHARS),
    )


def shortened(said: str) -> str:
    """Cut an agent's closing words to what a pull request shows."""
    return _shortened(said, SUMMARY_CHARS)


def _shortened(text: str, most: int) -> str:
    shown = visible(text).strip()
    return shown if len(shown) <= most else f"{shown[: most - 1].rstrip()}…"
