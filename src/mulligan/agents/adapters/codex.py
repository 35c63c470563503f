"""Codex CLI, as measured with 0.169.0. Pure."""

from mulligan.config.adapters import Adapter, Fact, Meaning, Rule, Service

PROVIDER = (
    'model_providers.mulligan={name="OpenAI",base_url="{url}",env_key="CODEX_API_KEY",'
    'wire_api="responses"}'
)

CODEX = Adapter(
    program="codex",
    arguments=(
        *("exec", "--json", "--ephemeral", "--ignore-user-config", "--skip-git-repo-check"),
        "-",
    ),
    version_arguments=("--version",),
    model_arguments=("-m", "{model}"),
    # Codex's sandbox cannot start inside another one: it would silently refuse every command.
    contained_arguments=("-c", 'sandbox_mode="danger-full-access"'),
    uncontained_arguments=(
        *("-c", 'sandbox_mode="workspace-write"'),
        *("-c", "sandbox_workspace_write.network_access=true"),
    ),
    environment=("CODEX_API_KEY", "OPENAI_API_KEY"),
    services={
        "openai": Service(
            url="https://api.openai.com/v1",
            url_variable="OPENAI_BASE_URL",
            # Codex has no variable for the URL. A custom provider also avoids WebSockets.
            url_arguments=("-c", PROVIDER, "-c", 'model_provider="mulligan"'),
            keys={
                "CODEX_API_KEY": "Authorization: Bearer {key}",
                "OPENAI_API_KEY": "Authorization: Bearer {key}",
            },
        )
    },
    idle_hosts=("chatgpt.com", "ab.chatgpt.com", "api.github.com", "github.com"),
    # Its JSON does not report a refused command; this line of its log does.
    variables={"RUST_LOG": "error,codex_sandboxing=warn"},
    reads=(
        Rule(where={"type": "thread.started"}, take={Fact.SESSION: ("thread_id",)}),
        Rule(
            where={"type": "item.completed", "item.type": "agent_message"},
            means=Meaning.PROGRESS,
            take={Fact.SAID: ("item.text",), Fact.ACTIVITY: ("item.text",)},
        ),
        Rule(
            where={"type": ["item.started", "item.completed"], "item.type": "command_execution"},
            means=Meaning.PROGRESS,
            take={Fact.ACTIVITY: ("item.command",)},
        ),
        Rule(where={"type": "item.completed", "item.status": "declined"}, means=Meaning.REFUSED),
        Rule(
            line=r"sandbox violation: .*reason=policy_denied",
            means=Meaning.REFUSED,
            put={Fact.REFUSED: "a command (its own sandbox refused it, or could not start)"},
        ),
        Rule(
            where={"type": "error"},
            means=Meaning.WAITING,
            take={Fact.STATUS: ("message",), Fact.MESSAGE: ("message",)},
        ),
        Rule(
            where={"type": "turn.completed"},
            means=Meaning.RESULT,
            add={
                Fact.INPUT: ("usage.input_tokens",),
                Fact.CACHED: ("usage.cached_input_tokens",),
                Fact.OUTPUT: ("usage.output_tokens",),
            },
        ),
        Rule(
            where={"type": "turn.failed"},
            means=Meaning.FAILED,
            take={Fact.STATUS: ("error.message",), Fact.MESSAGE: ("error.message",)},
        ),
    ),
    needs_result=True,
    usage="end",
    fix=(
        "let Mulligan's sandbox do it (sandbox: required), or let this machine allow user"
        " namespaces, which Codex needs for its own"
    ),
)
