"""One grammar for what people tell Mulligan, in comments and on the command line."""

import pytest

from mulligan.domain.command import Command, Verb
from mulligan.text.commands import MAX_GUIDANCE, command, parse

pytestmark = pytest.mark.pure

RETRY, SKIP, FIX = Command(Verb.RETRY), Command(Verb.SKIP), "Use integers.\n\nNot floats."


@pytest.mark.parametrize(
    ("body", "read"),
    [
        ("/mulligan retry", RETRY),
        ("  /Mulligan   RETRY  ", RETRY),
        ("\n\r\n \n/mulligan retry\n\nThanks!", RETRY),
        ("/mulligan retry:", RETRY),
        ("/mulligan: retry", RETRY),
        ("/mulligan, retry", RETRY),
        ("/mulligan-retry", RETRY),
        ("/ mulligan retry", RETRY),
        ("/mulligan skip", SKIP),
        ("/mulligan skip not worth it\nany more", Command(Verb.SKIP, "not worth it any more")),
        ("/mulligan skip: too old", Command(Verb.SKIP, "too old")),
        ("/mulligan abort", Command(Verb.ABORT)),
        ("/mulligan abort NOW, please", Command(Verb.ABORT)),
        ("/mulligan pause until Monday", Command(Verb.PAUSE)),
        ("/mulligan resume", Command(Verb.RESUME)),
        ("/mulligan status?", Command(Verb.MISTYPED, "There is no command `status?`.")),
        ("/mulligan status", Command(Verb.STATUS)),
        (f"/mulligan fix: {FIX}", Command(Verb.FIX, FIX)),
        (f"/mulligan fix:\r\n{FIX}", Command(Verb.FIX, FIX)),
        (f"/mulligan fix {FIX}", Command(Verb.FIX, FIX)),
        ("/mulligan fix:now", Command(Verb.FIX, "now")),
        ("/mulligan fix: x\u202ey\u200b", Command(Verb.FIX, "xy")),
        # What the keyboard of a phone makes of it.
        ("/mulligan\u00a0retry", RETRY),
        ("/mulligan \u00a0 retry\u00a0", RETRY),
        ("/mulligan\u202fretry", RETRY),
        ("/mulligan\u2003retry", RETRY),
        ("/mulligan\u3000retry", RETRY),
        ("/mulligan\u200bretry", RETRY),
        ("/mulligan\u200b retry\ufeff", RETRY),
        ("\u00a0/mulligan retry", RETRY),
        ("\n\u3000\n/mulligan retry", RETRY),
        ("/Mulligan Retry", RETRY),
        ("/mulligan retry.", RETRY),
        ("/mulligan retry. ", RETRY),
        ("/mulligan Abort!", Command(Verb.ABORT)),
        ("/mulligan skip. Too old.", Command(Verb.SKIP, "Too old.")),
        ("/mulligan fix：Use integers", Command(Verb.FIX, "Use integers")),
        ("/mulligan fix:\u00a0Use integers", Command(Verb.FIX, "Use integers")),
        ("/mulligan fix\u00a0Use integers", Command(Verb.FIX, "Use integers")),
        ("/mulligan fix: “Re\u2011run” it", Command(Verb.FIX, "“Re\u2011run” it")),
        ("/mulligan “retry”", Command(Verb.MISTYPED, "There is no command `“retry”`.")),
    ],
)
def test_a_comment_that_starts_with_a_command_gives_it(body: str, read: Command) -> None:
    assert parse(body) == read


@pytest.mark.parametrize(
    "body",
    [
        "",
        "\n \n",
        "Try `/mulligan retry`.",
        "`/mulligan retry`",
        "> /mulligan retry",
        "    /mulligan retry",
        "\t/mulligan retry",
        "```\n/mulligan retry\n```",
        "<!-- x -->\n/mulligan retry",
        "Please\n/mulligan retry",
        "/mulliganretry",
        "/mulligan/retry",
        "/mulligans retry",
        "- /mulligan retry",
        "/mulligan-bot retry",
        "/mulligan\u2011retry",
        "“/mulligan retry”",
        "\u00a0\u200b/mulligan retry",
        "    \u00a0/mulligan retry",
    ],
)
def test_what_does_not_start_with_one_is_talk(body: str) -> None:
    assert parse(body) is None


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("/mulligan", "It does not say what to do."),
        ("/mulligan rerty", "There is no command `rerty`."),
        ("/mulligan `retry`", "There is no command `'retry'`."),
        ("/mulligan mistyped", "There is no command `mistyped`."),
        (f"/mulligan {'x' * 60} y", f"There is no command `{'x' * 39}…`."),
        (
            "/mulligan retry with floats",
            "`retry` takes no text; to say what to do, write `fix:` instead.",
        ),
        ("/mulligan fix:", "`fix:` needs an instruction after it."),
        ("/mulligan fix", "`fix:` needs an instruction after it."),
        (
            f"/mulligan fix: {'x' * (MAX_GUIDANCE + 1)}",
            "The text has 4,001 characters; `fix:` accepts up to 4,000.",
        ),
    ],
)
def test_a_mistyped_command_is_told_what_is_wrong_with_it(body: str, problem: str) -> None:
    found = parse(body)
    assert found
    assert found.verb is Verb.MISTYPED
    assert found.text == problem


def test_the_longest_guidance_is_taken_whole() -> None:
    assert parse("/mulligan fix: " + "x" * MAX_GUIDANCE) == Command(Verb.FIX, "x" * MAX_GUIDANCE)


def test_the_command_line_gives_the_same_commands() -> None:
    assert command(Verb.FIX, " Use integers. ") == Command(Verb.FIX, "Use integers.")
    assert command(Verb.RETRY, "") == RETRY


@pytest.mark.parametrize("before", ["\u200b", "\u2060\n", " \u00ad", "\ufeff", "\x1b[0m", "\u3164"])
def test_what_has_something_invisible_before_it_is_no_command(before: str) -> None:
    assert parse(f"{before}/mulligan retry") is None
