"""What a change must not do: paths, sizes, protected files, secrets."""

from dataclasses import replace

import pytest
from pydantic import ValidationError

from mulligan.checks.guards import violations
from mulligan.config.policy import Scope
from mulligan.domain.attempt import Change
from mulligan.domain.protected import Protected
from mulligan.domain.result import FileChange, GuardKind
from mulligan.text.redact import Redactor
from world.diffs import Files, change_of

pytestmark = pytest.mark.pure


def told(change: Change, scope: Scope) -> tuple[str, ...]:
    return tuple(broken.message for broken in violations(change, scope))


def change(*paths: str, diff: bytes = b"") -> Change:
    files = tuple(FileChange(path=path, status="M") for path in paths)
    return Change("a" * 40, "b" * 40, 1, files, diff)


ALLOWED = "(src/**, *.md)."


@pytest.mark.parametrize(
    ("scope", "paths", "sentences"),
    [
        (Scope(), ("anything", "at/all"), ()),
        (Scope(allow=("src/**", "*.md")), ("src/a.py", "docs/x.md", "README.md"), ()),
        (
            Scope(allow=("src/**", "*.md")),
            ("src/a.py", "setup.py", "tests/t.py"),
            (
                f"setup.py is outside the allowed scope {ALLOWED}",
                f"tests/t.py is outside the allowed scope {ALLOWED}",
            ),
        ),
        (
            Scope(deny=(".github/", "*.lock")),
            (".github/release.yml", "a.py", "sub/x.lock"),
            (
                ".github/release.yml must not change: scope.deny has .github/, *.lock.",
                "sub/x.lock must not change: scope.deny has .github/, *.lock.",
            ),
        ),
        (Scope(deny=("*.lock", "!ok.lock")), ("ok.lock",), ()),
        (
            Scope(allow=("src/**",), deny=("src/secret/",)),
            ("src/secret/key",),
            ("src/secret/key must not change: scope.deny has src/secret/.",),
        ),
        (
            Scope(max_changed_files=2),
            ("a", "b", "c"),
            ("3 files were changed; scope.max_changed_files allows 2.",),
        ),
        (Scope(max_changed_files=2), ("a", "b"), ()),
    ],
)
def test_paths_are_held_against_the_scope(
    scope: Scope, paths: tuple[str, ...], sentences: tuple[str, ...]
) -> None:
    assert told(change(*paths), scope) == sentences


@pytest.mark.parametrize("key", ["allow", "deny", "allow_secrets"])
@pytest.mark.parametrize("pattern", ["a\\", "!", "[z-a]", "a[b", "# a", ""])
def test_a_pattern_that_would_open_a_guard_is_no_scope(key: str, pattern: str) -> None:
    with pytest.raises(ValidationError, match=rf"{key}\.0\n.* write a pattern as in \.gitignore"):
        Scope.model_validate({key: (pattern, "b")})


def test_a_line_end_in_a_name_hides_nothing() -> None:
    scope = Scope(deny=("*.lock",), protect=(Protected.INSTRUCTIONS,))
    lock, instructions = told(change("x\ny/a.lock", "x\ny/AGENTS.md"), scope)
    assert lock == "x\ny/a.lock must not change: scope.deny has *.lock."
    assert instructions.endswith("what to do (scope.protect: instructions).")


def test_of_too_many_files_only_the_first_are_matched() -> None:
    scope = Scope(deny=("*",), max_changed_files=2)
    assert told(change("a", "b", "c"), scope) == (
        "a must not change: scope.deny has *.",
        "b must not change: scope.deny has *.",
        "3 files were changed; scope.max_changed_files allows 2.",
    )


def test_a_diff_that_was_cut_off_cannot_be_trusted() -> None:
    text = b"diff --git a/x b/x\n@@ -1 +1 @@\n+y\n"
    assert told(change("x", diff=text), Scope()) == ()
    cut = text + b"\n[... 12 bytes omitted]\n"
    assert told(change("x", diff=cut), Scope()) == (
        "The change is too large to be checked; make a smaller one.",
    )


def linked(path: str, target: str | None, status: str = "A") -> Change:
    link = FileChange(path=path, status=status, mode="120000", size=5000, link=target)
    return Change("a" * 40, "b" * 40, 1, (link,))


@pytest.mark.parametrize(
    ("path", "target", "leads_out"),
    [
        ("new", "old.txt", False),
        ("sub/new", "../old.txt", False),
        ("sub/new", "..", False),
        ("sub/new", "./a/b", False),
        ("new", "/etc/passwd", True),
        ("new", "../old.txt", True),
        ("sub/new", "../../etc/passwd", True),
        ("new", "sub/../../etc/passwd", True),
        ("sub/new", "a/../../old.txt", True),
        ("new", ".git/config", True),
        ("sub/new", "../.GIT/hooks", True),
        ("new", "..\\\\old.txt", True),
        ("new", "C:/Windows", True),
    ],
)
def test_links_must_stay_in_the_tree(path: str, target: str, *, leads_out: bool) -> None:
    sentences = told(linked(path, target), Scope())
    assert bool(sentences) is leads_out
    assert all(f"{path} is a symbolic link to {target}," in sentence for sentence in sentences)


def test_a_link_that_could_not_be_read_is_refused_unless_it_goes() -> None:
    (broken,) = violations(linked("long", None), Scope())
    assert broken.kind is GuardKind.LINK
    assert broken.message == "long is an unreadable symbolic link; remove it."
    assert told(linked("long", None, "D"), Scope()) == ()


def test_submodules_must_not_come_change_or_go() -> None:
    said = ("inner is a submodule; submodules must not be added, changed or removed.",)
    added = FileChange(path="inner", status="A", mode="160000")
    assert told(Change("a" * 40, "b" * 40, 1, (added,)), Scope()) == said
    gone = b"diff --git a/inner b/inner\ndeleted file mode 160000\nindex 1111111..0000000\n"
    assert told(change("inner", diff=gone), Scope()) == said


def test_links_that_lead_in_a_circle_have_an_end() -> None:
    links = (("x/to", "../y"), ("y/back", "../x"), ("y/AGENTS.md", "f"))
    change = Change("a" * 40, "b" * 40, 1, links=links)
    files = [FileChange(path=path, status="M", mode="100644") for path in ("x/f", "y/f")]
    found = violations(replace(change, files=tuple(files)), Scope())
    assert [each.path for each in found] == ["y/f"]


def test_raw_content_of_an_lfs_file_is_refused() -> None:
    (broken,) = violations(Change("a" * 40, "b" * 40, 1, raw_lfs_files=("a.png",)), Scope())
    assert (broken.kind, broken.path) == (GuardKind.LFS, "a.png")
    assert broken.message.startswith("a.png belongs in Git LFS")


def test_what_set_up_made_is_no_part_of_a_change() -> None:
    (broken,) = violations(Change("a" * 40, "b" * 40, 1, set_up_paths=(".venv/a",)), Scope())
    assert (broken.kind, broken.path) == (GuardKind.SET_UP, ".venv/a")
    assert broken.message.startswith(".venv/a belongs to what the setup commands leave")


def test_files_in_a_submodule_are_refused() -> None:
    change = Change("a" * 40, None, 0, submodule_files=("lib/a.c",))
    (broken,) = violations(change, Scope())
    assert (broken.kind, broken.path) == (GuardKind.SUBMODULE, "lib/a.c")
    assert broken.message.startswith("lib/a.c is in a submodule")


def test_a_changed_link_of_a_submodule_is_refused_by_name() -> None:
    (broken,) = violations(Change("a" * 40, None, 1, submodule_links=("lib",)), Scope())
    assert (broken.kind, broken.path) == (GuardKind.SUBMODULE, "lib")
    assert "submodule lib links to was changed. Mulligan does not publish this" in broken.message


def test_a_zero_byte_hides_neither_tests_nor_settings() -> None:
    names = ("a.test.js", "pytest.ini", "logo.png")
    diff = b"".join(
        b"diff --git a/%b b/%b\nBinary files a/%b and b/%b differ\n" % ((name.encode(),) * 4)
        for name in names
    )
    assert told(change(*names, diff=diff), Scope()) == tuple(
        f"{name} has a zero byte, so git shows no lines of it; remove the byte."
        for name in names[:2]
    )


def test_a_violation_is_recorded_with_its_kind_and_path() -> None:
    (broken,) = violations(change("a", "b"), Scope(deny=("b",)))
    assert (broken.kind, broken.path) == (GuardKind.SCOPE, "b")
    (broken,) = violations(change("a", "b"), Scope(max_changed_files=1))
    assert (broken.kind, broken.path) == (GuardKind.SIZE, None)


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        (".github/workflows/ci.yml", "workflows"),
        (".github/actions/build/action.yml", "workflows"),
        (".gitlab-ci.yml", "workflows"),
        ("Jenkinsfile", "workflows"),
        ("CLAUDE.md", "instructions"),
        ("src/sub/AGENTS.md", "instructions"),
        ("claude.MD", "instructions"),
        ("AGENTS\u200d.md", "instructions"),
        ("\uff21GENTS.md", "instructions"),
        ("AGENTS.md .", "instructions"),
        (".cursorrules", "instructions"),
        (".cursor/rules/x.mdc", "instructions"),
        ("sub/.claude/settings.json", "instructions"),
        (".github/copilot-instructions.md", "instructions"),
        (".mcp.json", "instructions"),
        (".github/mulligan.yml", "policy"),
        (".github/Mulligan.yaml", "policy"),
        (".github/Mulligan.yml", "policy"),
        ("CODEOWNERS", "owners"),
        (".github/CODEOWNERS", "owners"),
        (".gitmodules", "git"),
        ("sub/.gitattributes", "git"),
    ],
)
def test_what_steers_more_than_the_program_is_protected(path: str, kind: str) -> None:
    (broken,) = violations(change(path), Scope(allow=("**",)))
    assert (broken.kind, broken.path) == (GuardKind.PROTECTED, path)
    assert broken.message.startswith(f"{path} must not change, since it ")
    assert broken.message.endswith(f" (scope.protect: {kind}).")
    others = tuple(each for each in Protected if each != kind)
    assert told(change(path), Scope(protect=others)) == ()
    assert len(told(change_of({path: "x\n"}, {"x": "x\n"}, {path: "x"}), Scope())) == 1


@pytest.mark.parametrize(
    "path",
    [
        "docs/workflows/x.md",
        "src/agents.py",
        ".github/dependabot.yml",
        "my-claude.md",
        ".gitignore",
    ],
)
def test_other_files_are_not_protected(path: str) -> None:
    assert told(change(path), Scope()) == ()


def test_a_large_file_is_told_and_a_deleted_one_is_not() -> None:
    large = FileChange(path="data.bin", status="A", size=6_000_000)
    gone = FileChange(path="old.bin", status="D")
    found = Change("a" * 40, "b" * 40, 1, (large, gone))
    assert told(found, Scope()) == (
        "data.bin has 6000000 bytes; scope.max_file_bytes allows 5242880.",
    )
    assert told(found, Scope(max_file_bytes=6_000_000)) == ()


def test_a_file_that_was_not_read_for_its_size_is_told() -> None:
    found = Change("a" * 40, None, 1, too_large=(("data.bin", 6_000_000), ("small", 1)))
    assert told(found, Scope()) == (
        "data.bin has 6000000 bytes; scope.max_file_bytes allows 5242880.",
    )


def test_a_change_that_was_not_read_is_refused() -> None:
    (broken,) = violations(Change("a" * 40, None, 1, unread="It is too much."), Scope())
    assert (broken.kind, broken.message) == (GuardKind.SIZE, "It is too much.")


GITHUB_TOKEN = "ghp_" + "a1B2" * 9
KEY = "-----BEGIN RSA PRIVATE KEY-----"
BODY = "MIIEpAIBAAKCAQEA" * 4
SECRETS = {
    "AWS key": "key = 'AKIA" + "IOSFODNN7EXAMPL3'",
    "GitHub token": f"token = {GITHUB_TOKEN}",
    "Slack token": "xoxb-" + "123456789012-123456789012-abcdefABCDEF123456789012",
    "Stripe key": "sk_live_" + "a1B2c3D4e5F6g7H8i9J0k1L2",
    "npm token": "//registry.example/:_authToken=npm_" + "a1B2" * 9,
    "private key": f"{KEY}\n{BODY}",
    "Anthropic key": "sk-ant-api03-" + "a1B2" * 12,
    "Google API key": "AIza" + "a1B2c" * 7,
}


AWS = SECRETS["AWS key"] + "\n"


def adding(text: str, path: str = "src/a.py") -> Change:
    return change_of({path: "x = 1\n"}, {path: f"x = 1\n{text}\n"})


@pytest.mark.parametrize("kind", SECRETS)
def test_what_looks_like_a_secret_is_told_and_not_repeated(kind: str) -> None:
    (broken,) = violations(adding(SECRETS[kind] + "  # pragma: allowlist secret"), Scope())
    assert (broken.kind, broken.path) == (GuardKind.SECRET, "src/a.py")
    assert broken.message.startswith(f"src/a.py adds a probable secret ({kind}); remove it")
    assert SECRETS[kind][-16:] not in broken.message


def test_each_kind_of_secret_is_told_once_for_a_file() -> None:
    assert len(told(adding("\n".join([*SECRETS.values()] * 3)), Scope())) == len(SECRETS)


@pytest.mark.parametrize(
    "key",
    [
        f"-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n{BODY}",
        f"-----BEGIN ENCRYPTED PRIVATE KEY-----\n{BODY}",
        (
            "PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: none\nComment: a\nPublic-Lines: 2\n"
            f"{BODY}"
        ),
    ],
)
def test_a_private_key_in_any_format_is_told(key: str) -> None:
    (broken,) = violations(adding(key), Scope())
    assert "(private key)" in broken.message


def test_a_secret_in_a_very_long_line_is_found() -> None:
    for before in (9_980, 9_500, 123_456):
        assert len(told(adding("x " * (before // 2) + SECRETS["GitHub token"]), Scope())) == 1


@pytest.mark.timeout(100)
@pytest.mark.parametrize("text", ["://", "aws", "eyJ.", "xoxb-", "a", "-----BEGIN "])
def test_a_line_made_to_take_time_takes_none(text: str) -> None:
    assert told(adding(text * (200_000 // len(text))), Scope()) == ()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param({"a": AWS}, {}, id="taken out"),
        pytest.param({"a": AWS}, {"a": f"{AWS}x\n"}, id="was there"),
        pytest.param({}, {"a": f'if "{KEY}" in text:\n    pass\n'}, id="a key is only named"),
        pytest.param({}, {"a": "token = os.environ['GITHUB_TOKEN_OF_THE_BOT']\n"}, id="a name"),
        pytest.param({}, {"a": f'"integrity": "sha512-{"aB3/" * 20}=="\n'}, id="a hash"),
        pytest.param({}, {"a": "postgres://user:password@localhost/db\n"}, id="a password"),
        pytest.param({}, {"a": f"{'0123456789abcdef' * 4}\n"}, id="hexadecimal"),
    ],
)  # fmt: skip
def test_what_is_no_new_secret_is_no_matter(before: Files, after: Files) -> None:
    assert told(change_of(before, after), Scope()) == ()


def test_made_up_secrets_may_be_allowed_by_path() -> None:
    fixture = adding(SECRETS["AWS key"], "tests/fixtures/keys.txt")
    assert len(told(fixture, Scope())) == 1
    assert told(fixture, Scope(allow_secrets=("tests/fixtures/",))) == ()


@pytest.mark.parametrize(
    "written", ["correct horse", "636f727265637420686f727365", "Y29ycmVjdCBob3JzZ"]
)
def test_mulligans_own_secrets_are_never_allowed(written: str) -> None:
    redactor, scope = Redactor(("correct horse",)), Scope(allow_secrets=("**",))
    (broken,) = violations(adding(f"x = '{written}'"), scope, redactor)
    assert broken.message == ("src/a.py contains a secret of Mulligan's configuration; remove it.")
    for content in ("x\n", ""):
        (broken,) = violations(change_of({}, {f"{written}.txt": content}), scope, redactor)
        assert written not in broken.message
