"""What an agent says at its end, where that is its only report: the wordings of real ones."""

import pytest

from mulligan.agents.adapters import BUILT_IN
from mulligan.agents.output import StreamFacts, fault_of_run, last_words
from mulligan.agents.wordings import Cause, LastWords, cause_of
from mulligan.config.adapters import Adapter, Fact, Meaning
from mulligan.domain.outcome import Outcome
from mulligan.domain.result import RestKind

pytestmark = pytest.mark.pure

REFUSED, LIMITED = Cause.REFUSED, Cause.LIMITED

OF_AWS = (
    "botocore.exceptions.ClientError: An error occurred (ExpiredToken) when calling the "
    "ConverseStream operation: The security token included in the request is expired"
)
WORDS = [
    ("authentication_error", REFUSED),
    ("Please run /login", REFUSED),
    ("Invalid API key · Please run /login", REFUSED),
    ("Invalid API key · Fix external API key", REFUSED),
    ('API Error: 401 {"type":"error","error":{"type":"authentication_error"}}', REFUSED),
    ("Failed to authenticate. API Error: 401 Incorrect API key provided: k.", REFUSED),
    ("OAuth token has expired. Please obtain a new token.", REFUSED),
    ("OAuth token revoked · Please run /login", REFUSED),
    ("ExpiredToken", REFUSED),
    ("ExpiredTokenException: The security token included in the request is expired", REFUSED),
    (OF_AWS, REFUSED),
    ("Error: Not logged in. Run `codex login` first.", REFUSED),
    ("Your access token could not be refreshed. Please log out and sign in again.", REFUSED),
    ("Error: Could not load credentials from any providers", REFUSED),
    ("Unable to locate credentials", REFUSED),
    ('error: {"code":"insufficient_quota","message":"x"}', REFUSED),
    ("You exceeded your current quota, please check your plan and billing details.", REFUSED),
    ("You've hit your monthly spend limit", REFUSED),
    ("Your monthly spend limit was reached", REFUSED),
    ("Credit balance is too low", REFUSED),
    ("Your credit balance is too low to access the Anthropic API.", REFUSED),
    ("This organization has been disabled.", REFUSED),
    ("Error: No API key found; set ANTHROPIC_API_KEY", REFUSED),
    ("Your organization has disabled API key access", REFUSED),
    ('API Error: 403 {"error":{"type":"forbidden","message":"Request not allowed"}}', REFUSED),
    ("API Error: 401 who are you", REFUSED),
    ("API Error: Request rejected (402)", REFUSED),
    ("Please set an Auth method in your /home/a/.gemini/settings.json", REFUSED),
    ("You're out of extra usage · resets 6pm", LIMITED),
    ("You are out of messages until 3pm", LIMITED),
    ("API Error: Request rejected (429) · Please try again later.", LIMITED),
    ('API Error: 529 {"error":{"type":"overloaded_error"}}', Cause.OVERLOADED),
    ("API Error: 529 Overloaded", Cause.OVERLOADED),
    ("session limit · resets 6:30pm", LIMITED),
    ("You've hit your session limit · resets 6:30pm", LIMITED),
    ("You\u2019ve hit your limit · resets 6:30pm (Europe/Berlin)", LIMITED),
    ("5-hour limit reached ∙ resets 2pm", LIMITED),
    ("Claude AI usage limit reached|1749924000", LIMITED),
    ("Claude usage limit reached. Your limit will reset at 7pm.", LIMITED),
    ("Weekly limit reached ∙ resets Dec 1", LIMITED),
    ("You've reached your Opus limit", LIMITED),
    ("You've hit your usage limit. Upgrade to Pro or try again at 3:05 PM.", LIMITED),
    ("You've hit your usage limit", LIMITED),
    ("rate_limit_error", LIMITED),
    ('API Error: 429 {"type":"error","error":{"type":"rate_limit_error"}}', LIMITED),
    ("Quota exceeded; your quota resets in 3h", LIMITED),
    ("quota resets in 3h", LIMITED),
    ("Error: {'type': 'rate_limit_error'}", LIMITED),
    ("/opt/a: error while loading shared libraries: libx.so.1", Cause.NOT_STARTED),
]

PRINTED = [
    ("Quota exceeded. Check your plan and billing details.", REFUSED),
    ("Error: Too Many Requests", LIMITED),
    ("RESOURCE_EXHAUSTED", LIMITED),
    ("Error: ThrottlingException: Rate exceeded", LIMITED),
    ("unexpected status 401 Unauthorized", REFUSED),
    ("Error: invalid credentials", REFUSED),
    ("model_not_found", Cause.NO_MODEL),
    ("The model `x` does not exist or you do not have access to it.", Cause.NO_MODEL),
    ("Error: The model x is not supported with this account.", Cause.NO_MODEL),
    ("Error: getaddrinfo ENOTFOUND api.anthropic.com", Cause.UNREACHABLE),
    ("FetchError: request failed, reason: getaddrinfo EAI_AGAIN api.x", Cause.UNREACHABLE),
    (
        "Before using Claude Code, you must accept the updated Terms of Service. Run claude.",
        Cause.NEEDS_A_PERSON,
    ),
    ("You need to accept the new Consumer Terms and Privacy Policy.", Cause.NEEDS_A_PERSON),
    (
        "Claude Code needs an update: your version 1.0.1 is too old. Please run claude update",
        Cause.NEEDS_A_PERSON,
    ),
    ("Version 1.0.1 is no longer supported. Please run claude update", Cause.NEEDS_A_PERSON),
    ("Your version of codex is too old. Please update to 0.42.", Cause.NEEDS_A_PERSON),
    ("Error: The model is overloaded. Please try again later.", Cause.OVERLOADED),
    ("ENOSPC: no space left on device, write", Cause.DISK_FULL),
    ("OSError: [Errno 28] No space left on device", Cause.DISK_FULL),
]

PROSE = [
    "I fixed the `authentication_error` handling in src/auth.py.",
    "I will now handle authentication_error in the client.",
    "The tests for the case that the OAuth token has expired pass.",
    "authentication_error handling is done; the login page shows it.",
    "Error handling: the authentication_error case is tested.",
    "Invalid API key is now reported as 401 by login().",
    "The page says 'Please run /login' when the session ended.",
    "I added a test for rate_limit_error, and one for ENOSPC.",
    "When the session limit is reached, users see a banner.",
    "I fixed the handling of API Error: 403 in client.py.",
    "The page asks users who must accept the updated Terms of Service.",
    "The README now says: please run claude update.",
    "It is 2.0; the version 1.0.1 is no longer supported.",
]

OTHER = [
    "invalid tokens: the number is invalid",
    "Segmentation fault",
    "SyntaxError: Unexpected token",
    "Killed",
    "",
    "prompt is too long",
    "API Error: 400 prompt is too long: 403 tokens",
    "npm warn deprecated x@8.5: This version is no longer supported. Please upgrade.",
]


@pytest.mark.parametrize("is_prose", [False, True], ids=["printed", "said"])
@pytest.mark.parametrize(("line", "cause"), WORDS)
def test_the_last_words_say_whether_the_account_or_the_machine_failed(
    line: str,
    cause: Cause,
    is_prose: bool,  # noqa: FBT001 - a column of the table
) -> None:
    assert cause_of(LastWords(("first", line), is_prose)) == (cause, line)


@pytest.mark.parametrize(("line", "cause"), PRINTED)
def test_what_tests_print_too_counts_only_as_the_programs_own_line(line: str, cause: Cause) -> None:
    assert cause_of(LastWords((line,))) == (cause, line)
    assert cause_of(LastWords((line,), is_prose=True)) is None


@pytest.mark.parametrize("line", PROSE)
def test_a_sentence_about_an_error_is_none(line: str) -> None:
    assert cause_of(LastWords((line,), is_prose=True)) is None


@pytest.mark.parametrize("line", OTHER)
def test_other_words_blame_nobody(line: str) -> None:
    assert cause_of(LastWords((line,))) is None
    assert cause_of(LastWords((line,), is_prose=True)) is None


CLAUDE = BUILT_IN["claude"]
TEXT = '{"type":"assistant","message":{"content":[{"type":"text","text":"Please run /login"}]}}'
TOOL = '{"type":"assistant","message":{"content":[{"type":"tool_use","id":"1","input":{"command":"grep authentication_error"}}]}}'  # noqa: E501
USER = '{"type":"user","message":{"content":[{"type":"tool_result","content":"x"}]}}'
RESULT = '{"type":"result","subtype":"error_during_execution","result":"session limit"}'


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ([], LastWords()),
        ([TEXT], LastWords(("Please run /login",), is_prose=True)),
        ([TEXT, USER], LastWords(("Please run /login",), is_prose=True)),
        ([TEXT, RESULT], LastWords(("session limit",), is_prose=True)),
        ([TEXT, TOOL], LastWords()),
        ([TEXT, TOOL, USER], LastWords()),
        ([TEXT, "", "\x1b[31mExpiredToken\x1b[0m"], LastWords(("ExpiredToken",))),
        (["Invalid API key", "at x.js:1"], LastWords(("Invalid API key", "at x.js:1"))),
        (["old", *map(str, range(30))], LastWords(tuple(map(str, range(30))))),
    ],
)
def test_the_last_words_are_those_with_no_tool_use_after(
    lines: list[str], words: LastWords
) -> None:
    assert last_words("\n".join(lines).encode(), CLAUDE) == words


def test_what_a_program_without_json_prints_may_be_prose() -> None:
    words = last_words(b"1\n2\n3\n4\n", Adapter(program="x"))
    assert words == LastWords(("2", "3", "4"), is_prose=True)
    assert last_words(b"1\n", BUILT_IN["mini"]).is_prose
    assert last_words(b"1\n", BUILT_IN["aider"]).is_prose


@pytest.mark.parametrize(
    ("cause", "outcome", "rest"),
    [
        ("ExpiredToken", Outcome.DENIED, RestKind.REFUSED),
        ("model_not_found", Outcome.MISCONFIGURED, RestKind.REFUSED),
        ("rate_limit_error", Outcome.INFRASTRUCTURE, RestKind.LIMITED),
        ("getaddrinfo ENOTFOUND", Outcome.INFRASTRUCTURE, RestKind.UNREACHABLE),
        ("overloaded_error", Outcome.INFRASTRUCTURE, RestKind.LIMITED),
        ("Codex needs an update", Outcome.MISCONFIGURED, RestKind.REFUSED),
        ("ENOSPC", Outcome.INFRASTRUCTURE, None),
        (
            "claude: error while loading shared libraries: libx.so",
            Outcome.MISCONFIGURED,
            RestKind.NOT_STARTED,
        ),
    ],
)
def test_each_cause_has_an_outcome_that_costs_nothing(
    cause: str, outcome: Outcome, rest: RestKind | None
) -> None:
    fault = fault_of_run(StreamFacts(), LastWords((cause,)))
    assert fault
    assert (fault.outcome, fault.rest) == (outcome, rest)
    assert cause in fault.reason


def test_a_structured_fact_comes_before_words() -> None:
    denied = StreamFacts(texts={Fact.STATUS: "401", Fact.MESSAGE: "no"}, ended=Meaning.FAILED)
    fault = fault_of_run(denied, LastWords(("rate_limit_error",)))
    assert fault
    assert fault.outcome is Outcome.DENIED
    vague = StreamFacts(texts={Fact.MESSAGE: "It failed"}, ended=Meaning.FAILED)
    fault = fault_of_run(vague, LastWords(("ExpiredToken",)))
    assert fault
    assert fault.outcome is Outcome.DENIED
    fault = fault_of_run(vague, LastWords(("Segmentation fault",)))
    assert fault
    assert fault.reason == "The model's service failed: It failed."
    assert fault_of_run(StreamFacts(), None) is None
