"""What was done is not done twice, however much was done since, and the record stays small."""

from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mulligan.domain.status import (
    MAX_KEYS_PER_KIND,
    add_handled,
    is_handled,
    summarise_handled,
    trim_effects,
)

pytestmark = pytest.mark.pure

KINDS = ("comment", "review", "command", "conflict", "ci")
KEYS = st.builds("{}:{}".format, st.sampled_from(KINDS), st.integers(1, 10**6))


@given(st.lists(KEYS, max_size=400))
def test_what_was_heard_of_people_is_never_forgotten(keys: list[str]) -> None:
    heard: tuple[str, ...] = ()
    for key in keys:
        heard = add_handled(heard, key)
        assert is_handled(heard, key)
    said = [key for key in keys if key.startswith(("comment:", "review:"))]
    assert all(is_handled(heard, key) for key in said)
    assert len(heard) <= len(KINDS) * MAX_KEYS_PER_KIND + 2


@given(
    st.sampled_from(["comment", "review"]),
    st.integers(MAX_KEYS_PER_KIND + 2, 4 * MAX_KEYS_PER_KIND),
)
def test_what_comes_after_all_that_was_heard_is_new(kind: str, count: int) -> None:
    heard = add_handled((), *(f"{kind}:{number}" for number in range(1, count)))
    assert len(heard) == MAX_KEYS_PER_KIND + 1
    assert all(is_handled(heard, f"{kind}:{number}") for number in range(1, count))
    assert not is_handled(heard, f"{kind}:{count}")
    assert not is_handled(heard, "review:1" if kind == "comment" else "comment:1")


@given(st.lists(KEYS, max_size=250))
def test_in_sum_it_is_one_mark_for_each_kind_that_has_an_order(keys: list[str]) -> None:
    marks = summarise_handled(add_handled((), *keys))
    said = [key for key in keys if key.startswith(("comment:", "review:"))]
    assert all(is_handled(marks, key) for key in said)
    assert len(marks) == len({key.partition(":")[0] for key in said})
    assert summarise_handled(marks) == marks


def test_the_last_of_what_has_no_order_is_kept() -> None:
    heard = add_handled((), *(f"ci:{number:040}" for number in range(MAX_KEYS_PER_KIND + 5)))
    assert len(heard) == MAX_KEYS_PER_KIND
    assert is_handled(heard, f"ci:{MAX_KEYS_PER_KIND + 4:040}")
    assert not is_handled(heard, f"ci:{0:040}")


def test_a_key_is_kept_once() -> None:
    assert add_handled(("ci:a",), "ci:a", "ci:b") == ("ci:a", "ci:b")


@given(st.lists(st.integers(1, 10**6), max_size=300), st.integers(10**6, 10**7))
def test_the_effects_of_the_last_attempt_are_kept(numbers: list[int], last: int) -> None:
    effects = {"push:mulligan/issue-12": "c0ffee", "status_comment:issue": "7"}
    effects |= {f"reply:comment:{number}": "1" for number in numbers}
    effects |= {f"answer:{number}:1": "2" for number in numbers}
    effects |= {f"answer:{thread}:{last}": "3" for thread in range(50)}
    kept = dict(trim_effects(effects))
    assert len(kept) <= 2 * MAX_KEYS_PER_KIND + 2
    assert kept.items() <= effects.items()
    assert all(f"answer:{thread}:{last}" in kept for thread in range(50))
    assert {"push:mulligan/issue-12", "status_comment:issue"} <= kept.keys()


def test_what_was_done_last_is_kept_whatever_its_key() -> None:
    merges = {
        f"merge:{sha(number)}:{sha(number - 1)}": sha(number)
        for number in range(3 * MAX_KEYS_PER_KIND)
    }
    assert trim_effects(merges) == tuple(merges.items())[-MAX_KEYS_PER_KIND:]


def sha(number: int) -> str:
    """Make one up; some of the real ones have hardly a digit in them."""
    return sha256(str(number).encode()).hexdigest()[:40]
