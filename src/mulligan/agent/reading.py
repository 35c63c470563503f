"""Read what an agent printed and reported: usage, summary, last activity, its own verdict. Pure."""

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from mulligan.domain.attempt import AgentReport, ReportedStatus
from mulligan.domain.result import AgentFacts
from mulligan.text.escape import one_line, visible

SUMMARY_CHARS = 2000
ACTIVITY_CHARS = 200


class Usage(BaseModel):
    """What the last line of an agent's output may say, as a JSON object; every key is optional."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)

    model: str | None = None
    version: str | None = None
    session_id: str | None = None
    turns: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    stop_reason: str | None = None
    summary: str | None = None
    result: str | None = None


class Report(BaseModel):
    """What `$MULLIGAN_REPORT` may hold (SPEC 13b)."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    status: ReportedStatus
    reason: str = ""
    evidence: str = ""


USAGE: TypeAdapter[Usage] = TypeAdapter(Usage)


def read_usage(output: str) -> Usage:
    """Read the usage from the last line that is not empty; one that is no JSON object says none."""
    last = _lines(output)[-1:]
    try:
        return USAGE.validate_json(last[0]) if last else Usage()
    except ValidationError:
        return Usage()


def read_report(content: bytes) -> AgentReport | None:
    """Read the report; None where it is not what SPEC 13b asks for."""
    try:
        found = Report.model_validate_json(content)
    except ValidationError:
        return None
    return AgentReport(found.status, found.reason, found.evidence)


def summary_of(output: str) -> str:
    """Give what the agent says it did: its own summary, else the end of its last paragraph."""
    usage = read_usage(output)
    said = usage.summary or usage.result
    if said is None:
        kept = [line for line in _lines(output) if not line.lstrip().startswith("{")]
        said = "\n".join(kept)
    return visible(said).strip()[-SUMMARY_CHARS:]


def facts_of(kind: str, output: str, exit_code: int) -> AgentFacts:
    """Put together what is known of a run."""
    usage, lines = read_usage(output), _lines(output)
    return AgentFacts(
        kind=kind,
        version=usage.version,
        model=usage.model,
        session_id=usage.session_id,
        exit_code=exit_code,
        turns=usage.turns,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cost_usd=usage.cost_usd,
        stop_reason=usage.stop_reason,
        last_activity=one_line(lines[-1], ACTIVITY_CHARS) if lines else None,
    )


def _lines(output: str) -> list[str]:
    return [line for line in output.splitlines() if line.strip()]
