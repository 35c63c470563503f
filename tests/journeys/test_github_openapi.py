"""Every request of an issue's life, and every answer of the simulator, as GitHub describes them."""

from pathlib import Path

import pytest
from pydantic import JsonValue

from world.openapi import Exchange, exchanges_of, schema_violations
from world.place import mulligan_installation

FILES = {"a.txt": "one\n", "test.sh": "grep -q two a.txt\n"}
AGENT = """
if os.environ['MULLIGAN_ATTEMPT'] == '2' and 'Good' in prompt:
    pathlib.Path('a.txt').write_text('two\\n')
else:
    pathlib.Path('b.txt').write_text(os.environ['MULLIGAN_ATTEMPT'])
"""
CHECK = {"name": "two", "run": "sh test.sh", "kind": "test"}


def test_every_request_of_a_life_is_one_that_github_describes(tmp_path: Path) -> None:
    drafts: JsonValue = {"draft_pr": True}
    settings: JsonValue = {"labels": ["robot"], "reviewers": ["wes"], "check_run": True}
    with mulligan_installation(
        tmp_path, FILES, [CHECK], pull_request=settings, escalation=drafts
    ) as here:
        here.world.exchanges = []
        here.agent(AGENT)
        good = here.issue("Good")
        here.issue("Hopeless")
        assert here.run("doctor").returncode == 0
        assert here.run("once").returncode == 3
        here.world.comment(good, "/mulligan status", "wes")
        assert here.run("once").returncode == 0
        asked = exchanges_of(here.world)
    verbs = {(each.method, each.path.rsplit("/", 1)[1]) for each in asked}
    assert {("POST", "pulls"), ("POST", "comments"), ("POST", "labels")} <= verbs
    assert {("POST", "reactions"), ("POST", "check-runs")} <= verbs
    found = [wrong for each in asked for wrong in schema_violations(each)]
    assert found == [], "\n".join(dict.fromkeys(found))


LABELS = "/repos/o/r/issues/1/labels"
SENT: JsonValue = {"labels": ["a"]}
WRONG: JsonValue = {"labels": [1]}
LABEL: JsonValue = {
    "id": 1,
    "node_id": "n",
    "url": "http://x/labels/a",
    "name": "a",
    "color": "fff",
    "default": False,
    "description": "",
}


@pytest.mark.parametrize(
    ("exchange", "wrong"),
    [
        (Exchange("POST", LABELS, {}, SENT, 200, [LABEL]), ""),
        (Exchange("GET", "/repos/o/r/nothing", {}, None, 200, None), "no such request"),
        (Exchange("GET", LABELS, {"sort": "name"}, None, 200, []), "query sort is not described"),
        (Exchange("GET", LABELS, {"page": "2"}, {"a": 1}, 200, []), "a body is sent"),
        (Exchange("POST", LABELS, {}, WRONG, 200, []), "sent"),
        (Exchange("GET", LABELS, {}, None, 200, [{"name": "a"}]), "answered: 0"),
        (Exchange("GET", LABELS, {}, None, 299, []), "status 299 is not described"),
    ],
)
def test_what_github_does_not_describe_is_found(exchange: Exchange, wrong: str) -> None:
    found = list(schema_violations(exchange))
    assert bool(found) is bool(wrong)
    assert wrong in "".join(found)
