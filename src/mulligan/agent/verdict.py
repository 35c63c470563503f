"""Turn what an agent's output told into what is known of its run. Pure."""

import re
from collections.abc import Mapping

from mulligan.agent.prices import cost_of, price_of
from mulligan.agent.stream import Heard
from mulligan.config.adapters import Adapter, Fact, Meaning
from mulligan.config.budget import Price
from mulligan.config.operator import AgentSettings
from mulligan.domain.attempt import Fault, TimeLimit
from mulligan.domain.outcome import Outcome
from mulligan.domain.result import AgentFacts
from mulligan.text.escape import one_line

WORDS_CHARS = 300
NAMED_TOOLS = 5

DENIED_WORDS = re.compile(
    r"credit balance|insufficient[_ ]quota|exceeded your current quota|plan and billing"
    r"|payment required|API key not valid|API_KEY_INVALID",
    re.IGNORECASE,
)
"""How Anthropic (400), OpenAI (429) and Google (400, 429) refuse a key, or what it may spend."""

DENIED = frozenset({401, 402, 403})
NOT_FOUND = 404
PASSING = frozenset({408, 409, 429})
SERVER_ERROR = 500
TEXTS: Mapping[str, Fact] = {
    "version": Fact.VERSION,
    "model": Fact.MODEL,
    "session_id": Fact.SESSION,
}


def service_fault(heard: Heard) -> Fault | None:
    """Say how the model's service ended a run; None where it did not, or it was its request."""
    if heard.ended is not Meaning.FAILED and not (heard.ended is None and heard.waiting):
        return None
    said, status = heard.texts.get(Fact.MESSAGE, ""), heard.status
    words = one_line(said, WORDS_CHARS).rstrip(".")
    told = f"{words}{f' (HTTP {status})' if status else ''}".strip() or "it gave no answer"
    if status in DENIED or DENIED_WORDS.search(said):
        fix = "see to the agent's key and its credit"
        return Fault(Outcome.DENIED, f"The model's service refused: {told}; {fix}.")
    if status == NOT_FOUND:
        fix = "mend agent.model, or the address that it is asked at"
        return Fault(Outcome.MISCONFIGURED, f"The model was not found: {told}; {fix}.")
    if status is None or status in PASSING or status >= SERVER_ERROR:
        return Fault(Outcome.INFRASTRUCTURE, f"The model's service failed: {told}.")
    return None


def refusal(heard: Heard, adapter: Adapter) -> str:
    """Say which tools were refused, and how that is mended; nothing where none was."""
    if not heard.refused:
        return ""
    named = ", ".join(one_line(tool, WORDS_CHARS) for tool in heard.refused[:NAMED_TOOLS])
    return f"The agent was refused {named}; {adapter.fix or 'allow it in its settings'}."


def is_cut_off(heard: Heard, adapter: Adapter) -> bool:
    """Tell whether the record is missing with which this agent ends every run."""
    return adapter.needs_result and heard.ended is None


def cost_heard(heard: Heard, model: str, prices: Mapping[str, Price]) -> float | None:
    """Give the cost in USD as it was told, else by the model's price; None where neither is."""
    told = heard.numbers.get(Fact.COST)
    if told is not None or not heard.numbers.keys() & {Fact.INPUT, Fact.OUTPUT}:
        return None if told is None else round(told, 6)
    price = price_of(heard.texts.get(Fact.MODEL, model), prices)
    if price is None:
        return None
    tokens = [heard.count(fact) or 0 for fact in (Fact.INPUT, Fact.CACHED, Fact.OUTPUT)]
    return round(cost_of(price, *tokens), 6)


def facts_heard(
    heard: Heard,
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
        cost_usd=cost_heard(heard, settings.model, prices),
        stop_reason=one_line(stop, WORDS_CHARS) if stop else None,
        last_activity=one_line(heard.texts.get(Fact.ACTIVITY, ""), WORDS_CHARS) or None,
        api_status=heard.status,
        refused=tuple(heard.refused),
        refused_hosts=(),
        version=texts.get("version"),
        model=texts.get("model"),
        session_id=texts.get("session_id"),
    )
