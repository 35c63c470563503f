"""Events and the timeline: who did what to an issue, and when."""

from mulligan.simulator import shapes
from mulligan.simulator.call import Call
from mulligan.simulator.records import Event, Issue
from mulligan.simulator.refused import not_found
from mulligan.simulator.reply import Reply
from mulligan.simulator.shapes import Shape


def of_issue(call: Call) -> Reply:
    """List the events of an issue, oldest first."""
    place = call.place
    return call.page(call.issue().events, lambda event: shapes.event(place, event))


def of_repository(call: Call) -> Reply:
    """List the events of all issues, newest first; each says of which issue it is."""
    return call.page(_all(call), lambda pair: _with_issue(call, *pair))


def read(call: Call) -> Reply:
    """Show an event."""
    for issue, event in _all(call):
        if event.id == call.number:
            return Reply(200, _with_issue(call, issue, event))
    raise not_found()


def timeline(call: Call) -> Reply:
    """List events and comments of an issue together, oldest first."""
    place, issue = call.place, call.issue()
    entries = [(event.id, shapes.event(place, event)) for event in issue.events]
    entries += [(one.id, shapes.commented(place, issue, one)) for one in issue.comments]
    # Ids are given in the order of time.
    entries.sort(key=lambda entry: entry[0])
    return call.page(entries, lambda entry: entry[1])


def _all(call: Call) -> list[tuple[Issue, Event]]:
    issues = call.repository().visible()
    pairs = [(issue, event) for issue in issues for event in issue.events]
    return sorted(pairs, key=lambda pair: pair[1].id, reverse=True)


def _with_issue(call: Call, issue: Issue, event: Event) -> Shape:
    place = call.place
    return {**shapes.event(place, event), "issue": shapes.issue(place, issue)}


ISSUES = "/repos/{owner}/{repo}/issues"
ROUTES = (
    ("GET", f"{ISSUES}/events", of_repository),
    ("GET", f"{ISSUES}/events/{{number}}", read),
    ("GET", f"{ISSUES}/{{number}}/events", of_issue),
    ("GET", f"{ISSUES}/{{number}}/timeline", timeline),
)
