"""An agent that claims to have spent more than its model's service counted."""

import os
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from agents.test_failing_services import asker
from mulligan.agents.invocation import OperatorAgents
from mulligan.agents.runner import CommandAgent
from mulligan.config.operator import AgentSettings
from mulligan.config.settings import Price
from mulligan.domain.host import Network
from mulligan.domain.result import AgentFacts
from mulligan.domain.spending import Allowance
from world.confined import sandbox
from world.model import serve_model
from world.model_script import Turn, conversation
from world.replayed_agents import task_in

PRICES = {"m": Price(input=10, output=50), "o3-pro": Price(input=20, output=80)}
CLAIM = """
ask().read()
print(json.dumps({{"cost_usd": {usd}, "input_tokens": {tokens}, "model": "o3-pro"}}))
"""


def facts_of(tmp_path: Path, usd: float, tokens: int, prices: dict[str, Price]) -> AgentFacts:
    """Run an agent whose model counts 100,000 and 20,000 tokens: two dollars."""
    adapter = asker(CLAIM.format(usd=usd, tokens=tokens))
    turn = Turn("Hi.", input_tokens=100_000, output_tokens=20_000)
    with serve_model(conversation(turn)) as model:
        outer = {"PATH": os.environ["PATH"], "MODEL_KEY": "k" * 20, "MODEL_URL": model.address}
        agent = CommandAgent(
            AgentSettings(kind="asker", timeout=timedelta(seconds=60)),
            outer,
            sandbox=sandbox((tmp_path,)),
            network=Network.MODEL,
            own=OperatorAgents({"asker": adapter}, prices, ()),
        )
        return agent.run(replace(task_in(tmp_path), allowance=Allowance(usd=2.5))).facts


@pytest.mark.parametrize(
    ("usd", "tokens", "prices", "counts"),
    [
        (999, 10**9, PRICES, (4, 240_000)),
        # The service names its model, whatever the agent says; without a price, the budget counts.
        (999, 0, {"o3-pro": PRICES["o3-pro"]}, (2.5, 100_000)),
        # A little more than the list of prices says, as with a cache.
        (2.3, 100_000, PRICES, (2.3, 100_000)),
    ],
)
def test_a_claim_counts_up_to_twice_what_the_service_counted(
    tmp_path: Path,
    usd: float,
    tokens: int,
    prices: dict[str, Price],
    counts: tuple[float, int],
) -> None:
    facts = facts_of(tmp_path, usd, tokens, prices)
    assert facts.cost_usd is not None
    assert (round(facts.cost_usd, 6), facts.input_tokens) == counts
