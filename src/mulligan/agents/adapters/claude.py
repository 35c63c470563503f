"""Claude Code, as measured with 2.1.197. Pure."""

from mulligan.config.adapters import Adapter, Fact, Meaning, Rule, Service

TOOLS = "Bash Edit Write Read Glob Grep NotebookEdit TodoWrite Task"
INPUT = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")

CLAUDE = Adapter(
    program="claude",
    arguments=(
        *("-p", "--output-format", "stream-json", "--verbose"),
        *("--permission-mode", "acceptEdits", "--allowedTools", TOOLS),
        *("--disallowedTools", "WebFetch WebSearch"),
        *("--setting-sources", "project", "--strict-mcp-config", "--no-session-persistence"),
    ),
    version_arguments=("--version",),
    model_arguments=("--model", "{model}"),
    turns_arguments=("--max-turns", "{turns}"),
    environment=(
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_AUTH_TOKEN",
        "ANTHROPIC_BASE_URL",
        "CLAUDE_CODE_OAUTH_TOKEN",
        "CLAUDE_CODE_MAX_RETRIES",
    ),
    services={
        "anthropic": Service(
            url="https://api.anthropic.com",
            url_variable="ANTHROPIC_BASE_URL",
            keys={
                "ANTHROPIC_API_KEY": "x-api-key: {key}",
                "ANTHROPIC_AUTH_TOKEN": "Authorization: Bearer {key}",
                "CLAUDE_CODE_OAUTH_TOKEN": "Authorization: Bearer {key}",
            },
        )
    },
    variables={"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1"},
    reads=(
        Rule(
            where={"type": "system", "subtype": "init"},
            take={
                Fact.SESSION: ("session_id",),
                Fact.MODEL: ("model",),
                Fact.VERSION: ("claude_code_version",),
            },
        ),
        Rule(
            where={"type": "assistant"},
            take={Fact.ACTIVITY: ("message.content.*.text", "message.content.*.input.command")},
        ),
        Rule(
            where={"type": "assistant", "message.content.type=tool_use.id": None},
            take={Fact.SAID: ("message.content.*.text",)},
        ),
        # Claude Code writes this message itself.
        Rule(
            where={"type": "assistant"},
            matching={"error": "."},
            means=Meaning.WAITING,
            take={Fact.MESSAGE: ("message.content.*.text", "error")},
        ),
        # Claude Code splits one message over several lines, each with the message's whole usage.
        Rule(
            where={"type": "assistant", "error": None},
            means=Meaning.PROGRESS,
            once="message.id",
            add={
                Fact.INPUT: tuple(f"message.usage.{name}" for name in INPUT),
                Fact.CACHED: ("message.usage.cache_read_input_tokens",),
                Fact.OUTPUT: ("message.usage.output_tokens",),
            },
        ),
        Rule(
            where={"type": "system", "subtype": "api_retry"},
            means=Meaning.WAITING,
            take={Fact.STATUS: ("error_status",), Fact.MESSAGE: ("error",)},
        ),
        Rule(
            where={"type": "result"},
            means=Meaning.RESULT,
            take={
                Fact.SAID: ("result",),
                Fact.TURNS: ("num_turns",),
                Fact.COST: ("total_cost_usd",),
                Fact.INPUT: tuple(f"usage.{name}" for name in INPUT),
                Fact.CACHED: ("usage.cache_read_input_tokens",),
                Fact.OUTPUT: ("usage.output_tokens",),
                Fact.STOP: ("subtype",),
                Fact.REFUSED: ("permission_denials.*.tool_name",),
            },
        ),
        *(
            Rule(
                where={"type": "result", **where},
                matching=matching,
                means=Meaning.CRASHED,
                take={Fact.MESSAGE: ("result", "errors.*")},
            )
            for where, matching in (({"is_error": True}, {}), ({}, {"subtype": "^error"}))
        ),
        Rule(
            where={"type": "result", "is_error": True, "subtype": "success"},
            means=Meaning.FAILED,
            take={Fact.STATUS: ("api_error_status",), Fact.MESSAGE: ("result",)},
        ),
        Rule(
            where={"type": "result", "subtype": ["error_max_turns", "error_max_budget_usd"]},
            means=Meaning.LIMIT,
        ),
    ),
    litter=(".claude/",),
    needs_result=True,
    usage="message",
    fix="allow the tool in agent.arguments, with --allowedTools",
)
