"""The addresses for people: what `html_url` leads to."""

from mulligan.simulator.call import Call
from mulligan.simulator.pages import HTML, issue_page, repository_page
from mulligan.simulator.reply import Reply

TYPE = {"content-type": HTML}


def repository(call: Call) -> Reply:
    """Show a repository's issues and pull requests."""
    call.world.follow_branches(call.repository())
    return Reply(200, headers=TYPE, page=repository_page(call.repository()))


def issue(call: Call) -> Reply:
    """Show an issue, or a pull request."""
    return Reply(200, headers=TYPE, page=issue_page(call.repository(), call.issue()))


ROUTES = (
    ("GET", "/{owner}/{repo}/issues/{number}", issue),
    ("GET", "/{owner}/{repo}/pull/{number}", issue),
    ("GET", "/{owner}/{repo}", repository),
)
