"""What holds new work: a pause first, else every fault of the machine, and nothing less."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mulligan.domain.hold import EVERYTHING, Hold, Pause, hold_on
from mulligan.domain.host import Diagnosis, fault, fine, note, warning

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
AGENT = fault("agent", "The agent's program 'codex' was not found.", "Install it.")
GIT = fault("git", "Git 2.1 is too old.", "Install git 2.32 or newer.")
WELL = (fine("git", "Git is installed."), note("a", "b", "c"), warning("d", "e", "f"))


@pytest.mark.pure
@pytest.mark.parametrize(
    ("pauses", "faults", "said"),
    [
        ((), (), None),
        ((), WELL, None),
        (("o/other",), (), None),
        (
            ("o/r",),
            (AGENT,),
            "o/r has been paused since 2026-03-01 12:00 UTC. To resume: `mulligan resu",
        ),
        (
            (EVERYTHING,),
            (),
            "Everything has been paused since 2026-03-01 12:00 UTC. To resume: `mullig",
        ),
        (
            (),
            (*WELL, AGENT),
            "Mulligan starts no attempt until this is fixed: The agent's program 'codex' was not",
        ),
        (
            (),
            (AGENT, GIT),
            (
                "Mulligan starts no attempt until this is fixed: The agent's program 'codex' was"
                " not found. Install"
            ),
        ),
    ],
)
def test_a_repository_is_held_by_pauses_and_faults_only(
    pauses: tuple[str, ...], faults: tuple[Diagnosis, ...], said: str | None
) -> None:
    held = hold_on("o/r", [Pause(name, NOON) for name in pauses], faults)
    assert (held.reason[: len(said)] if held and said else held) == said
    assert held is None or held.is_fault is (said or "").startswith("Mulligan starts no attempt")


@pytest.mark.pure
@given(agents=st.lists(st.lists(st.sampled_from([AGENT, *WELL]))), machine_has_fault=st.booleans())
def test_missing_agents_hold_a_repository_only_together(
    *, agents: list[list[Diagnosis]], machine_has_fault: bool
) -> None:
    missing = [AGENT in each for each in agents]
    held = hold_on("o/r", (), (GIT,) if machine_has_fault else (), agents)
    assert bool(held) is (machine_has_fault or (any(missing) and all(missing)))
    named = held is not None and AGENT.message in held.reason
    assert named is (any(missing) and all(missing))


@pytest.mark.pure
def test_the_reason_ends_with_what_to_do() -> None:
    assert hold_on("o/r", [Pause("o/r", NOON)], ()) == Hold(
        "o/r has been paused since 2026-03-01 12:00 UTC. To resume: `mulligan resume o/r`.",
        on_issues="An operator paused this repository at 2026-03-01 12:00 UTC, and can resume it.",
    )
    held = hold_on("o/r", (), [GIT])
    assert held
    assert held.reason.endswith("Install git 2.32 or newer.")
