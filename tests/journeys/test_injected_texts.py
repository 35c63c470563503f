"""An issue full of injections goes exactly the way of a plain one."""

import json
from pathlib import Path

from mulligan.domain.issue import IssueRef
from world.injections import EVIL, HIDDEN, HUGE, INJECTIONS
from world.place import MAINTAINER, NAME, MulliganInstallation, mulligan_installation

FILES = {"a.txt": "a\n"}
UNENDING = "a comment without end"
FIRST = {name: text for name, text in HIDDEN.items() if name != UNENDING}
BODY = "\n\n".join(
    text for name, text in {**FIRST, **INJECTIONS}.items() if name not in {*HUGE, UNENDING}
)
"""What is not hidden comes last, since some of it begins code that never ends."""
AGENT = """
pathlib.Path('a.txt').write_text('mended' if 'Earlier attempts failed' in prompt else 'spoiled')
print(prompt if 'PWN' in prompt else 'Done.')
"""


def pulls_of(here: MulliganInstallation, ref: IssueRef) -> list[tuple[str, str]]:
    pulls = [(pull.title, pull.body or "") for pull in here.world.pulls_of(NAME)]
    return [(title, body) for title, body in pulls if f"Closes #{ref.number}\n" in body]


def what_was_done(here: MulliganInstallation, ref: IssueRef) -> dict[str, object]:
    """Give everything that Mulligan did about an issue, without its words and its name."""
    attempts = here.attempts(ref)
    said = [each for each in here.world.comments_of(ref) if each.author.login == "mulligan-bot"]
    return {
        "outcomes": [meta.outcome.value for meta in attempts],
        "commits": [meta.commits for meta in attempts],
        "checks": [check.command for meta in attempts for check in meta.checks],
        "labels": here.world.labels_of(ref),
        "comments": len(said),
        "pulls": len(pulls_of(here, ref)),
        "files": sorted(here.branch_files(ref)),
    }


def test_nothing_that_mulligan_does_is_changed_by_any_text(tmp_path: Path) -> None:
    check = {"name": "mended", "run": "grep -x mended a.txt"}
    with mulligan_installation(tmp_path, FILES, [check]) as here:
        here.agent(AGENT)
        plain = here.issue()
        injected = here.issue(f"$(touch {EVIL}) ../../x\nfixes #1 @ada \u202e", BODY)
        here.world.comment(injected, BODY, MAINTAINER)
        done = here.run("once")
        assert (done.returncode, done.stderr) == (0, "")
        assert what_was_done(here, injected) == what_was_done(here, plain)
        manifest = json.loads(here.run("inspect", str(injected), "--manifest").stdout)
        prompt = here.prompt(injected, 1)
        ((title, body),) = pulls_of(here, injected)
        assert not list(tmp_path.rglob(f"*{EVIL}*"))
    assert manifest["hidden"]["words_not_shown"] >= 2 * len(EVIL.split())
    assert manifest["hidden"]["tag_characters"] >= len(EVIL)
    assert prompt.count("# Instructions\n\n- Work in the current directory") == 1
    assert "fixes `#1` `@ada`" in title
    assert body.count("Closes #2") == 1
