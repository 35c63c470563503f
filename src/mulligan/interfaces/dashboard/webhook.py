"""GitHub's webhook: a signed delivery has the repository that it names polled at once.

A delivery is only a hint. Everything is read from GitHub, so a repeated one costs one poll.
"""

import hmac
import re
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256

import structlog
from pydantic import BaseModel, ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from mulligan.config.operator import GitHubSettings
from mulligan.domain.errors import ConfigError, UnavailableError
from mulligan.interfaces.dashboard.commands import read_body

MAX_BYTES = 2 * 1024 * 1024
"""The largest body that is read; GitHub sends up to 25 MB, but an issue's delivery is small."""

MIN_SECRET_CHARS = 16

SIGNATURE = re.compile(r"sha256=[0-9a-f]{64}")
"""https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries"""

OFF = "No webhook secret is set. Set github.webhook_secret in mulligan.yml, and restart.\n"
UNSIGNED = "The signature is missing or wrong. Set the same secret on GitHub and in mulligan.yml.\n"
NOT_JSON = "The delivery is not JSON. Set the webhook's content type to application/json.\n"
TOO_LARGE = "The delivery is too large. The next poll finds the change.\n"
NO_REPOSITORY = "The delivery names no repository, so there is nothing to poll.\n"
STRANGE = "This repository is not in mulligan.yml.\n"
ACCEPTED = "The repository is polled now.\n"

log = structlog.get_logger()


class _Repository(BaseModel):
    full_name: str


class _Delivery(BaseModel):
    repository: _Repository | None = None


@dataclass(frozen=True, slots=True)
class Webhook:
    """Receives deliveries; `hint` has a repository polled, or returns False for an unknown one.

    With an empty secret, it refuses everything.
    """

    secret: str
    hint: Callable[[str], bool]

    async def receive(self, request: Request) -> Response:
        """Check a delivery and pass on its hint; read no body without a signature."""
        signature = request.headers.get("x-hub-signature-256", "")
        if not self.secret:
            return PlainTextResponse(OFF, 404)
        if not SIGNATURE.fullmatch(signature):
            return PlainTextResponse(UNSIGNED, 401)
        body = await read_body(request, MAX_BYTES)
        if body is None:
            return PlainTextResponse(TOO_LARGE, 413)
        return await run_in_threadpool(self.pass_on, body, signature)

    def pass_on(self, body: bytes, signature: str) -> Response:
        """Answer a delivery, after passing on the hint of a signed one."""
        if not self._is_signed(body, signature):
            return PlainTextResponse(UNSIGNED, 401)
        try:
            repository = _Delivery.model_validate_json(body).repository
        except ValidationError:
            return PlainTextResponse(NOT_JSON, 415)
        if repository is None:
            return PlainTextResponse(NO_REPOSITORY)
        try:
            is_known = self.hint(repository.full_name)
        except UnavailableError as error:
            return PlainTextResponse(f"{error}\n", 503)
        if not is_known:
            return PlainTextResponse(STRANGE, 404)
        log.info("webhook_received", repository=repository.full_name)
        return PlainTextResponse(ACCEPTED, 202)

    def _is_signed(self, body: bytes, signature: str) -> bool:
        made = hmac.new(self.secret.encode(), body, sha256).hexdigest()
        return hmac.compare_digest(f"sha256={made}", signature)


def webhook_secret(settings: GitHubSettings) -> str:
    """Return the secret, or nothing; ConfigError if it cannot be read, or is too short."""
    given, place = settings.webhook_secret, settings.webhook_secret_file
    if given is None and place is None:
        return ""
    key = "github.webhook_secret_file" if place else "github.webhook_secret"
    try:
        secret = place.read_text("utf-8") if place else given.get_secret_value() if given else ""
    except (OSError, UnicodeError) as error:
        raise ConfigError(f"{place} could not be read; fix {key}.") from error
    if len(secret.strip()) < MIN_SECRET_CHARS:
        raise ConfigError(
            f"The secret of {key} is too short; use {MIN_SECRET_CHARS} characters or more."
        )
    return secret.strip()
