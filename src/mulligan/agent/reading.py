"""Read what an agent printed and reported; what cannot be read is passed over. Pure."""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated

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

from mulligan.domain.attempt import AgentReport, ReportedStatus, TimeLimit
from mulligan.domain.result import AgentFacts
from mulligan.text.escape import one_line, visible

SUMMARY_CHARS = 2000
LINE_CHARS = 200
REASON_CHARS = 2000
EVIDENCE_CHARS = 4000
USAGE_WITHIN = 20
"""The last lines among which a usage record is looked for: warnings may follow it."""

QUESTION_MARKS = ("?", "\uff1f", "\u061f")
"""Latin, Chinese and Japanese, Arabic."""

MARKUP = "*_`\"'\u201d\u2019\u00bb)] "
CHOICE = re.compile(r"(?:[-*+\u2022]|\(?[0-9A-Za-z]{1,2}[.):])\s")
SENTENCE_END = re.compile(r"(?<=[.!?])\s+")

JSON_OBJECT = TypeAdapter(dict[str, JsonValue])


def _or_nothing(value: object, validate: ValidatorFunctionWrapHandler) -> object:
    try:
        return validate(value)
    except ValidationError:
        return None


def _status(value: object) -> object:
    return value.strip().lower().replace("-", "_") if isinstance(value, str) else value


def _words(value: object) -> object:
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False)


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


class _Report(BaseModel):
    """`$MULLIGAN_REPORT`, as agents write it: `BLOCKED` and evidence as a list will do."""

    status: Annotated[ReportedStatus, BeforeValidator(_status)]
    reason: Annotated[str, Field(min_length=1)]
    evidence: Annotated[str, BeforeValidator(_words)] = ""


@dataclass(frozen=True, slots=True)
class Said:
    """What the end of an agent's output tells."""

    usage: Usage
    summary: str
    last_activity: str | None
    question: str = ""


def read_output(tail: bytes) -> Said:
    """Read the end of an agent's output: its usage record, its closing words, its last line."""
    lines = [line for line in tail.splitlines() if line.strip()]
    usage = Usage()
    for position in range(len(lines) - 1, max(len(lines) - 1 - USAGE_WITHIN, -1), -1):
        record = json_object(lines[position])
        if record and Usage.model_fields.keys() & record.keys():
            usage = Usage.model_validate(record)
            del lines[position]
            break
    said = _shortened(usage.result or usage.summary or "", SUMMARY_CHARS) or _closing_words(lines)
    return Said(usage, said, _last_line(lines), closing_question(said))


def closing_question(said: str) -> str:
    """Give the question that ends what an agent said, before its choices if it lists some."""
    for line in filter(None, map(str.strip, reversed(said.splitlines()))):
        if line.rstrip(MARKUP).endswith(QUESTION_MARKS):
            return one_line(SENTENCE_END.split(line)[-1].strip("*_ "), LINE_CHARS)
        if not CHOICE.match(line):
            break
    return ""


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


def facts_of(said: Said, kind: str, exit_code: int, stopped_by: TimeLimit | None) -> AgentFacts:
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


def json_object(line: bytes) -> dict[str, JsonValue] | None:
    """Read a line that is a JSON object; None for any other."""
    if not line.lstrip().startswith(b"{"):
        return None
    try:
        return JSON_OBJECT.validate_json(line)
    except ValidationError:
        return None


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


def shortened(said: str) -> str:
    """Cut an agent's closing words to what a pull request shows."""
    return _shortened(said, SUMMARY_CHARS)


def _name(text: str | None) -> str | None:
    return one_line(text or "", LINE_CHARS) or None


def _shortened(text: str, most: int) -> str:
    shown = visible(text).strip()
    return shown if len(shown) <= most else f"{shown[: most - 1].rstrip()}…"
