"""The error names of litellm, through which Aider and mini-swe-agent call models. Pure."""

from mulligan.config.adapters import Fact, Meaning, Rule, Service

ERRORS = {
    "AuthenticationError": "401",
    "PermissionDeniedError": "403",
    "NotFoundError": "404",
    "BadRequestError": "400",
    "RateLimitError": "429",
    "InternalServerError": "500",
    "ServiceUnavailableError": "503",
    "APIConnectionError": "502",
    "APIError": "500",
    "Timeout": "504",
}
"""Litellm's exceptions, with the HTTP status of each."""

BEARER = "Authorization: Bearer {key}"
KEYS = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "OPENROUTER_API_KEY")

SERVICES = {
    "anthropic": Service(
        url="https://api.anthropic.com",
        url_variable="ANTHROPIC_API_BASE",
        keys={"ANTHROPIC_API_KEY": "x-api-key: {key}"},
    ),
    "openai": Service(
        url="https://api.openai.com/v1",
        url_variable="OPENAI_API_BASE",
        keys={"OPENAI_API_KEY": BEARER},
    ),
    "openrouter": Service(
        url="https://openrouter.ai/api/v1",
        url_variable="OPENROUTER_API_BASE",
        keys={"OPENROUTER_API_KEY": BEARER},
    ),
}

WAITING = tuple(
    Rule(
        line=rf"(?P<api_message>litellm\.{name}\b.*)",
        means=Meaning.WAITING,
        take={Fact.MESSAGE: ("api_message",)},
        put={Fact.STATUS: status},
    )
    for name, status in ERRORS.items()
)
