"""Secrets are found in every form and in any pieces; all other text comes through as it is."""

import base64
import html
import json
import re
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mulligan.text.redact import LONGEST, Redactor
from world.tokens import KEY_LINE, TOKENS, letters

pytestmark = pytest.mark.pure

SECRET = 's3cret/of+the="bot" ü\'<&>'


def escaped(signs: str) -> str:
    """Write the secret in JSON, with numbers in place of these signs."""
    written = json.dumps(SECRET)[1:-1]
    return "".join(f"\\u{ord(each):04x}" if each in signs else each for each in written)


FORMS = {
    "plain": SECRET,
    "reversed": SECRET[::-1],
    "JSON": json.dumps(SECRET)[1:-1],
    "JSON in UTF-8": json.dumps(SECRET, ensure_ascii=False)[1:-1],
    "JSON of PHP": json.dumps(SECRET)[1:-1].replace("/", "\\/"),
    "JSON of Go": escaped("<>&"),
    "JSON of Gson": escaped("<>&='"),
    "HTML": html.escape(SECRET),
    "HTML of Go": html.escape(SECRET).replace("&#x27;", "&#39;"),
    "HTML outside of tags": html.escape(SECRET, quote=False),
    "percent": quote(SECRET, safe=""),
    "percent in lower case": re.sub("%..", lambda found: found[0].lower(), quote(SECRET, safe="")),
    "percent in a path": quote(SECRET),
    "percent in a form": quote_plus(SECRET),
    "hex": SECRET.encode().hex(),
    "HEX": SECRET.encode().hex().upper(),
}


def known() -> Redactor:
    """Make it anew for each test, so that mutants of the forms are noticed."""
    return Redactor((SECRET, "token-of-the-bot"))


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_a_known_secret_is_found_in_every_form(form: str) -> None:
    assert known().text(f"<{form}>") == "<[redacted]>"


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_known_secret_is_found_across_line_ends_in_json(end: str) -> None:
    output = json.dumps(
        {"output": f"a {SECRET[:9]}{end}{SECRET[9:17]}{end}{SECRET[17:]} b"}, ensure_ascii=False
    )
    assert known().text(output.replace('\\"', '"')) == '{"output": "a [redacted] b"}'


@pytest.mark.parametrize("before", ["", "a", "ab", "abc", "user:"])
@pytest.mark.parametrize("after", ["", "x", "xy", "\nz"])
@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
def test_a_known_secret_is_found_anywhere_in_base64(
    before: str, after: str, encode: object
) -> None:
    assert callable(encode)
    encoded = encode(f"{before}{SECRET}{after}".encode())
    assert isinstance(encoded, bytes)
    shown = known().content(encoded)
    assert b"[redacted]" in shown
    rest = shown.replace(b"[redacted]", b"")
    assert len(encoded) - len(rest) >= len(SECRET)


def dumped(separator: str, mark: str = "") -> str:
    return separator.join(f"{mark}{byte:02X}" for byte in SECRET.encode())


@pytest.mark.parametrize(
    "written",
    [
        f"ghp_{letters(18)}\r{letters(18)}",
        f"ghp_{letters(18)}\x1b[0m\x1b[1;31m{letters(18)}",
        "token-of\r-the\0-bot",
        "token-of\x1b[0m-the-bot",
        "\r".join("token-of-the-bot"),
        dumped(" "),
        dumped(":"),
        dumped(", ", "0x"),
        dumped("", "\\x"),
        dumped("", "%"),
        dumped("", "\\u00"),
        dumped(";", "&#x"),
        dumped(" ").lower().replace(" ", "\n", 3),
    ],
)
def test_what_stands_between_the_bytes_of_a_secret_does_not_hide_it(written: str) -> None:
    marks = ("0x", "\\x", "%", "\\u00", "&#x")
    mark = next((mark for mark in marks if written.startswith(mark)), "")
    shown = f"{mark}[redacted]"
    assert known().text(f"<{written}>") == f"<{shown}>"
    assert known().contains_secret(written.encode()) is not written.startswith("ghp_")
    # In the second of two long parts, too.
    assert known().text(f"{'x ' * 5000}<{written}>") == f"{'x ' * 5000}<{shown}>"


@pytest.mark.parametrize("before", ["sk-", "sk-name-", "xoxb-", "npm_name-"])
def test_a_token_behind_the_beginning_of_another_is_found(before: str) -> None:
    found = Redactor().text(f"{before}ghp_{letters(36)}")
    assert found in {f"{before}[redacted]", "[redacted]"}


def test_one_secret_behind_another_is_found() -> None:
    tokens = "".join(f"AIza{letters(35)}" for _ in range(50))
    assert Redactor().text(f"{tokens} x") == "[redacted] x"
    one = Redactor(("token-of-the-bot",))
    assert one.text("token-of-the-botAKIAIOSFODNN7EXAMPLEtoken-of-the-bot") == "[redacted]" * 3


def test_each_line_of_a_secret_is_one() -> None:
    lines = Redactor((f"first-line-of-it\n{'second' * 3}\nend\n",))
    assert lines.text("> first-line-of-it\n> end") == "> [redacted]\n> end"


def test_a_value_that_is_too_short_is_a_word() -> None:
    assert Redactor(("main", "")).text("the main branch") == "the main branch"


def test_secrets_that_overlap_leave_nothing() -> None:
    assert Redactor(("abcdefgh", "fghijklm")).text("xabcdefghijklmx") == "x[redacted]x"


def test_every_text_of_a_json_value_is_redacted() -> None:
    tree = known().tree({"a": ["token-of-the-bot", 1, None], "token-of-the-bot": {"b": True}})
    assert tree == {"a": ["[redacted]", 1, None], "token-of-the-bot": {"b": True}}


secrets = st.sampled_from([*TOKENS, *FORMS.values(), "token-of-the-bot"])
pieces = st.sampled_from(
    [
        "\n",
        " ",
        "x",
        "é",
        "-----BEGIN PRIVATE KEY-----",
        "sk-",
        "://a:b",
        "@",
        '"',
        "ghp_",
        "=",
        "\r",
        "\x1b[0m",
        "0x",
    ]
)
texts = st.lists(st.one_of(secrets, pieces, st.text(max_size=5)), max_size=12).map("".join)


def test_what_stands_before_a_secret_may_be_one_in_any_language() -> None:
    key = f"-----BEGIN RSA PRIVATE KEY-----\n{'MIIEpAIBAAKC' * 4}\n-----END RSA PRIVATE KEY-----"
    assert Redactor().text(f"://a:bé{key}@host") == "://a:[redacted]@host"


@pytest.mark.parametrize("before", ["ok", "token=", "", "a b\x1b[1m"])
def test_a_token_may_begin_at_a_colour(before: str) -> None:
    token = "ghp_" + "aB3dE5gH7j" * 4
    said = Redactor().text(f"{before}\x1b[0m{token}\x1b[32m done")
    assert said == f"{before}\x1b[0m[redacted]\x1b[32m done"


@given(texts)
def test_redacting_twice_is_redacting_once(text: str) -> None:
    once = known().text(text)
    assert known().text(once) == once


@given(texts, st.lists(st.integers(1, 60), min_size=1, max_size=5))
def test_in_pieces_nothing_more_is_shown_than_at_once(text: str, sizes: list[int]) -> None:
    content, stream, shown, at = text.encode(errors="replace"), known().stream(), b"", 0
    while at < len(content):
        size = sizes[at % len(sizes)]
        shown += stream.feed(content[at : at + size])
        at += size
    assert known().content(shown + stream.end()) == known().content(content)


def test_lines_are_shown_as_soon_as_they_end() -> None:
    stream = known().stream()
    assert stream.feed(b"one\ntwo") == b"one\n"
    # A carriage return ends no line: a secret may go on behind it.
    assert stream.feed(b" is longer\rthree") == b""
    assert stream.feed(b"\nfour") == b"two is longer\rthree\n"
    assert stream.end() == b"four"


@pytest.mark.parametrize("size", [100, 4096, 65536])
def test_a_secret_in_a_line_without_end_is_found_in_pieces(size: int) -> None:
    token = TOKENS[0].encode()
    content = (b"x" * 50_000 + b" " + token + b" ") * 4
    stream, shown = Redactor().stream(), b""
    for at in range(0, len(content), size):
        shown += stream.feed(content[at : at + size])
        fed = content[: at + size].replace(token, b"[redacted]")
        assert len(fed) - len(shown) < 2 * LONGEST + size
    assert shown + stream.end() == content.replace(token, b"[redacted]")


@pytest.mark.parametrize("width", [9, 20, 76])
def test_a_secret_that_is_broken_into_lines_is_found_in_pieces(width: int) -> None:
    coded = base64.b64encode(b"before it: " + SECRET.encode()).decode()
    lines = [coded[at : at + width] for at in range(0, len(coded), width)]
    stream, shown = known().stream(), b""
    for line in ["one", *lines, "two"]:
        shown += stream.feed(line.encode() + b"\n")
    shown += stream.end()
    whole = known().content("\n".join(["one", *lines, "two", ""]).encode())
    left, wanted = (text.translate(None, b"\n").split(b"[redacted]") for text in (shown, whole))
    assert left == wanted
    assert len(b"".join(left)) < len(coded) / 2 + len("onetwo")


def test_a_key_without_end_is_not_held_for_ever() -> None:
    stream, line = Redactor().stream(), KEY_LINE.encode() + b"\n"
    shown = stream.feed(b"-----BEGIN PRIVATE KEY-----\n")
    for _ in range(2 * LONGEST // len(line)):
        shown += stream.feed(line)
    assert shown.startswith(b"[redacted]")


def test_a_path_of_this_machine_has_a_name_in_texts_and_itself_in_files() -> None:
    places = ((re.compile("/srv/work"), "WORK"), (re.compile("/home/ann"), "HOME"))
    redactor = Redactor((SECRET,), places)
    assert redactor.text(f"/srv/work/a /home/ann {SECRET}") == "WORK/a HOME [redacted]"
    assert redactor.content(b"/srv/work/a") == b"/srv/work/a"
