"""One installation owns a ready label at a time, whatever others or strangers write on the ref."""

import shutil
import threading
from collections.abc import Generator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

import pytest

from mulligan.domain.errors import StandsBackError, UnavailableError
from mulligan.domain.ownership import LAPSE, RENEWAL
from mulligan.storage.database import Database, open_database
from mulligan.storage.owner_ref import (
    MAX_BYTES,
    OWNER_REF,
    TRUSTED,
    Installation,
    RecordedTimes,
    RefOwners,
)
from mulligan.storage.sightings import KEPT_RENEWALS, SqlSightings, installation_id
from world.ledgers import migrated, url_for
from world.owners import OwnedRemote, Steady
from world.repositories import git, make_remote
from world.trackers import FrozenClock

REPO = "octo/one"
SECOND = timedelta(seconds=1)


@dataclass
class Here:
    """A remote, a clock, and any number of installations with a database each."""

    directory: Path
    remote: OwnedRemote
    opened: dict[str, Database] = field(default_factory=dict[str, Database])

    @property
    def clock(self) -> FrozenClock:
        return self.remote.clock

    def installation(self, name: str, clock: FrozenClock | None = None) -> Installation:
        if name not in self.opened:
            self.opened[name] = open_database(migrated(self.directory / name / "mulligan.db"))
        own = clock or self.clock
        return Installation(name, SqlSightings(self.opened[name], own), own)

    def start(self, name: str) -> RefOwners:
        return self.remote.owners(self.installation(name))

    def copy_disk(self, name: str) -> RefOwners:
        """Start a copy of an installation, with the same id and all that it knew."""
        shutil.copytree(self.directory / name, self.directory / "copy", dirs_exist_ok=True)
        return self.remote.owners(replace(self.installation("copy"), id=name))


@pytest.fixture
def here(tmp_path: Path) -> Generator[Here]:
    made = Here(tmp_path, OwnedRemote(make_remote(tmp_path / "bare.git", {}), FrozenClock()))
    yield made
    for each in made.opened.values():
        each.close()


def stands_back(owners: RefOwners) -> bool:
    try:
        owners.require(REPO)
    except StandsBackError:
        return True
    return False


def test_the_second_stands_back_as_long_as_the_first_renews(here: Here) -> None:
    one, two = here.start("one"), here.start("two")
    one.require(REPO)
    for _ in range(10):
        here.clock.time += RENEWAL
        one.renew()
        assert stands_back(two)
    assert here.remote.stored() == {"mulligan": "one"}
    (back,) = two.standing_back()
    assert (back.repository, back.owner) == (REPO, "one")
    assert two.is_contested(REPO)
    assert not one.is_contested(REPO)


def test_the_second_takes_over_when_the_first_was_not_heard_for_five_minutes(here: Here) -> None:
    one, two = here.start("one"), here.start("two")
    one.require(REPO)
    assert stands_back(two)
    here.clock.time += LAPSE - SECOND
    assert stands_back(two)
    here.clock.time += SECOND
    two.require(REPO)
    assert (here.remote.stored(), two.standing_back()) == ({"mulligan": "two"}, [])
    # Who was frozen meanwhile finds out before it writes, and is not trusted for having been first.
    with pytest.raises(StandsBackError):
        one.require(REPO, fresh=False)
    one.renew()
    assert here.remote.stored() == {"mulligan": "two"}


def test_a_frozen_owner_whom_nobody_replaced_goes_on(here: Here) -> None:
    one = here.start("one")
    one.require(REPO)
    here.clock.time += timedelta(hours=8)
    one.require(REPO, fresh=False)
    assert stands_back(here.start("two"))


def test_time_counts_on_over_restarts_of_who_waits(here: Here) -> None:
    here.start("one").require(REPO)
    for _ in range(2):
        assert stands_back(here.start("two"))
        here.clock.time += LAPSE / 2
    here.start("two").require(REPO)


@pytest.mark.parametrize("wrong", [timedelta(days=-2), timedelta(days=2)])
def test_it_does_not_matter_what_the_others_clock_says(here: Here, wrong: timedelta) -> None:
    one, late = here.start("one"), FrozenClock(here.clock.time + wrong)
    two = here.remote.owners(here.installation("two", late), Steady(late))
    for _ in range(6):
        one.require(REPO)
        assert stands_back(two)
        here.clock.time += RENEWAL
        late.time += RENEWAL
    late.time += LAPSE - RENEWAL - SECOND
    assert stands_back(two)
    late.time += SECOND
    two.require(REPO)


def test_a_clock_that_is_set_back_starts_the_wait_again(here: Here) -> None:
    here.start("one").require(REPO)
    two = here.start("two")
    assert stands_back(two)
    here.clock.time -= timedelta(hours=2)
    assert stands_back(two)
    here.clock.time += LAPSE
    two.require(REPO)


def test_a_copied_disk_stands_back_while_its_original_renews(here: Here) -> None:
    original = here.start("one")
    original.require(REPO)
    copy = here.copy_disk("one")
    for _ in range(10):
        here.clock.time += RENEWAL
        original.renew()
        assert stands_back(copy)
    copy.release()
    assert here.remote.stored() == {"mulligan": "one"}
    here.clock.time += LAPSE
    copy.require(REPO)
    # The original is the one that stands back now, and also after it starts again.
    assert stands_back(original)
    original.release()
    assert stands_back(here.start("one"))
    assert not stands_back(copy)


def test_of_two_copies_that_never_owned_anything_one_owns(here: Here) -> None:
    here.installation("one")
    copy = here.copy_disk("one")
    here.start("one").require(REPO)
    assert stands_back(copy)


@pytest.mark.parametrize("is_pushed", [True, False])
def test_who_is_killed_at_a_renewal_owns_at_once_when_it_starts_again(
    here: Here, *, is_pushed: bool
) -> None:
    one, hook = here.start("one"), here.remote.bare / "hooks" / "pre-receive"
    one.require(REPO)
    here.clock.time += RENEWAL
    if not is_pushed:
        hook.parent.mkdir(exist_ok=True)
        hook.write_text("#!/bin/sh\nexit 1\n")
        hook.chmod(0o755)
    one.renew()
    hook.unlink(missing_ok=True)
    here.start("one").require(REPO)
    assert here.remote.renewals() == 2


def test_of_old_renewals_only_some_are_kept(here: Here) -> None:
    sightings = here.installation("one").sightings
    for number in range(KEPT_RENEWALS + 5):
        sightings.note_renewal(REPO, str(number))
    assert [sightings.is_own(REPO, str(number)) for number in (0, 4, 5)] == [False, False, True]
    assert not sightings.is_own("octo/two", "5")


def test_take_over_is_for_the_first_claim_only(here: Here) -> None:
    one = here.start("one")
    one.require(REPO)
    two = here.remote.owners(replace(here.installation("two"), take_over=True))
    assert two.is_contested(REPO)
    two.require(REPO)
    assert stands_back(one)
    here.remote.owners(replace(here.installation("one"), take_over=True)).require(REPO)
    assert stands_back(two)


def test_what_is_released_leaves_nothing_and_is_free_at_once(here: Here) -> None:
    with here.start("one") as one:
        one.require(REPO)
    assert here.remote.tip() == ""
    here.start("two").require(REPO)
    one.release()
    assert here.remote.stored() == {"mulligan": "two"}


def test_installations_with_different_labels_own_one_each(here: Here) -> None:
    here.remote.labels["two"] = "Other Bot"
    one, two = here.start("one"), here.start("two")
    one.require(REPO)
    two.require(REPO)
    here.clock.time += RENEWAL
    one.renew()
    two.renew()
    assert here.remote.stored() == {"mulligan": "one", "other bot": "two"}
    one.release()
    assert here.remote.stored() == {"other bot": "two"}


def test_a_label_that_is_renamed_is_given_up_for_the_new_one(here: Here) -> None:
    one = here.start("one")
    one.require(REPO)
    here.remote.label = "robot"
    one.require(REPO)
    assert here.remote.stored() == {"robot": "one"}


def test_workers_of_one_installation_own_together_and_renew_in_turn(here: Here) -> None:
    present = {"a", "b"}

    def worker(name: str) -> RefOwners:
        def may_release() -> bool:
            return not present - {name}

        return here.remote.owners(replace(here.installation("one"), may_release=may_release))

    workers = [worker(name) for name in sorted(present)]
    for each in workers:
        each.require(REPO)
    for _ in range(16):
        here.clock.time += RENEWAL / 4
        for each in workers:
            each.renew()
        assert stands_back(here.start("two"))
    assert 4 <= here.remote.renewals() <= 6
    workers[0].release()
    assert here.remote.stored() == {"mulligan": "one"}
    present.discard("a")
    workers[1].release()
    assert here.remote.tip() == ""


@pytest.mark.parametrize(
    ("age", "renewals"),
    [(0, 1), (40, 1), (45, 2), (600, 2), (-40, 1), (-45, 2)],
)
def test_a_worker_that_starts_renews_only_a_record_that_is_due(
    here: Here, age: int, renewals: int
) -> None:
    here.start("one").require(REPO)
    here.clock.time += age * SECOND
    started = here.start("one")
    started.require(REPO)
    assert here.remote.renewals() == renewals
    here.clock.time += TRUSTED * SECOND
    started.require(REPO, fresh=False)
    assert here.remote.renewals() == renewals + 1


def test_of_many_that_claim_at_once_one_owns(here: Here) -> None:
    all_of_them = [here.start(f"host-{number}") for number in range(5)]
    results = dict[int, bool]()

    def claim(number: int) -> None:
        results[number] = not stands_back(all_of_them[number])

    threads = [threading.Thread(target=claim, args=(number,)) for number in range(5)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(results.values()) == [False] * 4 + [True]


@pytest.mark.parametrize(
    "text",
    [
        "no json",
        "[]",
        '{"mulligan": {"installation": "UPPER; rm", "renewed": "2026-01-01T00:00:00Z"}}',
        '{"mulligan": {"installation": "a", "renewed": "2026-01-01T00:00:00Z", "renewals": -1}}',
        '{"mulligan": {"installation": "a", "renewed": "2026-01-01T00:00:00"}}',
        " " * (MAX_BYTES + 1),
        None,
    ],
)
def test_what_mulligan_cannot_have_written_owns_nothing(
    here: Here, tmp_path: Path, text: str | None
) -> None:
    bare = here.remote.bare
    (tmp_path / "text").write_text(text or "A ref may name a file, too.")
    forged = git(bare, "hash-object", "-w", str(tmp_path / "text"))
    if text is not None:
        tree = git(bare, "mktree", stdin=f"100644 blob {forged}\towner.json\n")
        forged = git(bare, "commit-tree", tree, "-m", "Forged")
    git(bare, "update-ref", OWNER_REF, forged)
    here.start("one").require(REPO)
    assert here.remote.stored() == {"mulligan": "one"}


def test_a_record_that_is_deleted_is_written_again(here: Here) -> None:
    one = here.start("one")
    one.require(REPO)
    git(here.remote.bare, "update-ref", "-d", OWNER_REF)
    here.clock.time += RENEWAL
    one.renew()
    assert here.remote.stored() == {"mulligan": "one"}


def test_a_token_that_may_not_write_the_ref_works_on_and_says_so_once(
    here: Here, capfd: pytest.CaptureFixture[str]
) -> None:
    hook = here.remote.bare / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    one = here.start("one")
    for _ in range(3):
        one.require(REPO)
        here.clock.time += RENEWAL
    one.release()
    logged = capfd.readouterr()
    assert (logged.out + logged.err).count("ownership_not_recorded") == 1


def test_a_remote_that_is_away_is_no_reason_to_write_and_none_to_give_up(here: Here) -> None:
    one, away = here.start("one"), here.remote.bare.with_name("away")
    one.require(REPO)
    here.remote.bare.rename(away)
    here.clock.time += RENEWAL
    one.renew()
    one.require(REPO, fresh=False)
    here.clock.time += RENEWAL
    with pytest.raises(UnavailableError):
        one.require(REPO, fresh=False)
    away.rename(here.remote.bare)
    one.require(REPO, fresh=False)


def test_a_run_of_the_action_goes_by_the_time_in_the_record(here: Here) -> None:
    here.start("one").require(REPO)
    runner = Installation("github-action", RecordedTimes(here.clock), here.clock)
    assert stands_back(here.remote.owners(runner))
    here.clock.time += LAPSE
    here.remote.owners(runner).require(REPO)


@pytest.mark.parametrize("url", ["sqlite", "postgres"])
def test_an_installation_keeps_its_id(
    url: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    request.param = url
    place = url_for(request, tmp_path)
    with open_database(place) as database:
        first = installation_id(database)
    with open_database(place) as database:
        assert installation_id(database) == first
