"""Judge a repository's prompt template before any prompt is made of it (SPEC 17, 19.1). Pure."""

from collections.abc import Iterator, Mapping
from functools import lru_cache

from mulligan.text.template import UnfitTemplateError, Value, check_template, fill_in

TASK, GUIDANCE, CONTEXT = "task", "guidance", "retry_context"
NEEDED = (TASK, GUIDANCE, CONTEXT)
"""Sections that have to be in a prompt whole wherever there is something in them."""

SECTIONS = ("banner", TASK, "criteria", "discussion", CONTEXT, GUIDANCE, "instructions")
MOST_ATTEMPTS = 10


@lru_cache(maxsize=64)
def check_prompt_template(source: str) -> str:
    """Give a template as it is; ValueError names what is wrong with it and where."""
    try:
        check_template(source, sample(1))
        for values in _samples():
            complete(fill_in(source, values), values)
    except UnfitTemplateError as error:
        raise ValueError(str(error)) from error
    return source


def complete(prompt: str, values: Mapping[str, Value]) -> str:
    """Give a prompt as it is; UnfitTemplateError where it leaves out what has to be in it."""
    for name in NEEDED:
        if str(values[name]) not in prompt:
            when = "first attempts" if values["attempt"] == 1 else f"attempt {values['attempt']}"
            message = f"the template leaves out {name!r} on {when}; write {{{{ {name} }}}} there"
            raise UnfitTemplateError(message)
    return prompt


def sample(attempt: int, *, guided: bool = False) -> dict[str, Value]:
    """Give every variable of a template a value, as it may be in an attempt."""
    sections = {name: f"<{name} {attempt}>" for name in SECTIONS}
    if attempt == 1:
        sections |= {"banner": "", CONTEXT: ""}
    if not guided:
        sections[GUIDANCE] = ""
    return {
        **sections,
        "issue": "octo/hello#12",
        "repository": "octo/hello",
        "attempt": attempt,
        "max_attempts": MOST_ATTEMPTS,
        "checks": ["tests", "lint"],
    }


def _samples() -> Iterator[dict[str, Value]]:
    yield sample(1, guided=True)
    for attempt in range(1, MOST_ATTEMPTS + 1):
        yield sample(attempt)
