"""Gemini CLI, as measured with 0.61.0. Pure."""

import json

from mulligan.config.adapters import Adapter, Fact, Meaning, Rule, Service

SETTINGS = {
    "security": {"auth": {"selectedType": "gemini-api-key"}},
    "privacy": {"usageStatisticsEnabled": False},
    "general": {"maxAttempts": 5, "disableAutoUpdate": True},
}

GEMINI = Adapter(
    program="gemini",
    arguments=("--output-format", "stream-json", "--approval-mode", "yolo"),
    version_arguments=("--version",),
    model_arguments=("-m", "{model}"),
    environment=("GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GEMINI_BASE_URL"),
    services={
        "google": Service(
            url="https://generativelanguage.googleapis.com",
            url_variable="GOOGLE_GEMINI_BASE_URL",
            keys={
                "GEMINI_API_KEY": "x-goog-api-key: {key}",
                "GOOGLE_API_KEY": "x-goog-api-key: {key}",
            },
        )
    },
    variables={"GEMINI_CLI_TRUST_WORKSPACE": "true"},
    files={".gemini/settings.json": json.dumps(SETTINGS)},
    reads=(
        Rule(
            where={"type": "init"},
            take={Fact.SESSION: ("session_id",), Fact.MODEL: ("model",)},
        ),
        Rule(
            where={"type": "message", "role": "assistant"},
            means=Meaning.PROGRESS,
            take={Fact.SAID: ("content",), Fact.ACTIVITY: ("content",)},
        ),
        Rule(
            where={"type": "tool_use"},
            take={Fact.ACTIVITY: ("tool_name", "parameters.command", "parameters.file_path")},
        ),
        Rule(
            where={"type": "tool_result", "status": "error"},
            matching={"error.type": "(?i)denied|policy|not_registered"},
            means=Meaning.REFUSED,
            take={Fact.REFUSED: ("error.message",)},
        ),
        Rule(
            line=r"^Attempt \d+ failed with status (?P<api_status>\d+)\.(?P<api_message>.*)",
            means=Meaning.WAITING,
            take={Fact.STATUS: ("api_status",), Fact.MESSAGE: ("api_message",)},
        ),
        Rule(
            where={"type": "result"},
            means=Meaning.RESULT,
            take={
                Fact.INPUT: ("stats.input_tokens",),
                Fact.CACHED: ("stats.cached",),
                Fact.OUTPUT: ("stats.output_tokens",),
                Fact.STOP: ("error.type",),
            },
        ),
        Rule(
            where={"type": "result", "status": "error"},
            means=Meaning.FAILED,
            take={Fact.STATUS: ("error.message",), Fact.MESSAGE: ("error.message",)},
        ),
        Rule(
            where={"type": "result", "error.type": "FatalTurnLimitedError"},
            means=Meaning.LIMIT,
        ),
    ),
    litter=(".gemini/",),
    needs_result=True,
    usage="end",
    fix="allow the tool in the repository's .gemini/settings.json",
)
