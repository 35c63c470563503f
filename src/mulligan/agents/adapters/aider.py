"""Aider, as measured with 0.86.2: plain text, and always exit code 0. Pure."""

from mulligan.agents.adapters.litellm import KEYS, SERVICES, WAITING
from mulligan.config.adapters import Adapter, Fact, Meaning, Rule

AIDER = Adapter(
    program="aider",
    arguments=(
        *("--message-file", "{prompt_file}", "--yes-always", "--no-stream", "--no-pretty"),
        *("--no-check-update", "--analytics-disable", "--no-show-release-notes"),
        *("--no-gitignore", "--no-auto-commits", "--no-detect-urls", "--map-tokens", "1024"),
    ),
    version_arguments=("--version",),
    model_arguments=("--model", "{model}"),
    prompt="file",
    environment=(*KEYS, "OPENAI_API_BASE", "ANTHROPIC_API_BASE", "OPENROUTER_API_BASE"),
    services=SERVICES,
    # A price list, of which Aider also has a copy of its own.
    idle_hosts=("raw.githubusercontent.com",),
    variables={"COLUMNS": "1000", "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
    reads=(
        Rule(line=r"^Aider v(?P<version>\S+)", take={Fact.VERSION: ("version",)}),
        Rule(
            line=r"^(?:Main model|Model): (?P<model>\S+)",
            take={Fact.MODEL: ("model",)},
        ),
        *WAITING,
        Rule(
            line=r"^Tokens: (?P<sent>[\d.]+k?) sent,.*?(?P<received>[\d.]+k?) received\.",
            means=Meaning.PROGRESS,
            add={Fact.INPUT: ("sent",), Fact.OUTPUT: ("received",)},
        ),
        Rule(
            line=r"Cost: \$(?P<message>[\d.]+) message",
            add={Fact.COST: ("message",)},
        ),
        Rule(line=r"^(?P<activity>\S.*)", take={Fact.ACTIVITY: ("activity",)}),
        Rule(
            line=r"^Only \d+ reflections allowed, stopping",
            means=Meaning.LIMIT,
            put={Fact.STOP: "reflections"},
        ),
    ),
    litter=(".aider*",),
    usage="message",
)
