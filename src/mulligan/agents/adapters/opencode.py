"""opencode, as measured with 1.18.33. Pure."""

from mulligan.config.adapters import Adapter, Fact, Meaning, Rule

OPENCODE = Adapter(
    program="opencode",
    # opencode retries without limit, and reports that only in its log.
    arguments=("run", "--format", "json", "--auto", "--print-logs", "--log-level", "ERROR"),
    version_arguments=("--version",),
    model_arguments=("--model", "{model}"),
    environment=(
        *("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "OPENROUTER_API_KEY"),
        "OPENCODE_CONFIG_CONTENT",
    ),
    variables={"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1"},
    reads=(
        Rule(where={"type": "step_start"}, take={Fact.SESSION: ("sessionID",)}),
        Rule(
            where={"type": "text"},
            means=Meaning.PROGRESS,
            take={Fact.SAID: ("part.text",), Fact.ACTIVITY: ("part.text",)},
        ),
        Rule(
            where={"type": "tool_use"},
            means=Meaning.PROGRESS,
            take={Fact.ACTIVITY: ("part.tool", "part.state.title")},
        ),
        Rule(
            where={"type": "tool_use", "part.state.status": "error"},
            matching={"part.state.error": "(?i)permission"},
            means=Meaning.REFUSED,
            take={Fact.REFUSED: ("part.tool",)},
        ),
        Rule(
            where={"type": "step_finish"},
            means=Meaning.PROGRESS,
            add={
                Fact.INPUT: (
                    "part.tokens.input",
                    "part.tokens.cache.read",
                    "part.tokens.cache.write",
                ),
                Fact.CACHED: ("part.tokens.cache.read",),
                Fact.OUTPUT: ("part.tokens.output", "part.tokens.reasoning"),
                Fact.COST: ("part.cost",),
            },
            take={Fact.STOP: ("part.reason",)},
        ),
        Rule(where={"type": "step_finish", "part.reason": "stop"}, means=Meaning.RESULT),
        Rule(
            line=r'level=ERROR .*small=false .*error\.error="(?P<api_message>AI_[^"]*)"',
            means=Meaning.WAITING,
            take={Fact.MESSAGE: ("api_message",)},
        ),
        Rule(
            where={"type": "error"},
            means=Meaning.FAILED,
            take={Fact.STATUS: ("error.data.statusCode",), Fact.MESSAGE: ("error.data.message",)},
        ),
    ),
    needs_result=True,
    usage="turn",
    fix="set permission to allow in the repository's opencode.json",
)
