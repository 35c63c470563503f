"""Write a prompt by the template of its repository (SPEC 17). Pure."""

from collections.abc import Mapping

from mulligan.config.template import complete
from mulligan.errors import MisconfiguredError
from mulligan.retry.prompt import Request
from mulligan.text.escape import one_line
from mulligan.text.template import UnfitTemplateError, Value, fill_in


def render_template(request: Request, sections: Mapping[str, str]) -> str:
    """Fill in the policy's template; MisconfiguredError where it leaves out what is needed."""
    ref, (attempt, most) = request.issue.ref, request.position
    values: dict[str, Value] = {
        **sections,
        "issue": str(ref),
        "repository": ref.repository,
        "attempt": attempt,
        "max_attempts": most,
        "checks": [one_line(check.name, 100) for check in request.policy.checks],
    }
    try:
        return complete(fill_in(request.policy.prompt, values), values)
    except UnfitTemplateError as error:
        message = f"The prompt cannot be written: in .github/mulligan.yml, {error}."
        raise MisconfiguredError(message) from error
