"""What a status remembers so that nothing is done twice, within bounds. Pure."""

import re
from collections.abc import Iterable

MOST = 100
"""How many keys of a kind are kept; more than one review can have threads."""

BELOW = "<="
"""Stands in a key for all of its kind with that number or a lower one."""

NUMBERED = re.compile(r"(comment|review):([0-9]+)")
"""Keys whose numbers GitHub gives in order."""


def is_heard(heard: Iterable[str], key: str) -> bool:
    """Tell whether something was acted on; of comments and reviews also what was left out since."""
    named = NUMBERED.fullmatch(key)
    return any(each == key or (named and _covers(each, named)) for each in heard)


def remembered(heard: tuple[str, ...], *keys: str) -> tuple[str, ...]:
    """Add what was acted on; what goes for it is the oldest of its kind.

    Of comments and reviews a mark stays, below which all count as heard.
    """
    kept = tuple(dict.fromkeys((*heard, *keys)))
    for kind in dict.fromkeys(map(_kind, keys)):
        of_kind = [each for each in kept if _kind(each) == kind and BELOW not in each]
        if len(of_kind) > MOST:
            oldest = sorted(of_kind, key=_numbers) if _is_numbered(kind) else of_kind
            gone = set(oldest[:-MOST])
            mark = _marked(kind, kept, gone)
            kept = (*mark, *(each for each in kept if each not in gone))
    return kept


def summed(heard: Iterable[str]) -> tuple[str, ...]:
    """Give for comments, and for reviews, one mark below which all count as heard."""
    highest = dict[str, int]()
    for key in heard:
        if _is_numbered(kind := _kind(key)):
            highest[kind] = max(highest.get(kind, 0), _numbers(key)[-1])
    return tuple(f"{kind}{BELOW}{number}" for kind, number in sorted(highest.items()))


def _marked(kind: str, kept: tuple[str, ...], gone: set[str]) -> tuple[str, ...]:
    """Give the mark that stands for what goes; the one before goes with it."""
    if not _is_numbered(kind):
        return ()
    before = {each for each in kept if each.startswith(f"{kind}{BELOW}")}
    highest = max(_numbers(each)[-1] for each in gone | before)
    gone |= before
    return (f"{kind}{BELOW}{highest}",)


def within_bounds(effects: dict[str, str]) -> tuple[tuple[str, str], ...]:
    """Keep of each effect those that were done last; `effects` are in the order of their doing."""
    by_name = dict[str, list[str]]()
    for key in effects:
        by_name.setdefault(key.partition(":")[0], []).append(key)
    gone = {key for keys in by_name.values() for key in keys[:-MOST]}
    return tuple((key, given) for key, given in effects.items() if key not in gone)


def _covers(mark: str, named: re.Match[str]) -> bool:
    kind, found, number = mark.partition(BELOW)
    return bool(found) and kind == named[1] and int(named[2]) <= int(number)


def _kind(key: str) -> str:
    return re.split(r":|<=", key, maxsplit=1)[0]


def _is_numbered(kind: str) -> bool:
    return kind in {"comment", "review"}


def _numbers(key: str) -> tuple[int, ...]:
    """Give the numbers in a key, the last one first: that of the attempt, where it has one."""
    return tuple(int(number) for number in reversed(re.findall(r"[0-9]+", key)))
