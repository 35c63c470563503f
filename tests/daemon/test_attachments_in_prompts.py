"""What people attached to an issue reaches the agent, or a sentence says why not (TRUST-6)."""

from collections.abc import Generator
from datetime import timedelta
from pathlib import Path

import pytest

from github_simulator.world import Fault
from mulligan.daemon.worker import Worker
from mulligan.domain.attachment import MOST_ATTACHMENTS, MOST_BYTES, MOST_PIXELS
from mulligan.domain.issue import IssueRef
from mulligan.implement.attachments import LONGEST_DOWNLOAD
from mulligan.storage.artifacts import FileArtifacts
from world.behaviours import AgentInput
from world.pictures import picture_of, png
from world.workers import WorkerEnvironment, fail_once_changed, fix_the_bug, worker_environment

PICTURE = picture_of("42")


def upload(number: int) -> str:
    return f"00000000-0000-0000-0000-{number:012}"


@pytest.fixture
def here(tmp_path: Path) -> Generator[WorkerEnvironment]:
    with worker_environment(tmp_path) as made:
        yield made


def at(here: WorkerEnvironment, number: int) -> str:
    return f"{here.desk.hub.url}/user-attachments/assets/{upload(number)}"


def file(here: WorkerEnvironment, name: str) -> str:
    return f"[{name}]({here.desk.hub.url}/user-attachments/files/1/{name})"


def attach(here: WorkerEnvironment, *pictures: bytes, **files: bytes) -> None:
    """Upload pictures, numbered from 1, and files by name."""
    uploads = here.desk.hub.world.uploads
    uploads |= {upload(number): content for number, content in enumerate(pictures, 1)}
    uploads |= {f"1/{name}": content for name, content in files.items()}


def issue(here: WorkerEnvironment, body: str) -> IssueRef:
    ref = here.desk.ready()
    here.desk.hub.world.edit(ref, "wes", body=body)
    return ref


def visit(here: WorkerEnvironment, ref: IssueRef) -> tuple[str, dict[str, bytes]]:
    """Make one attempt; return its prompt, and the files that the agent found."""
    seen = list[tuple[str, dict[str, bytes]]]()

    def agent(given: AgentInput) -> None:
        place = given.environment.get("MULLIGAN_ATTACHMENTS")
        listed = Path(place).iterdir() if place else ()
        seen.append((given.prompt, {each.name: each.read_bytes() for each in listed}))
        fix_the_bug(given)

    assert not Worker(here.context(agent), 1).visit(ref).problem
    return seen[0]


def task(prompt: str) -> str:
    return prompt.partition("# Success criteria")[0].partition("# Instructions")[0]


def fetched(here: WorkerEnvironment) -> list[str]:
    return [one for one in here.desk.requests() if "/files/" in one]


def test_pictures_and_logs_are_there_where_they_stood(here: WorkerEnvironment) -> None:
    attach(here, PICTURE, log=b"it broke")
    prompt, files = visit(here, issue(here, f"See ![x]({at(here, 1)}).\n\n{file(here, 'log')}"))
    assert sorted(files.values()) == sorted([PICTURE, b"it broke"])
    picture, text = (name for kind in ("png", "txt") for name in files if name.endswith(kind))
    assert f"See [image: {picture}].\n\nlog [file: {text}]" in prompt
    assert "`MULLIGAN_ATTACHMENTS` names" in task(prompt)


def test_an_issue_without_any_says_nothing_of_them(here: WorkerEnvironment) -> None:
    prompt, files = visit(here, issue(here, "See ![x](https://example.org/a.png)."))
    assert "See [image]." in prompt
    assert "MULLIGAN_ATTACHMENTS" not in prompt
    assert files == {}


def test_only_trusted_people_attach_in_comments(here: WorkerEnvironment) -> None:
    attach(here, PICTURE, picture_of("13"))
    ref = issue(here, "Mend it.")
    here.desk.hub.world.comment(ref, f"So: ![x]({at(here, 1)})", "wes")
    here.desk.hub.world.comment(ref, f"Or so: ![x]({at(here, 2)})", "zoe")
    _prompt, files = visit(here, ref)
    assert [*files.values()] == [PICTURE]


def test_a_retry_has_what_the_first_attempt_got(here: WorkerEnvironment) -> None:
    attach(here, PICTURE)
    here.check(fail_once_changed)
    ref = issue(here, f"![x]({at(here, 1)})")
    first = visit(here, ref)
    assert fetched(here) == [f"GET /storage/user/1/files/{upload(1)}"]
    here.desk.hub.world.uploads.clear()
    second = visit(here, ref)
    assert (second[1], fetched(here)) == (first[1], [])


def test_a_file_that_retention_removed_is_downloaded_again(here: WorkerEnvironment) -> None:
    attach(here, PICTURE)
    here.check(fail_once_changed)
    ref = issue(here, f"![x]({at(here, 1)})")
    _prompt, files = visit(here, ref)
    (name,) = files
    stored = FileArtifacts(here.directory / "artifacts")
    for content in (b"changed", None):
        place = stored.path(ref, 1, name)
        place.write_bytes(content) if content else place.unlink()
        assert visit(here, ref)[1] == files
        stored.path(ref, 2, name).unlink(missing_ok=True)
        fetched(here)


def test_they_can_be_switched_off(here: WorkerEnvironment) -> None:
    attach(here, PICTURE)
    here.policy["pictures"] = False
    prompt, files = visit(here, issue(here, f"![x]({at(here, 1)})"))
    assert "\n[image]\n" in prompt
    assert (files, fetched(here)) == ({}, [])


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"x" * (MOST_BYTES + 1), "it is larger than 5 MB"),
        (png(MOST_PIXELS + 1, 20), "it is wider or higher than 8000 pixels"),
        (b"<svg/>", "it is not a text, and not a PNG, JPEG, GIF or WebP picture"),
        (b"", "GitHub gives it to people only, or no longer has it"),
    ],
)
def test_what_an_agent_cannot_read_ends_in_a_sentence(
    here: WorkerEnvironment, content: bytes, why: str
) -> None:
    if content:
        attach(here, content)
    prompt, files = visit(here, issue(here, f"See ![x]({at(here, 1)})."))
    assert f"See [image: missing, {why}]." in prompt
    assert "MULLIGAN_ATTACHMENTS" not in prompt
    assert files == {}


@pytest.mark.parametrize(
    "fault",
    [
        Fault(500),
        Fault(cut=True),
        Fault(302, headers={"location": "http://127.0.0.1:1/"}),
        Fault(302, headers={"location": "/storage/user/1/files/x"}),
        Fault(200, body="<html>Sign in", content_type="text/html"),
    ],
)
def test_a_download_that_fails_does_not_end_the_attempt(
    here: WorkerEnvironment, fault: Fault
) -> None:
    attach(here, PICTURE)
    here.desk.hub.world.faults = lambda _, path: fault if path.startswith("/storage") else None
    prompt, _files = visit(here, issue(here, f"See ![x]({at(here, 1)})."))
    assert "See [image: missing, " in prompt


def test_of_thousands_the_first_are_read(here: WorkerEnvironment) -> None:
    attach(here, *([PICTURE] * 500))
    body = " ".join(f"![x]({at(here, number)})" for number in range(1, 501))
    prompt, files = visit(here, issue(here, body))
    assert len(fetched(here)) == MOST_ATTACHMENTS
    assert [*files.values()] == [PICTURE]
    assert prompt.count("missing, the issue has more than 20]") == 500 - MOST_ATTACHMENTS


def test_slow_downloads_have_an_end(here: WorkerEnvironment) -> None:
    attach(here, PICTURE, PICTURE)
    clock = here.desk.clock

    def slowly(_: str, path: str) -> None:
        if path.startswith("/storage"):
            clock.time += LONGEST_DOWNLOAD + timedelta(seconds=1)

    here.desk.hub.world.faults = slowly
    prompt, files = visit(here, issue(here, f"![x]({at(here, 1)}) ![x]({at(here, 2)})"))
    assert len(files) == 1
    assert "missing, the download took too long]" in prompt
