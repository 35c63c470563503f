"""A repository's prompt template: validate it, and render it in bounded time and size. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import lru_cache
from typing import NoReturn

from jinja2 import StrictUndefined, Template, TemplateError, TemplateSyntaxError, nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment

Value = str | int | list[str]

MAX_TEMPLATE_BYTES = 16 * 1024

MAX_RESULT_BYTES = 1024 * 1024

MAX_DEPTH = 40

FILTERS = frozenset({"trim", "upper", "lower", "title", "capitalize", "length", "indent"})

ALLOWED = (
    *(nodes.Output, nodes.TemplateData, nodes.Name, nodes.Const, nodes.Filter),
    *(nodes.If, nodes.For, nodes.Not, nodes.And, nodes.Or, nodes.CondExpr),
    *(nodes.Compare, nodes.Operand, nodes.List),
)

SYNTAX = ImmutableSandboxedEnvironment(
    undefined=StrictUndefined,
    autoescape=False,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)

TASK, GUIDANCE, CONTEXT = "task", "guidance", "retry_context"

REQUIRED_SECTIONS = (TASK, GUIDANCE, CONTEXT)
"""Sections that a prompt must contain in full, unless they are empty."""

SECTIONS = ("banner", TASK, "criteria", "discussion", "learned", CONTEXT, GUIDANCE, "instructions")

MOST_ATTEMPTS = 10


class UnfitTemplateError(Exception):
    """An invalid template; the message gives the line and the fix."""


def check_template(source: str, sample: Mapping[str, Value]) -> None:
    """Raise UnfitTemplateError if a template is invalid; `sample` has all its variables."""
    if len(source.encode(errors="surrogatepass")) > MAX_TEMPLATE_BYTES:
        _refuse(f"the template is larger than {MAX_TEMPLATE_BYTES} bytes; shorten it")
    try:
        for node in SYNTAX.parse(source).body:
            _check(node, _Scope(sample, frozenset(), 0))
    except TemplateSyntaxError as error:
        message = (error.message or "it cannot be read").rstrip(".")
        _refuse(f"line {error.lineno} of the template: {message}; fix it")
    except (RecursionError, ValueError):
        _refuse("the template is nested too deeply, or has too long a number; simplify it")


def render(source: str, values: Mapping[str, Value]) -> str:
    """Render a validated template; UnfitTemplateError if that fails.

    The result has no outer empty lines, and ends in one newline.
    """
    size, pieces = 0, list[str]()
    try:
        for piece in _compiled(source).generate(values):
            size += len(piece.encode(errors="surrogatepass"))
            if size > MAX_RESULT_BYTES:
                _refuse(f"the template makes more than {MAX_RESULT_BYTES} bytes; shorten it")
            pieces.append(piece)
    except (TemplateError, TypeError) as error:
        _refuse(f"the template cannot be filled in: {str(error).rstrip('.')}; fix it")
    return "".join(pieces).strip("\n") + "\n"


@lru_cache(maxsize=64)
def _compiled(source: str) -> Template:
    return SYNTAX.from_string(source)


@dataclass(frozen=True, slots=True)
class _Scope:
    """The scope of a part of a template: the names known there, and its depth."""

    sample: Mapping[str, Value]
    loops_over: frozenset[str]
    depth: int


def _check(node: nodes.Node, scope: _Scope) -> None:
    if scope.depth > MAX_DEPTH:
        raise RecursionError
    if not isinstance(node, ALLOWED):
        _not_allowed(node, repr(type(node).__name__.lower()))
    inside = replace(scope, depth=scope.depth + 1)
    match node:
        case nodes.For():
            inside = replace(inside, loops_over=frozenset({_target(node, scope)}))
        case nodes.Filter():
            _check_filter(node)
        case nodes.Operand(op="in" | "notin"):
            # Repeated searches through long texts take minutes.
            _not_allowed(node, "'in'")
        case nodes.Name(ctx="load", name=name):
            _check_name(name, node.lineno, scope)
        case _:
            pass
    for child in node.iter_child_nodes():
        _check(child, inside)


def _target(loop: nodes.For, scope: _Scope) -> str:
    """Return the name that a loop sets; None for a nested loop, or one over anything but a list."""
    over = loop.iter
    listed = isinstance(over, nodes.List) or (
        isinstance(over, nodes.Name) and isinstance(scope.sample.get(over.name, []), list)
    )
    if scope.loops_over or loop.recursive or not listed:
        _not_allowed(loop, "a loop in a loop, or over anything but a list,")
    if not isinstance(loop.target, nodes.Name):
        _not_allowed(loop, "a loop with two names")
    return loop.target.name


def _check_filter(node: nodes.Filter) -> None:
    if node.name not in FILTERS:
        _not_allowed(node, f"the filter {node.name!r}")
    if node.args or node.kwargs or node.dyn_args or node.dyn_kwargs:
        _not_allowed(node, f"an argument of the filter {node.name!r}")


def _check_name(name: str, line: int, scope: _Scope) -> None:
    if name in scope.sample or name in scope.loops_over:
        return
    near = get_close_matches(name, scope.sample, n=1)
    known = f"the nearest is {near[0]}" if near else f"write one of {', '.join(scope.sample)}"
    _refuse(f"line {line} of the template: {name!r} is not a variable; {known}")


def _not_allowed(node: nodes.Node, what: str) -> NoReturn:
    _refuse(f"line {node.lineno} of the template: {what} is not allowed here; remove it")


def _refuse(why: str) -> NoReturn:
    raise UnfitTemplateError(why)


@lru_cache(maxsize=64)
def check_prompt_template(source: str) -> str:
    """Return a template unchanged; ValueError with the mistake and its line if it is invalid."""
    try:
        check_template(source, sample(1))
        for values in _samples():
            complete(render(source, values), values)
    except UnfitTemplateError as error:
        raise ValueError(str(error)) from error
    return source


def complete(prompt: str, values: Mapping[str, Value]) -> str:
    """Return a prompt unchanged; UnfitTemplateError if it lacks a required section."""
    for name in REQUIRED_SECTIONS:
        if str(values[name]) not in prompt:
            when = "first attempts" if values["attempt"] == 1 else f"attempt {values['attempt']}"
            raise UnfitTemplateError(
                f"the template leaves out {name!r} on {when}; write {{{{ {name} }}}} there"
            )
    return prompt


def sample(attempt: int, *, guided: bool = False) -> dict[str, Value]:
    """Return a sample value for each variable of a template, as in an attempt."""
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
