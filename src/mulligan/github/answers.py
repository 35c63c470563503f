"""Turn GitHub's answers into objects or errors: retriable, denied, moved, limited. Pure."""

import math
import re
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from mulligan.domain.errors import (
    DeniedError,
    ForbiddenError,
    RefusedError,
    UnavailableError,
    UnconfirmedError,
    WorldError,
)
from mulligan.github.retries import (
    DEFAULT_LIMIT_SECONDS,
    Remedy,
    TransientError,
    is_limit,
    is_server_failure,
    may_pass,
    remedy_of,
    retry_after,
)
from mulligan.github.shapes import Answer
from mulligan.text.escape import one_line

T = TypeVar("T")

MAX_MESSAGE_CHARS = 200
"""Length to which a message cuts GitHub's own error text."""

REPOSITORY_ID_PATH = re.compile(r"/repositories/\d+(?:[/?]|$)")

RIGHTS = (
    ("POST .*/check-runs", "Checks: write"),
    ("/check-runs", "Checks: read"),
    ("/status", "Commit statuses: read"),
    ("/actions", "Actions: read"),
    ("/pulls", "Pull requests: write"),
    ("/issues", "Issues: write"),
    ("/collaborators", "push access to the repository"),
)
"""The permission a fine-grained token needs for a request (first match), if no header names it."""


class NotFoundError(UnavailableError):
    """GitHub answered 404: it may be missing, not visible to the token, or GitHub's own fault."""


class DeletedError(DeniedError):
    """GitHub answered 410: it existed and was deleted."""


class MovedError(UnavailableError):
    """GitHub redirected the request: the repository was renamed, or the issue transferred."""

    def __init__(self, message: str, to: str) -> None:
        super().__init__(message)
        self.to = to

    @property
    def renames(self) -> bool:
        """Return whether the redirect names the repository by its id, as after a rename."""
        return bool(REPOSITORY_ID_PATH.search(self.to))


class AlreadyExistsError(DeniedError):
    """GitHub answered 422 because the object already exists."""


def fault(answer: Answer, request: str) -> WorldError | None:
    """Return the error that an answer means, or None; `request` is the verb and the path."""
    if answer.ok:
        return None
    status, message = answer.status, _error_text(answer)
    if 300 <= status < 400:  # noqa: PLR2004 - HTTP status classes
        return moved(request, answer.headers.get("location", ""))
    if is_limit(answer):
        seconds = retry_after(answer)
        return rate_limited(request, DEFAULT_LIMIT_SECONDS if seconds is None else seconds)
    if is_server_failure(answer) or may_pass(answer, request):
        return TransientError(f"GitHub failed at {request} ({message}); try again later.")
    return _refused(answer, request, message)


def parsed(shape: TypeAdapter[T], answer: Answer, request: str) -> T:
    """Validate an answer's body. Raise what `fault` returns, or WorldError for an invalid body."""
    if wrong := fault(answer, request):
        raise wrong
    try:
        return shape.validate_json(answer.body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
    if first["type"] == "json_invalid":
        raise TransientError(f"GitHub's answer to {request} is not JSON; try again later.")
    where = ".".join(str(part) for part in first["loc"]) or "the whole"
    raise UnavailableError(
        f"GitHub's answer to {request} is not as expected ({where}: {first['msg']}); try again "
        "later, and check github.api_url."
    )


def not_found(what: str) -> UnconfirmedError:
    """Return the error for a deciding fact that GitHub does not find (GITHUB-3)."""
    message = (
        f"GitHub does not find {what} (404 Not Found). That may pass; if it lasts, check the name, "
        "and that the token can read it."
    )
    return UnconfirmedError(message, what)


def moved(request: str, to: str) -> WorldError:
    """Return the error for a redirect, which may lead to another repository: it is not followed."""
    return MovedError(
        f"GitHub redirects {request} to another address; if the repository was renamed"
        " or the issue moved, "
        "write the new name in the configuration.",
        to,
    )


def _refused(answer: Answer, request: str, message: str) -> WorldError:
    match answer.status:
        case 401:
            return RefusedError(
                f"GitHub refused the token ({message}). Replace the one that github.token or"
                " github.token_file names, such as $GITHUB_TOKEN."
            )
        case 403:
            advice = _advice(answer, request)
            return ForbiddenError(f"GitHub does not allow {request} ({message}){advice}.")
        case 404:
            return NotFoundError(
                f"GitHub did not find {request}; check the name, and that the token can read "
                "the repository."
            )
        case 410 if answer.says("deleted"):
            return DeletedError(f"GitHub has deleted {request} for good ({message}).")
        case 410:  # For example: Issues are disabled for this repo.
            return UnavailableError(f"GitHub does not serve {request} ({message}).")
        case 422 if _already_exists(answer):
            return AlreadyExistsError(f"GitHub already has one, at {request} ({message}).")
        case _ if remedy_of(answer, request) is Remedy.MULLIGAN:
            return DeniedError(f"GitHub refused {request} ({message}): report this as a bug.")
        case _:
            return DeniedError(f"GitHub refused {request} ({message}); fix the named problem.")


def _advice(answer: Answer, request: str) -> str:
    """Return what to change after a 403; empty if only GitHub's own words explain it.

    GitHub names the permissions of an endpoint in a header, whatever the reason of the refusal is:
    the header counts only where the words are about permissions.
    """
    if answer.says("not permitted to create or approve pull requests"):
        return (
            "; allow it in the settings of the repository, Actions, General: Allow GitHub Actions "
            "to create and approve pull requests"
        )
    if answer.says("archived", "locked", "blocked", "disabled"):
        return "; ask an administrator of the repository to allow it"
    if answer.says(*OTHER_REASONS) or "x-github-sso" in answer.headers:
        return ""
    return f"; the token needs {_missing_right(answer, request)}"


OTHER_REASONS = ("saml", "single sign-on", "ip allow list", "suspended", "spam")
"""Words of refusals that no permission of the token changes; GitHub itself says what does."""


def _missing_right(answer: Answer, request: str) -> str:
    """Return the missing permission: from GitHub's headers if they name it, else by path."""
    named = answer.headers.get("x-accepted-github-permissions")
    if named:
        return f"the permission {one_line(named, MAX_MESSAGE_CHARS)}"
    scopes = answer.headers.get("x-accepted-oauth-scopes")
    by_path = next((right for part, right in RIGHTS if re.search(part, request)), "")
    either = [
        *([f"the permission {by_path!r}"] if by_path else []),
        *([f"the scope {one_line(scopes, MAX_MESSAGE_CHARS)}"] if scopes else []),
    ]
    return " or ".join(either) or "more permissions on the repository"


def rate_limited(request: str, wait: float) -> TransientError:
    """Return the error for a rate limit that resets in `wait` seconds."""
    when = f"it resets in {math.ceil(wait)} s"
    return TransientError(f"GitHub's rate limit stopped {request}; {when}.", wait)


def _already_exists(answer: Answer) -> bool:
    return answer.says("already exists", "already_exists")


def _error_text(answer: Answer) -> str:
    """Return GitHub's error text on one line, or the status if there is none."""
    message = one_line(": ".join(answer.sentences), MAX_MESSAGE_CHARS).rstrip(".")
    return message or f"HTTP {answer.status}"
