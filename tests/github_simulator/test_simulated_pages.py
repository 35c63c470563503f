"""The addresses for people lead to pages that a browser shows, in which nothing is run."""

import pytest
import requests

from github_simulator.app import running
from github_simulator.records import IssueName
from world.simulated import NAME, SimulatedGitHub, push

pytestmark = pytest.mark.parametrize("reach", [running], indirect=True)

PULL = IssueName(NAME, 1)


def page(url: str, status: int = 200) -> str:
    answer = requests.get(url, headers={"accept": "text/html,*/*;q=0.8"}, timeout=120)
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert answer.status_code == status
    return " ".join(answer.text.split())


def send(github: SimulatedGitHub, path: str, origin: str = "", **form: str) -> requests.Response:
    """Send a form as a browser does."""
    headers = {"origin": origin or github.url}
    url = f"{github.url}/{NAME}/{path}"
    return requests.post(url, form, headers=headers, timeout=120, allow_redirects=False)


def open_pull(github: SimulatedGitHub, **fields: bool) -> str:
    """Open a pull request; give the address of its page."""
    push(github.bare, "work", {"new.txt": "one\ntwo\n", "README.md": "# better\n"})
    work = {"title": "Work", "head": "work", "base": "main", **fields}
    return github.post("pulls", work).json()["html_url"]


@pytest.fixture
def ada(github: SimulatedGitHub) -> SimulatedGitHub:
    """A simulated GitHub whose pages the maintainer uses."""
    github.world.viewer = github.world.users["ada"]
    return github


def test_an_issue_is_shown_with_its_comments_and_labels(github: SimulatedGitHub) -> None:
    ref = github.world.open_issue(NAME, "Mend <b>it</b>", "**Please**\n\n<script>x</script>", "zoe")
    github.world.label(ref, "mulligan", "ada")
    github.world.unlabel(ref, "mulligan", "ada")
    github.post("issues/1/comments", {"body": "<!-- marker -->\n\nOn it, see #1."})
    shown = page(github.get("issues/1").json()["html_url"])
    assert '<html lang="en">' in shown
    assert "<h1>Mend &lt;b&gt;it&lt;/b&gt; " in shown
    assert "<strong>Please</strong>" in shown
    assert "<script>" not in shown
    assert "marker" not in shown
    assert f'On it, see <a href="/{NAME}/issues/1">#1</a>.' in shown
    assert "<strong>ada</strong> added the label" in shown
    assert "<strong>ada</strong> removed the label" in shown
    assert "<form" not in shown


def test_a_reaction_is_shown_below_its_comment(github: SimulatedGitHub) -> None:
    github.issue()
    said = github.post("issues/1/comments", {"body": "/mulligan retry"}).json()
    for content in ("eyes", "rocket"):
        github.post(f"issues/comments/{said['id']}/reactions", {"content": content})
    shown = page(github.get("issues/1").json()["html_url"])
    assert shown.index('title="wes: eyes">👀<') < shown.index('title="wes: rocket">🚀<')


def test_a_pull_request_and_its_repository_are_shown(github: SimulatedGitHub) -> None:
    address = open_pull(github, draft=True)
    assert "wants to merge <code>work</code> into <code>main</code>" in page(address)
    assert '<span class="state draft">' in page(address)
    github.world.mark_ready(PULL, "ada")
    listed = page(address.rpartition("/pull/")[0])
    assert page(f"{address.rpartition('/pull/')[0]}/pulls") == listed
    assert f'open</span> <a href="/{NAME}/pull/1">Work</a>' in listed
    assert f'<a href="/{NAME}">{NAME}</a>' in page(github.url)
    github.post("pulls/1/reviews", {"event": "COMMENT", "body": "Say *why*."})
    assert github.ask("PUT", "pulls/1/merge", body={}).status_code == 200
    shown = page(address)
    assert '<span class="state merged">' in shown
    assert "was merged into <code>main</code>" in shown
    assert "<strong>wes</strong> reviewed" in shown
    assert "<p>Say <em>why</em>.</p>" in shown


def test_the_changed_lines_are_shown_with_their_numbers(github: SimulatedGitHub) -> None:
    shown = page(f"{open_pull(github)}/files")
    deleted, added = shown.index('<tr class="deleted">'), shown.index('<tr class="added">')
    assert "<code># tools</code>" in shown[deleted:added]
    assert '<td class="number">1</td>' in shown[added:]
    assert "<code>two</code>" in shown[shown.index("new.txt") :]


def test_what_does_not_exist_is_an_error_page(github: SimulatedGitHub) -> None:
    assert "<h1>Not Found</h1>" in page(f"{github.url}/{NAME}/issues/99", 404)
    assert "<h1>Not Found</h1>" in page(f"{github.url}/{NAME}/wiki", 404)


def test_pages_count_for_no_rate_limit(github: SimulatedGitHub) -> None:
    github.issue()
    github.world.meter.limit = 0
    page(f"{github.url}/{NAME}/issues/1")
    assert github.world.requests == []


# Forms.


def test_without_a_viewer_nothing_can_be_sent(github: SimulatedGitHub) -> None:
    ref = github.issue()
    assert send(github, "issues/1/comments", body="Hello").status_code == 401
    assert github.world.comments_of(ref) == []


@pytest.mark.parametrize("origin", ["http://evil.example", "null"])
def test_another_site_can_send_nothing(ada: SimulatedGitHub, origin: str) -> None:
    ref = ada.issue()
    assert send(ada, "issues/1/comments", origin, body="Hello").status_code == 403
    assert ada.world.comments_of(ref) == []


def test_a_strange_name_of_this_machine_shows_nothing(ada: SimulatedGitHub) -> None:
    host = {"host": "evil.example"}
    assert requests.get(f"{ada.url}/{NAME}", headers=host, timeout=120).status_code == 403


def test_an_issue_is_opened_labelled_commented_closed_and_reopened(ada: SimulatedGitHub) -> None:
    ada.post("labels", {"name": "mulligan"})
    made = send(ada, "issues", title="Mend it", body="One\r\ntwo", label="mulligan")
    assert (made.status_code, made.headers["location"]) == (303, f"/{NAME}/issues/1")
    said = send(ada, "issues/1/comments", body="/mulligan retry")
    assert page(ada.url + said.headers["location"].partition("#")[0]).count("/mulligan retry") == 1
    send(ada, "issues/1/labels", remove="mulligan")
    send(ada, "issues/1/labels", add="bug")
    send(ada, "issues/1/comments", state="closed", body="Not now.")
    send(ada, "issues/1/comments", state="open")
    issue = ada.world.issue_of(IssueName(NAME, 1))
    assert (issue.body, issue.state, issue.label_names) == ("One\ntwo", "open", ["bug"])
    assert [one.body for one in issue.comments] == ["/mulligan retry", "Not now."]
    events = [(one.kind, one.actor.login) for one in issue.events]
    kinds = ("labeled", "unlabeled", "labeled", "closed", "reopened")
    assert events == [(kind, "ada") for kind in kinds]


def test_an_empty_comment_is_refused_with_the_reason(ada: SimulatedGitHub) -> None:
    ada.issue()
    refused = send(ada, "issues/1/comments", body=" ")
    assert refused.status_code == 422
    assert "<h1>Validation Failed</h1>" in refused.text


def test_a_review_is_sent_with_its_comments_on_lines(ada: SimulatedGitHub) -> None:
    address = open_pull(ada)
    head = ada.get("pulls/1").json()["head"]["sha"]
    form = {"head": head, "event": "REQUEST_CHANGES", "body": "No."}
    notes = {"note:2:new.txt": "Why?", "note:1:new.txt": " ", "note-before:1:README.md": "Keep."}
    assert send(ada, "pull/1/reviews", **form, **notes).status_code == 303
    (review,) = ada.get("pulls/1/reviews").json()
    note, before = ada.get("pulls/1/comments").json()
    assert (review["state"], review["user"]["login"]) == ("CHANGES_REQUESTED", "ada")
    assert (note["path"], note["line"], note["body"]) == ("new.txt", 2, "Why?")
    assert (before["side"], before["line"]) == ("LEFT", 1)
    assert before["diff_hunk"] == "@@ -1,1 +1,1 @@\n-# tools"
    answered = send(ada, "pull/1/replies", to=str(note["id"]), body="Because.")
    assert answered.headers["location"].startswith(f"/{NAME}/pull/1#discussion_r")
    assert [each["body"] for each in ada.get("pulls/1/reviews").json()] == ["No.", ""]
    files = page(f"{address}/files")
    assert "Why?" in files
    assert "Keep." in files[files.index('<tr class="deleted">') : files.index("# better")]
    shown = page(address)
    assert shown.index("requested changes") < shown.index("Why?") < shown.index("Because.")
    assert "<code>README.md</code> deleted line 1" in shown
    assert "<strong>ada</strong> reviewed" not in shown


@pytest.mark.parametrize(
    ("note", "status"),
    [
        ("note:3:new.txt", 422),
        ("note:1:old.txt", 422),
        ("note-before:1:new.txt", 422),
        ("note-before:2:README.md", 422),
        ("", 409),
    ],
)
def test_a_review_of_what_is_not_there_is_refused(
    ada: SimulatedGitHub, note: str, status: int
) -> None:
    open_pull(ada)
    head = ada.get("pulls/1").json()["head"]["sha"] if note else "0" * 40
    sent = send(ada, "pull/1/reviews", head=head, event="APPROVE", body="", **{note: "Why?"})
    assert sent.status_code == status
    assert ada.get("pulls/1/reviews").json() == []


def test_a_draft_is_made_ready_and_merged(ada: SimulatedGitHub) -> None:
    address = open_pull(ada, draft=True)
    assert "Ready for review" in page(address)
    send(ada, "pull/1/ready")
    assert "Merge pull request" in page(address)
    assert send(ada, "pull/1/merge").status_code == 303
    assert ada.get("pulls/1").json()["merged_by"]["login"] == "ada"
    assert "Reopen" not in page(address)


def test_a_pull_request_is_closed_and_reopened(ada: SimulatedGitHub) -> None:
    open_pull(ada)
    send(ada, "issues/1/comments", state="closed")
    assert ada.get("pulls/1").json()["state"] == "closed"
    send(ada, "issues/1/comments", state="open")
    assert ada.get("pulls/1").json()["state"] == "open"


def test_a_conflict_is_shown_instead_of_the_button(ada: SimulatedGitHub) -> None:
    address = open_pull(ada)
    push(ada.bare, "main", {"README.md": "# other\n"})
    assert "has conflicts with <code>main</code>" in page(address)
