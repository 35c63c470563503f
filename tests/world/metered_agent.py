"""A coding agent that says what it uses, step by step: a program, and how its output is read."""

import sys
from pathlib import Path

from mulligan.agents.invocation import OperatorAgents
from mulligan.agents.runner import CommandAgent
from mulligan.config.adapters import Adapter, Fact, Meaning, Rule
from mulligan.config.operator import AgentSettings

STEP = 0.10
"""The cost of a step in US dollars; it takes 100 tokens."""

PROGRAM = """
import json, pathlib, sys, time
for step in range(int(sys.argv[1])):
    usd = float([*sys.argv[4:], 0.1][0])
    print(json.dumps({"kind": "step", "usd": usd, "tokens": 100}), flush=True)
    time.sleep(float(sys.argv[2]))
time.sleep(float(sys.argv[3]))
print(json.dumps({"kind": "end"}), flush=True)
place = pathlib.Path("src/tool.py")
place.write_text(place.read_text() + "Y = 1\\n")
"""

READS = (
    Rule(
        where={"kind": "step"},
        means=Meaning.PROGRESS,
        add={Fact.COST: ("usd",), Fact.INPUT: ("tokens",)},
    ),
    Rule(where={"kind": "end"}, means=Meaning.RESULT),
)


def metered_agent(
    directory: Path, steps: int, pause: float = 0.05, cost: float = STEP
) -> CommandAgent:
    """Make an agent that takes so many steps, each at a cost, and then changes a file."""
    program = directory / "metered.py"
    program.write_text(PROGRAM)
    arguments = (str(program), str(steps), str(pause), "0", str(cost))
    own = Adapter(program=sys.executable, arguments=arguments, reads=READS, usage="message")
    return CommandAgent(AgentSettings(kind="metered"), {}, own=OperatorAgents({"metered": own}, {}))
