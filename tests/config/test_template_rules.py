"""A template of somebody else is filled in, or refused in a sentence; it never hangs or grows."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mulligan.config.prompt_template import (
    MAX_TEMPLATE_BYTES,
    UnfitTemplateError,
    Value,
    check_template,
    render,
)

pytestmark = pytest.mark.pure

SAMPLE: dict[str, Value] = {"task": "Mend it.\nNow.", "attempt": 2, "checks": ["a", "b"]}


def made(source: str) -> str:
    check_template(source, SAMPLE)
    return render(source, SAMPLE)


def why_not(source: str) -> str:
    with pytest.raises(UnfitTemplateError) as refused:
        made(source)
    return str(refused.value)


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("plain", "plain\n"),
        ("\n\n{{ task }}\n\n", "Mend it.\nNow.\n"),
        ("{% if attempt > 1 %}\nagain\n{% else %}\nfirst\n{% endif %}\nend", "again\nend\n"),
        ("{{ 'x' if attempt == 1 and not task else 'y' }}{# a note #}", "y\n"),
        ("{% for name in checks %}\n- {{ name|upper }}\n{% endfor %}", "- A\n- B\n"),
        ("{% for each in ['x', attempt] if each %}{{ each }}{% else %}-{% endfor %}", "x2\n"),
        ("{{ task|indent }} {{ checks|length }}", "Mend it.\n    Now. 2\n"),
        ("{% raw %}{{ task }}{% endraw %} < & >", "{{ task }} < & >\n"),
        ("{{ attempt != 1 and attempt <= 2 }}", "True\n"),
    ],
)
def test_what_is_allowed_is_filled_in(source: str, text: str) -> None:
    assert made(source) == text


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("a\n{{ tsak }}", "line 2 of the template: 'tsak' is not a variable; the nearest is task"),
        ("{{ x }}", "line 1 of the template: 'x' is not a variable; write one of task, attempt"),
        ("{% if x %}{% endif %}", "'x' is not a variable"),
        ("{% if false %}{{ nowhere }}{% endif %}", "'nowhere' is not a variable"),
        ("{% for n in checks %}{% endfor %}{{ n }}", "'n' is not a variable"),
        ("{{ loop }}", "'loop' is not a variable"),
        ("a\n\n{{ task", "line 3 of the template: unexpected end of template, expected 'end of"),
        ("{% if %}", "line 1 of the template: Expected an expression, got 'end of statement b"),
        ("{{ task.strip() }}", "line 1 of the template: 'call' is not allowed here; remove it"),
        ("{{ task.__class__ }}", "'getattr' is not allowed"),
        ("{{ task['x'] }}", "'getitem' is not allowed"),
        ("{{ range(9) }}", "'call' is not allowed"),
        ("{{ 9 ** 9 ** 9 }}", "'pow' is not allowed"),
        ("{{ 'a' * 99999999999 }}", "'mul' is not allowed"),
        ("{{ task ~ task }}", "'concat' is not allowed"),
        ("{{ 'x' in task }}", "'in' is not allowed"),
        ("{{ 'x' not in task }}", "'in' is not allowed"),
        ("{% set a = task %}", "'assign' is not allowed"),
        ("{% include 'x' %}", "'include' is not allowed"),
        ("{% macro m() %}{% endmacro %}", "'macro' is not allowed"),
        ("{{ task|replace('a', 'b') }}", "the filter 'replace' is not allowed"),
        ("{{ task|nothing }}", "the filter 'nothing' is not allowed"),
        ("{{ task|indent(99999999999) }}", "an argument of the filter 'indent' is not allowed"),
        ("{% for c in task %}{% endfor %}", "over anything but a list, is not allowed"),
        (
            "{% for a in checks %}{% for b in checks %}{% endfor %}{% endfor %}",
            "a loop in a loop, or over anything but a list, is not allowed here; remove it",
        ),
        ("{% for a in checks recursive %}{% endfor %}", "is not allowed"),
        ("{% for a, b in checks %}{% endfor %}", "a loop with two names is not allowed"),
        ("{{ task > attempt }}", "the template cannot be filled in: '>' not supported between"),
        ("{{ attempt|upper|length > task }}", "the template cannot be filled in"),
        ("x" * (MAX_TEMPLATE_BYTES + 1), "the template is larger than 16384 bytes; shorten it"),
        ("{{ " + "not " * 4000 + "task }}", "the template is nested too deeply"),
        ("{% if task %}" * 50 + "{% endif %}" * 50, "the template is nested too deeply"),
        ("{{ " + "9" * 5000 + " }}", "or has too long a number; simplify it"),
    ],
)
def test_what_is_not_allowed_is_refused_with_its_line(source: str, why: str) -> None:
    assert why in why_not(source)


def test_what_grows_is_stopped() -> None:
    long = {"task": "x" * 300_000, "attempt": 1, "checks": list[str]()}
    with pytest.raises(UnfitTemplateError, match="makes more than 1048576 bytes; shorten it"):
        render("{{ task }}" * 1000, long)


def test_a_variable_that_is_not_there_is_an_error_not_an_empty_place() -> None:
    with pytest.raises(UnfitTemplateError, match="'gone' is undefined; fix it"):
        render("{{ gone }}", {})


PIECES = ["{{", "}}", "{%", "%}", " if ", " for ", " in ", "task", "checks", "endif", "endfor", "x"]


@given(st.one_of(st.text(), st.lists(st.sampled_from(PIECES)).map(" ".join)))
def test_whatever_is_written_is_filled_in_or_refused(source: str) -> None:
    with suppress(UnfitTemplateError):
        assert made(source).endswith("\n")
