"""The addresses for people lead to pages that a browser shows, in which nothing is run."""

import requests

from github_simulator.records import IssueName
from world.simulated import NAME, SimulatedGitHub, push


def page(url: str) -> str:
    answer = requests.get(url, timeout=120)
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    return answer.text


def test_an_issue_is_shown_with_its_comments(github: SimulatedGitHub) -> None:
    ref = github.world.open_issue(NAME, "Mend <b>it</b>", "**Please**\n\n<script>x</script>", "zoe")
    github.world.label(ref, "mulligan", "ada")
    github.post("issues/1/comments", {"body": "<!-- marker -->\n\nOn it."})
    shown = page(github.get("issues/1").json()["html_url"])
    assert "<h1>Mend &lt;b&gt;it&lt;/b&gt;</h1>" in shown
    assert "<strong>Please</strong>" in shown
    assert "<script>" not in shown
    assert "marker" not in shown
    assert "<p>On it.</p>" in shown
    assert '<span class="label">mulligan</span>' in shown


def test_a_reaction_is_shown_below_its_comment(github: SimulatedGitHub) -> None:
    github.world.open_issue(NAME, "Mend it", "Please", "zoe")
    said = github.post("issues/1/comments", {"body": "/mulligan retry"}).json()
    for content in ("eyes", "rocket"):
        github.post(f"issues/comments/{said['id']}/reactions", {"content": content})
    assert "<p>👀 🚀</p>" in page(github.get("issues/1").json()["html_url"])


def test_a_pull_request_and_its_repository_are_shown(github: SimulatedGitHub) -> None:
    push(github.bare, "work", {"new.txt": "new"})
    work = {"title": "Work", "head": "work", "base": "main", "draft": True}
    made = github.post("pulls", work).json()
    assert "work into main" in page(made["html_url"])
    assert "pull request #1 · draft" in page(made["html_url"])
    github.world.mark_ready(IssueName(NAME, 1), "ada")
    listed = page(made["html_url"].rpartition("/pull/")[0])
    assert f'<a href="/{NAME}/pull/{made["number"]}">#1 Work</a> · pull request, open' in listed
    github.post("pulls/1/reviews", {"event": "COMMENT", "body": "Say *why*."})
    assert github.ask("PUT", "pulls/1/merge", body={}).status_code == 200
    shown = page(made["html_url"])
    assert "pull request #1 · merged" in shown
    assert "· commented ·" in shown
    assert "<p>Say <em>why</em>.</p>" in shown


def test_what_is_not_there_is_still_an_error_of_the_api(github: SimulatedGitHub) -> None:
    html = github.get("").json()["html_url"]
    answer = requests.get(f"{html}/issues/99", timeout=120)
    assert (answer.status_code, answer.json()["message"]) == (404, "Not Found")
