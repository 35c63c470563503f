"""Several workers on one PostgreSQL: each issue is one worker's, and another's when that dies."""

import http.client
import re
import signal
import time
from collections.abc import Callable, Generator
from pathlib import Path

import psycopg
import pytest

from mulligan.domain.outcome import Outcome
from mulligan.domain.recorded_effects import StageShown, StatusWritten
from mulligan.interfaces.bootstrap.stores import at_work
from world.fleet import Fleet, fleet
from world.issue_names import ref_of
from world.place import NAME
from world.postgres import Server, server
from world.repositories import branch_head

WRITE = "pathlib.Path('notes.txt').write_text(os.environ['MULLIGAN_ATTEMPT'])\n"
STARTED = "(pathlib.Path.home() / 'started').touch()\nimport time\n"
FIRST_WAITS = f"{STARTED}if os.environ['MULLIGAN_ATTEMPT'] == '1': time.sleep(30)\n{WRITE}"
REVIEW = ["mulligan:review"]
OPEN = re.compile(r"event=dashboard_open address=http://127.0.0.1:(\d+)/ key_file=(\S+)")


@pytest.fixture(params=["polling", pytest.param("fleet", marks=pytest.mark.deep)])
def crew(request: pytest.FixtureRequest, tmp_path: Path, postgres_url: str) -> Generator[Fleet]:
    engine: str = request.param
    with fleet(tmp_path, postgres_url, engine, fleet=2) as made:
        yield made


def get(port: int, path: str, key: str = "") -> str:
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    line.request("GET", path, headers={"Authorization": f"Bearer {key}"})
    content = line.getresponse().read().decode()
    line.close()
    return content


def until(happened: Callable[[], bool]) -> None:
    timeout = time.monotonic() + 120
    while not happened():
        assert time.monotonic() < timeout
        time.sleep(0.05)


@pytest.mark.deep
def test_three_workers_share_the_work_and_keep_to_the_limit_of_all(crew: Fleet) -> None:
    crew.place.agent(f"import time\ntime.sleep(0.3)\n{WRITE}")
    issues = [crew.place.issue(f"Mend {n}") for n in range(3)]
    for name in ("one", "two", "three"):
        crew.start(name)
    world = crew.place.world
    until(lambda: all(world.labels_of(ref) == REVIEW for ref in issues))
    outsider = crew.worker("outsider").operator()
    histories = [crew.history(ref) for ref in issues]
    assert [len(each) for each in histories] == [1] * 3
    assert re.fullmatch(r"Each of \S+:\d+, \S+:\d+ and \S+:\d+", at_work(outsider) or "")
    assert len({meta.worker for (meta,) in histories}) > 1
    assert crew.most_at_once() <= 2
    assert len(world.pulls_of(NAME)) == 3
    assert [len(crew.place.comments(ref)) for ref in issues] == [1] * 3


@pytest.mark.deep
def test_what_a_killed_worker_had_is_taken_over_by_another(crew: Fleet) -> None:
    crew.place.agent(FIRST_WAITS)
    ref = crew.place.issue()
    first = crew.start("one")
    until(crew.worker("one").agent_started)
    crew.start("two")
    first.kill()
    until(lambda: crew.place.world.labels_of(ref) == REVIEW)
    dead, done = crew.history(ref)
    assert (dead.outcome, done.outcome) == (Outcome.INTERRUPTED, Outcome.SUCCEEDED)
    assert dead.worker != done.worker
    assert len(crew.place.world.pulls_of(NAME)) == 1
    assert len(crew.place.comments(ref)) == 1


def lasting(crew: Fleet) -> list[int]:
    """Leave out the status comment: it may have been put off, and any worker writes it then."""
    return [
        each.seq for each in crew.events() if not isinstance(each.event, StatusWritten | StageShown)
    ]


@pytest.mark.deep
def test_a_frozen_worker_that_wakes_up_publishes_nothing(crew: Fleet) -> None:
    crew.place.agent(FIRST_WAITS.replace("30", "3"))
    ref = crew.place.issue()
    frozen = crew.start("one")
    until(crew.worker("one").agent_started)
    frozen.send_signal(signal.SIGSTOP)
    other = crew.start("two")
    until(lambda: crew.place.world.labels_of(ref) == REVIEW)
    other.send_signal(signal.SIGTERM)
    other.wait(120)
    head, recorded = branch_head(crew.place.bare, ref.branch), lasting(crew)
    frozen.send_signal(signal.SIGCONT)
    time.sleep(1.5)
    frozen.send_signal(signal.SIGTERM)
    frozen.wait(120)
    assert branch_head(crew.place.bare, ref.branch) == head
    assert lasting(crew) == recorded
    assert [meta.outcome for meta in crew.history(ref)] == [
        Outcome.INTERRUPTED,
        Outcome.SUCCEEDED,
    ]
    assert len(crew.place.world.pulls_of(NAME)) == 1
    assert len(crew.place.comments(ref)) == 1


@pytest.mark.deep
def test_verified_work_of_a_worker_that_died_is_published_by_another(crew: Fleet) -> None:
    """The commit is in no place that both can reach but the database."""
    crew.place.agent(WRITE)
    hook = crew.place.bare / "hooks" / "pre-receive"
    hook.write_text(f"#!/bin/sh\ntouch {crew.place.directory}/pushing\nsleep 60\n")
    hook.chmod(0o755)
    ref = crew.place.issue()
    first = crew.start("one")
    until((crew.place.directory / "pushing").exists)
    first.kill()
    hook.unlink()
    crew.start("two")
    until(lambda: crew.place.world.labels_of(ref) == REVIEW)
    (meta,) = crew.history(ref)
    assert meta.outcome is Outcome.SUCCEEDED
    assert branch_head(crew.place.bare, ref.branch) == meta.head_sha


@pytest.mark.deep
@pytest.mark.parametrize("engine", ["polling", "fleet"])
def test_an_attempt_goes_on_while_the_database_is_away_for_a_moment(
    tmp_path: Path, engine: str
) -> None:
    with server() as own, own.fresh() as url, fleet(tmp_path, url, engine) as crew:
        crew.place.agent(f"{STARTED}time.sleep(1)\n{WRITE}")
        ref = crew.place.issue()
        crew.start("one")
        until(crew.worker("one").agent_started)
        own.stop()
        time.sleep(1.5)
        own.start()
        until(lambda: crew.place.world.labels_of(ref) == REVIEW)
        (meta,) = crew.history(ref)
        assert meta.outcome is Outcome.SUCCEEDED


@pytest.mark.parametrize("engine", [pytest.param("polling", marks=pytest.mark.deep), "fleet"])
def test_a_worker_that_starts_before_its_database_waits_for_it(tmp_path: Path, engine: str) -> None:
    with server() as own, own.fresh() as url, fleet(tmp_path, url, engine) as crew:
        crew.place.agent(WRITE)
        ref = crew.place.issue()
        own.stop()
        crew.start("one")
        until(lambda: "configuration_not_loaded" in crew.log_of("one"))
        own.start()
        until(lambda: crew.place.world.labels_of(ref) == REVIEW)
        log = crew.log_of("one")
    assert log.count("configuration_not_loaded") == 1
    assert "cannot be reached" in log


def test_a_worker_does_not_start_on_the_ledger_of_a_newer_version(
    tmp_path: Path, postgres: Server
) -> None:
    with postgres.fresh() as url, fleet(tmp_path, url, "fleet") as crew:
        with psycopg.connect(url, autocommit=True) as line:
            line.execute("UPDATE mulligan_version SET version_num = '9999'")
        assert crew.start("one").wait(120) == 2
        assert "was written by a newer Mulligan; use that version" in crew.log_of("one")
        assert "jobs_not_fetched" not in crew.log_of("one")


@pytest.mark.deep
def test_each_worker_serves_a_dashboard_of_the_work_of_all(crew: Fleet) -> None:
    crew.place.agent(WRITE)
    crew.place.configure(dashboard="127.0.0.1:0")
    ref = crew.place.issue("Mend it")
    for name in ("one", "two"):
        crew.start(name)
    until(lambda: crew.place.world.labels_of(ref) == REVIEW)
    until(lambda: all(OPEN.search(crew.log_of(name)) for name in ("one", "two")))
    for name in ("one", "two"):
        opened = OPEN.search(crew.log_of(name))
        assert opened
        key = Path(opened[2])
        assert key == crew.place.directory / name / "work" / "dashboard.key"
        assert get(int(opened[1]), "/readyz") == "ok\n"
        assert 'mulligan_issues{stage="review"} 1.0' in get(int(opened[1]), "/metrics")
        page = f"/issues/{NAME}/{ref.number}"
        assert "Mend it" in get(int(opened[1]), page, key.read_text().strip())
        diff = get(int(opened[1]), f"{page}/attempts/1/diff", key.read_text().strip())
        assert "notes.txt" in diff


@pytest.mark.deep
def test_a_probe_takes_no_connection_and_a_reload_or_statistics_one_for_a_moment(
    tmp_path: Path, postgres_url: str
) -> None:
    count = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'mulligan'"
    with (
        fleet(tmp_path, postgres_url, "fleet") as crew,
        psycopg.connect(postgres_url, autocommit=True) as line,
    ):

        def connections() -> int:
            row = line.execute(count).fetchone()
            assert row
            return int(row[0])

        crew.place.configure(dashboard="127.0.0.1:0")
        crew.start("one")
        until(lambda: bool(OPEN.search(crew.log_of("one"))))
        opened = OPEN.search(crew.log_of("one"))
        assert opened
        port, key = int(opened[1]), Path(opened[2]).read_text().strip()
        until(lambda: get(port, "/readyz") == "ok\n" and connections() == 3)
        for _ in range(20):
            assert get(port, "/readyz") == "ok\n"
            assert connections() == 3
        most = list[int]()
        for number in range(5):
            assert "Statistics" in get(port, "/stats", key)
            most.append(connections())
            crew.worker("one").configure(poll={"interval": f"{301 + number}ms"})
            loaded = number + 2
            while crew.log_of("one").count("event=configuration_loaded") < loaded:
                most.append(connections())
        until(lambda: connections() == 3)
        assert max(most) <= 4


@pytest.mark.deep
@pytest.mark.parametrize("engine", ["polling", "fleet"])
def test_once_and_work_need_no_job_engine(tmp_path: Path, postgres_url: str, engine: str) -> None:
    with fleet(tmp_path, postgres_url, engine) as crew:
        crew.place.agent(WRITE)
        by_label = crew.place.issue("Mend it")
        here = crew.worker("one")
        assert here.run("once").returncode == 0
        by_command = ref_of(crew.place.world.open_issue(NAME, "Mend it too", "Please.", "zoe"))
        assert here.run("work", str(by_command)).returncode == 0
        for ref in (by_label, by_command):
            assert crew.place.world.labels_of(ref) == REVIEW
            assert [meta.outcome for meta in crew.history(ref)] == [Outcome.SUCCEEDED]
        with psycopg.connect(postgres_url) as line:
            jobs = "SELECT count(*) FROM procrastinate_jobs"
            if line.execute("SELECT to_regclass('procrastinate_jobs')").fetchone() != (None,):
                assert line.execute(jobs).fetchone() == (0,)
