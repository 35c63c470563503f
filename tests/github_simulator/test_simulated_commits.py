"""Branches, refs, commits and files of the simulated GitHub, read from a bare repository."""

import base64

from github_simulator.bare_repository import BareRepository
from world.simulated import NAME, SimulatedGitHub, push


def test_branches_are_those_of_the_bare_repository(github: SimulatedGitHub) -> None:
    sha = push(github.bare, "mulligan/issue-1", {"a": "a"})
    assert [branch["name"] for branch in github.get("branches").json()] == [
        "main",
        "mulligan/issue-1",
    ]
    branch = github.get("branches/mulligan/issue-1").json()
    assert (branch["name"], branch["commit"]["sha"]) == ("mulligan/issue-1", sha)
    assert branch["commit"]["commit"]["author"]["name"] == "Wes"
    missing = github.get("branches/nowhere")
    assert (missing.status_code, missing.json()["message"]) == (404, "Branch not found")


def test_refs_are_named_in_full(github: SimulatedGitHub) -> None:
    sha = push(github.bare, "topic/one", {"a": "a"})
    ref = github.get("git/ref/heads/topic/one").json()
    assert ref["ref"] == "refs/heads/topic/one"
    assert (ref["object"]["sha"], ref["object"]["type"]) == (sha, "commit")
    assert github.get("git/ref/heads/topic").status_code == 404
    matching = github.get("git/matching-refs/heads/topic").json()
    assert [one["ref"] for one in matching] == ["refs/heads/topic/one"]
    assert github.get("git/matching-refs/heads/none").json() == []


def test_a_ref_is_deleted_by_writers(github: SimulatedGitHub) -> None:
    push(github.bare, "topic", {"a": "a"})
    assert github.ask("DELETE", "git/refs/heads/topic", by="tri").status_code == 404
    assert github.ask("DELETE", "git/refs/heads/topic").status_code == 204
    assert github.ask("DELETE", "git/refs/heads/topic").status_code == 422
    assert "topic" not in BareRepository(github.bare).branches()


def test_commits_are_named_by_branch_or_id(github: SimulatedGitHub) -> None:
    sha = push(github.bare, "topic", {"a": "a\nb\n"})
    for name in ("topic", sha, sha[:10]):
        shown = github.get(f"commits/{name}").json()
        assert (shown["sha"], shown["commit"]["message"]) == (sha, "Change a")
        (file,) = shown["files"]
        assert (file["filename"], file["status"], file["additions"]) == ("a", "added", 2)
    assert github.get("commits/main").json()["files"] == []
    assert github.get("commits/nowhere").status_code == 404
    assert len(github.get("commits?sha=topic").json()) == 2


def test_comparing_counts_both_sides(github: SimulatedGitHub) -> None:
    push(github.bare, "topic", {"a": "a"})
    push(github.bare, "main", {"b": "b"})
    compared = github.get("compare/main...topic").json()
    assert (compared["status"], compared["ahead_by"], compared["behind_by"]) == ("diverged", 1, 1)
    assert [file["filename"] for file in compared["files"]] == ["a"]
    assert [one["commit"]["message"] for one in compared["commits"]] == ["Change a"]
    assert github.get("compare/main...main").json()["status"] == "identical"
    assert github.get("compare/main...acme:topic").json()["total_commits"] == 1
    assert github.get("compare/main..topic").status_code == 404
    push(github.bare, "island", {"c": "c"}, start=None)
    assert github.get("compare/main...island").status_code == 404


def test_files_and_directories_are_read_at_a_ref(github: SimulatedGitHub) -> None:
    push(github.bare, "topic", {"src/deep/file.bin": "\x00\x01"})
    file = github.get("contents/README.md").json()
    assert (file["type"], file["encoding"], file["size"]) == ("file", "base64", 8)
    assert base64.b64decode(file["content"]) == b"# tools\n"
    assert github.get("contents/src/deep/file.bin").status_code == 404
    deep = github.get("contents/src/deep/file.bin?ref=topic").json()
    assert base64.b64decode(deep["content"]) == b"\x00\x01"
    listed = github.get("contents/src?ref=topic").json()
    assert {(one["name"], one["type"]) for one in listed} == {("deep", "dir"), ("tool.py", "file")}
    assert {one["name"] for one in github.get("contents").json()} == {"README.md", "src"}
    assert github.get("contents/README.md?ref=nowhere").status_code == 404


def test_a_deleted_and_a_binary_file_are_told_apart(github: SimulatedGitHub) -> None:
    push(github.bare, "topic", {"bin": "\x00\x01"})
    first = BareRepository(github.bare).resolve("main")
    second = BareRepository(github.bare).resolve("topic")
    assert first
    assert second
    changes = BareRepository(github.bare).changes(second, first)
    assert [(one.path, one.status, one.additions) for one in changes] == [("bin", "removed", 0)]


def test_the_repository_is_cloned_from_its_own_place(github: SimulatedGitHub) -> None:
    assert github.get(f"/repos/{NAME}").json()["clone_url"] == f"file://{github.bare}"
