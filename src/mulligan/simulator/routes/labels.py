"""Labels: of a repository, and on an issue."""

import re

from mulligan.domain.issue import Permission
from mulligan.simulator import shapes
from mulligan.simulator.call import Call
from mulligan.simulator.fields import Fields, names, parse
from mulligan.simulator.issues import (
    NEW_LABEL_COLOR,
    add_labels,
    create_label,
    delete_label,
    remove_label,
    set_labels,
)
from mulligan.simulator.records import Issue, Label
from mulligan.simulator.refused import Resource, invalid, not_found
from mulligan.simulator.reply import Reply

COLOR = re.compile(r"[0-9a-fA-F]{6}")


def of_repository(call: Call) -> Reply:
    """List the repository's labels."""
    place = call.place
    return call.page(place.repository.labels, lambda label: shapes.label(place, label))


def create(call: Call) -> Reply:
    """Make a label; one who may not write is told that it is not there."""
    by, fields = call.doer(Permission.WRITE, not_found), call.fields
    color = fields.text("color") or NEW_LABEL_COLOR
    if not COLOR.fullmatch(color):
        raise invalid(Resource.LABEL, "color")
    label = create_label(by, fields.text("name") or "", color, fields.text("description"))
    shape = shapes.label(call.place, label)
    return Reply(201, shape, {"location": str(shape["url"])})


def read(call: Call) -> Reply:
    """Show a label."""
    return Reply(200, shapes.label(call.place, _label(call)))


def change(call: Call) -> Reply:
    """Change a label's name, colour or description."""
    by, label, fields = call.doer(Permission.WRITE, not_found), _label(call), call.fields
    name, color = fields.text("new_name") or label.name, fields.text("color") or label.color
    taken = by.repository.label(name)
    if taken and taken is not label:
        raise invalid(Resource.LABEL, "name", "already_exists")
    if not COLOR.fullmatch(color):
        raise invalid(Resource.LABEL, "color")
    label.name, label.color = name, color
    description = fields.text("description")
    label.description = label.description if description is None else description
    return Reply(200, shapes.label(call.place, label))


def delete(call: Call) -> Reply:
    """Delete a label; no issue carries it any more."""
    by, label = call.doer(Permission.WRITE, not_found), _label(call)
    delete_label(by, label)
    return Reply(204)


def of_issue(call: Call) -> Reply:
    """List the labels of an issue."""
    place = call.place
    return call.page(call.issue().labels, lambda label: shapes.label(place, label))


def add(call: Call) -> Reply:
    """Put labels on an issue."""
    issue = call.issue()
    add_labels(call.doer(Permission.TRIAGE), issue, _asked(call))
    return _all(call, issue)


def replace(call: Call) -> Reply:
    """Make the labels of an issue be these."""
    issue = call.issue()
    set_labels(call.doer(Permission.TRIAGE), issue, _asked(call))
    return _all(call, issue)


def remove(call: Call) -> Reply:
    """Take one label off an issue."""
    issue = call.issue()
    remove_label(call.doer(Permission.TRIAGE), issue, call.params["name"])
    return _all(call, issue)


def clear(call: Call) -> Reply:
    """Take all labels off an issue."""
    set_labels(call.doer(Permission.TRIAGE), call.issue(), [])
    return Reply(204)


def _asked(call: Call) -> list[str]:
    """Read labels, given as an object or, as GitHub still takes them, as a bare list."""
    value = parse(call.body)
    if isinstance(value, list):
        return names(value)
    asked = Fields.read(call.body).names("labels")
    if asked is None:
        raise invalid(Resource.LABEL, "labels", "missing_field")
    return asked


def _label(call: Call) -> Label:
    label = call.repository().label(call.params["name"])
    if label is None:
        raise not_found()
    return label


def _all(call: Call, issue: Issue) -> Reply:
    return Reply(200, [shapes.label(call.place, label) for label in issue.labels])


REPO = "/repos/{owner}/{repo}"
ROUTES = (
    ("GET", f"{REPO}/labels", of_repository),
    ("POST", f"{REPO}/labels", create),
    ("GET", f"{REPO}/labels/{{name:path}}", read),
    ("PATCH", f"{REPO}/labels/{{name:path}}", change),
    ("DELETE", f"{REPO}/labels/{{name:path}}", delete),
    ("GET", f"{REPO}/issues/{{number}}/labels", of_issue),
    ("POST", f"{REPO}/issues/{{number}}/labels", add),
    ("PUT", f"{REPO}/issues/{{number}}/labels", replace),
    ("DELETE", f"{REPO}/issues/{{number}}/labels", clear),
    ("DELETE", f"{REPO}/issues/{{number}}/labels/{{name:path}}", remove),
)
