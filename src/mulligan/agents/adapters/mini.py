"""mini-swe-agent, as measured with 2.4.6: text, and a trajectory file after each step. Pure."""

from mulligan.agents.adapters.litellm import ERRORS, KEYS, SERVICES, WAITING
from mulligan.config.adapters import Adapter, Fact, Meaning, Rule

USAGE = "messages.*.extra.response.usage"

MINI = Adapter(
    program="mini",
    arguments=("-t", "{prompt}", "-y", "--exit-immediately", "-o", "{record}", "-c", "mini.yaml"),
    model_arguments=("-m", "{model}"),
    turns_arguments=("-c", "agent.step_limit={turns}"),
    prompt="argument",
    environment=(*KEYS, "OPENAI_API_BASE", "ANTHROPIC_API_BASE", "OPENROUTER_API_BASE"),
    services=SERVICES,
    variables={
        "MSWEA_CONFIGURED": "true",
        "MSWEA_SILENT_STARTUP": "1",
        "MSWEA_COST_TRACKING": "ignore_errors",
        "MSWEA_MODEL_RETRY_STOP_AFTER_ATTEMPT": "4",
        "COLUMNS": "1000",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    },
    record="trajectory.json",
    reads=(
        *WAITING,
        Rule(
            line=r"^mini-swe-agent \(step (?P<turns>\d+), \$(?P<cost_usd>[\d.]+)\)",
            means=Meaning.PROGRESS,
            take={Fact.TURNS: ("turns",), Fact.COST: ("cost_usd",)},
        ),
        Rule(
            matching={"info.mini_version": "."},
            take={
                Fact.VERSION: ("info.mini_version",),
                Fact.MODEL: ("info.config.model.model_name",),
                Fact.COST: ("info.model_stats.instance_cost",),
                Fact.TURNS: ("info.model_stats.api_calls",),
                Fact.STOP: ("info.exit_status",),
                Fact.SAID: ("messages.role=assistant.content",),
                Fact.ACTIVITY: ("messages.*.extra.actions.*.command",),
                Fact.INPUT: (f"{USAGE}.prompt_tokens",),
                Fact.CACHED: (f"{USAGE}.prompt_tokens_details.cached_tokens",),
                Fact.OUTPUT: (f"{USAGE}.completion_tokens",),
            },
        ),
        Rule(where={"info.exit_status": "Submitted"}, means=Meaning.RESULT),
        Rule(where={"info.exit_status": "LimitsExceeded"}, means=Meaning.LIMIT),
        *(
            Rule(
                where={"info.exit_status": name},
                means=Meaning.FAILED,
                take={Fact.MESSAGE: ("messages.role=exit.content",)},
                put={Fact.STATUS: status},
            )
            for name, status in ERRORS.items()
        ),
    ),
    needs_result=True,
    usage="turn",
)
