"""What an attempt was given is hashed over canonical JSON, the same on any machine."""

import hashlib
import json
from dataclasses import replace

import pytest
from pydantic import JsonValue

from mulligan.config.policy import Policy
from mulligan.domain.attachment import Attachment, Withheld
from mulligan.domain.issue_context import IssueContext
from mulligan.implement.prompt.manifest import (
    Manifest,
    canonical,
    hash_of,
    inputs_of,
    inputs_of_round,
    verify_manifests,
)
from world.attempts import case, check, red

pytestmark = pytest.mark.pure

MANIFEST = Manifest(
    inputs_hash="1" * 64,
    context_hash=None,
    delivered_hash="2" * 64,
    prior_manifest_hashes=("3" * 64,),
    agent="command",
    agent_version="2.1.0",
    sandbox="bubblewrap",
    cut={"previous_changes (lines)": 3},
)


def test_the_manifest_is_canonical_json() -> None:
    written = MANIFEST.canonical()
    assert written == (
        b'{"agent":"command","agent_version":"2.1.0","attachments":[],"context_hash":null,'
        b'"context_window_hash":null,'
        b'"cut":{"previous_changes (lines)":3},"delivered_hash":"%b","fix_round":0,"hidden":{},'
        b'"inputs_hash":"%b","prior_manifest_hashes":["%b"],"rendered_prompt_hash":null,'
        b'"sandbox":"bubblewrap"}' % (b"2" * 64, b"1" * 64, b"3" * 64)
    )
    assert MANIFEST.digest() == hashlib.sha256(written).hexdigest()
    assert Manifest.model_validate_json(written) == MANIFEST


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("é\n", '"é\\n"'.encode()),
        ({"b": 1, "a": [True, None, "x"]}, b'{"a":[true,null,"x"],"b":1}'),
        ("\ud800", b'"\xed\xa0\x80"'),
    ],
)
def test_canonical_json_has_one_form(value: str | dict[str, JsonValue], written: bytes) -> None:
    assert canonical(value) == written
    assert hash_of(value) == hashlib.sha256(written).hexdigest()


def hashed(found: IssueContext, policy: Policy | None = None, start_sha: str = "c0ffee") -> str:
    return hash_of(inputs_of(found, policy or Policy(), start_sha))


def test_the_inputs_are_the_issue_the_policy_the_attempts_and_the_start() -> None:
    inputs = inputs_of(case(red(1)), Policy(), "c0ffee")
    assert sorted(inputs) == [
        *("guidance", "issue", "learned", "policy", "prior_attempts", "start_sha")
    ]
    assert json.loads(canonical(inputs))["issue"]["comments"][1] == {
        "author": "bob",
        "body": "ISO dates only, I think.",
        "created_at": "2025-03-04T10:00:00+00:00",
    }


def test_every_input_changes_the_hash() -> None:
    base = case(red(1))
    others = [
        hashed(replace(base, issue=replace(base.issue, title="x"))),
        hashed(replace(base, issue=replace(base.issue, body="x"))),
        hashed(replace(base, issue=replace(base.issue, comments=()))),
        hashed(case(red(1), red(2))),
        hashed(base, Policy(max_issue_attempts=4)),
        hashed(base, start_sha="decade"),
    ]
    assert len({hashed(base), *others}) == 7


def test_what_the_agent_does_not_see_does_not_change_the_hash() -> None:
    base = case(red(1))
    moved = replace(base, issue=replace(base.issue, labels=frozenset({"x"}), is_open=False))
    assert hashed(moved) == hashed(base)


def test_the_inputs_of_a_fix_round_are_the_manifest_its_place_and_the_failed_checks() -> None:
    inputs = inputs_of_round("1" * 64, (1, 2), [check("tests")])
    assert (inputs["manifest"], inputs["fix_round"]) == ("1" * 64, [1, 2])
    assert hash_of(inputs) == hash_of(inputs_of_round("1" * 64, (1, 2), [check("tests")]))
    others = [
        inputs_of_round("2" * 64, (1, 2), [check("tests")]),
        inputs_of_round("1" * 64, (2, 2), [check("tests")]),
        inputs_of_round("1" * 64, (1, 2), [check("lint")]),
    ]
    assert hash_of(inputs) not in set(map(hash_of, others))


def test_an_attachment_that_is_gone_or_changed_breaks_the_record() -> None:
    kept, none = b"a picture", Attachment(address="https://h.example/b", withheld=Withheld.NO_TIME)
    names = {name: hashlib.sha256(kept).hexdigest() for name in ("1.png", "2.png", "3.png")}
    given = tuple(
        Attachment(address=f"https://h.example/{name}", name=name, sha256=digest)
        for name, digest in names.items()
    )
    manifest = Manifest(
        inputs_hash="",
        context_hash=None,
        delivered_hash="",
        prior_manifest_hashes=(),
        agent="command",
        attachments=(*given, none),
    )
    files = {"manifest.json": manifest.canonical(), "1.png": kept, "2.png": b"another"}
    meta = red(1).model_copy(update={"manifest_hash": manifest.digest()})
    (proof,) = verify_manifests([meta], lambda _, name: files.get(name))
    assert [line.partition(" ")[0] for line in proof.broken] == ["2.png", "3.png"]
    assert proof.broken[1] == "3.png is gone."
