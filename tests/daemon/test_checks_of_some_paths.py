"""A check with `paths` runs only if the change touches one; texts say which did not (CHECK-8)."""

import json
from collections.abc import Callable, Generator
from datetime import timedelta
from pathlib import Path

import pytest
from pydantic import JsonValue

from mulligan.daemon.once import run_once
from mulligan.daemon.worker import Worker
from mulligan.domain.events import BaselineRecorded, CheckFinished, CheckSkipped
from mulligan.domain.issue import IssueRef
from mulligan.domain.outcome import Outcome
from mulligan.domain.result import CheckKind, SkippedCheck, WorkerResultMeta
from world.behaviours import AgentInput, Behaviour
from world.repositories import commit_to
from world.scripted_verifier import ScriptedVerifier
from world.simulated import NAME
from world.workers import WorkerEnvironment, worker_environment

NOT_RUN = "not run: the change touches none of its paths"
NO_TEST = "No test verified the change: it touches none of the paths of the checks of kind test."
NOTHING = (
    "Nothing was verified, and no test verified the change: it touches none of the paths of the "
    "checks."
)


@pytest.fixture
def here(tmp_path: Path) -> Generator[WorkerEnvironment]:
    with worker_environment(tmp_path) as made:
        made.policy |= {"flaky_reruns": 0, "max_issue_attempts": 2, "review": {"settle": "0s"}}
        yield made


def writes(*paths: str) -> Behaviour:
    def agent(given: AgentInput) -> None:
        for path in paths:
            given.write(path, f"{len(given.prompt)}\n")

    return agent


def with_checks(here: WorkerEnvironment, *, lint: bool = False) -> dict[str, int]:
    """Use the checks `api` and `web`, each with a directory; count how often each one runs."""
    runs = dict[str, int]()

    def counted(name: str) -> Callable[[Path], None]:
        def run(_: Path) -> None:
            runs[name] = runs.get(name, 0) + 1

        return run

    checks = list[JsonValue]()
    for name in ("api", "web"):
        paths: list[JsonValue] = [f"{name}/"]
        checks.append({"name": name, "run": name, "kind": "test", "paths": paths})
    if lint:
        checks.append({"name": "lint", "run": "lint", "kind": "lint"})
    here.policy["checks"] = checks
    here.lines |= {name: counted(name) for name in ("api", "web", "lint")}
    return runs


def attempt(here: WorkerEnvironment, agent: Behaviour, ref: IssueRef | None = None) -> IssueRef:
    ref = ref or here.desk.ready()
    assert not Worker(here.context(agent), 1).visit(ref).problem
    return ref


def last(here: WorkerEnvironment, ref: IssueRef) -> WorkerResultMeta:
    return here.ledger.history(ref)[-1]


def names(meta: WorkerResultMeta) -> tuple[list[str], list[str]]:
    return [each.name for each in meta.checks], [each.name for each in meta.skipped_checks]


def pull_body(here: WorkerEnvironment) -> str:
    (pull,) = here.desk.hub.world.pulls_of(NAME)
    return pull.body or ""


def test_a_check_whose_paths_the_change_does_not_touch_does_not_run(
    here: WorkerEnvironment,
) -> None:
    runs = with_checks(here)
    ref = attempt(here, writes("api/a.py"))
    meta = last(here, ref)
    assert (meta.outcome, names(meta)) == (Outcome.SUCCEEDED, (["api"], ["web"]))
    assert meta.skipped_checks == (
        SkippedCheck(name="web", kind=CheckKind.TEST, command="web", paths=("web/",)),
    )
    assert "web" not in runs
    events = here.events(ref)
    assert [each.check.name for each in events if isinstance(each, CheckFinished)] == ["api"]
    assert [each.check.name for each in events if isinstance(each, CheckSkipped)] == ["web"]
    assert {each.name for each in events if isinstance(each, BaselineRecorded)} <= {"api"}


def test_the_pull_request_and_the_status_comment_name_it(here: WorkerEnvironment) -> None:
    with_checks(here)
    ref = attempt(here, writes("api/a.py"))
    body = pull_body(here)
    assert "The check `web` was not run: the change touches none of its paths." in body
    assert f"| web | {NOT_RUN} | `web` | – |" in body
    assert "The check `api` passed." in body
    (said,) = here.said(ref)
    assert "The check `web` was not run" in said


@pytest.mark.parametrize(
    ("lint", "doubt"),
    [
        (True, NO_TEST),
        (False, NOTHING),
    ],
)
def test_if_all_tests_are_skipped_the_pull_request_says_that_no_test_verified_the_change(
    here: WorkerEnvironment, *, lint: bool, doubt: str
) -> None:
    with_checks(here, lint=lint)
    ref = attempt(here, writes("docs/a.md"))
    meta = last(here, ref)
    assert names(meta) == (["lint"] if lint else [], ["api", "web"])
    body = pull_body(here)
    assert f"**{doubt}**" in body
    assert "The checks `api` and `web` were not run" in body
    assert here.ledger.status(ref).is_unverified is not lint


@pytest.mark.parametrize("path", ["package-lock.json", "native/a.c"])
def test_files_that_everything_depends_on_make_every_check_run(
    here: WorkerEnvironment, path: str
) -> None:
    with_checks(here)
    here.lines["install"] = lambda _: None
    here.policy["setup"] = {"run": ["install"], "inputs": ["native/"]}
    ref = attempt(here, writes("docs/a.md", path))
    meta = last(here, ref)
    assert [each.name for each in meta.checks if not each.is_set_up] == ["api", "web"]
    assert not meta.skipped_checks


def test_a_later_attempt_decides_by_its_own_change(here: WorkerEnvironment) -> None:
    with_checks(here)
    here.lines["api"] = lambda _: "red"
    here.policy["baseline"] = False
    ref = attempt(here, writes("api/a.py"))
    attempt(here, writes("web/a.ts"), ref)
    first, second = here.ledger.history(ref)
    assert (first.outcome, names(first)) == (Outcome.CHECKS_FAILED, (["api"], ["web"]))
    assert (second.outcome, names(second)) == (Outcome.SUCCEEDED, (["web"], ["api"]))


def test_the_prompt_after_a_failure_says_which_checks_did_not_run(here: WorkerEnvironment) -> None:
    with_checks(here)
    here.lines["api"] = lambda _: "red"
    here.policy["baseline"] = False
    prompts = list[str]()

    def agent(given: AgentInput) -> None:
        prompts.append(given.prompt)
        given.write("api/a.py", f"{len(prompts)}\n")

    ref = attempt(here, agent)
    attempt(here, agent, ref)
    assert "- web, within 10m, if the change touches `web/`: `web`" in prompts[0]
    assert "these checks run on what you leave: api (if you change its paths), web" in prompts[0]
    assert "Not run, because the change touches none of their paths: web." in prompts[1]


def test_work_on_a_pull_request_is_judged_by_its_whole_change(here: WorkerEnvironment) -> None:
    """Somebody else's commit touches `web`, and the attempt on top of it only `api`."""
    with_checks(here)
    ref = attempt(here, writes("api/a.py"))
    (pull,) = here.desk.hub.world.pulls_of(NAME)
    commit_to(here.desk.hub.bare, {"web/by-hand.ts": "1\n"}, ref.branch)
    here.desk.hub.world.review(IssueRef(NAME, pull.number), "wes", "REQUEST_CHANGES", "More.")
    here.desk.clock.time += timedelta(hours=1)
    run_once([NAME], here.context(writes("api/b.py")))
    first, second = here.ledger.history(ref)
    assert [file.path for file in second.files_modified] == ["api/b.py"]
    assert (names(first), names(second)) == ((["api"], ["web"]), (["api", "web"], []))


@pytest.mark.parametrize(
    ("path", "ran"), [("api/a.py", ["api", "lint"]), ("docs/a.md", ["api", "web", "lint"])]
)
def test_an_issue_that_needs_a_proof_does_not_do_without_its_tests(
    here: WorkerEnvironment, path: str, ran: list[str]
) -> None:
    with_checks(here, lint=True)
    here.policy |= {"reproduce": "required", "max_issue_attempts": 1}
    meta = last(here, attempt(here, writes(path)))
    assert (meta.outcome, names(meta)[0]) == (Outcome.CHECKS_FAILED, [*ran, "proof"])


def test_the_reviewer_reads_which_checks_did_not_run(here: WorkerEnvironment) -> None:
    with_checks(here)
    here.policy["reviewer"] = {"run": "review"}
    here.lines["review"] = lambda _: json.dumps({"verdict": "PASS"})
    context = here.context(writes("api/a.py"))
    assert not Worker(context, 1).visit(here.desk.ready()).problem
    assert isinstance(context.verifier, ScriptedVerifier)
    (asked,) = map(json.loads, context.verifier.questions)
    assert asked["checks"] == [{"name": "api", "passed": True}]
    assert asked["skipped_checks"] == ["web"]
