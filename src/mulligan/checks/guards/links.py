"""By which other names a path can be reached, through the symbolic links of a tree. Pure."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

MAX_LINKS_ON_WAY = 40
"""Linux follows no more links for one name (path_resolution(7))."""

MAX_NAMES = 1000
"""Names of one path after which no longer ones are looked for: two links can make endless ones."""


@dataclass(frozen=True, slots=True)
class Links:
    """The links of a tree, by the places that decide where they lead.

    `through` has the places on the way of each link and their directories, `into` its end. Places
    are compared as `same_for` gives them, so that names that a file system treats as equal are.
    """

    through: Mapping[str, Sequence[str]]
    into: Mapping[str, Sequence[str]]
    same_for: Callable[[str], str]

    @classmethod
    def of(cls, targets: Mapping[str, str], same_for: Callable[[str], str]) -> "Links":
        """Read where each link of a tree leads.

        A link out of the tree leads nowhere, and one to a directory around itself to no new file.
        """
        known = {same_for(link): target for link, target in targets.items()}
        through, into = defaultdict[str, list[str]](list), defaultdict[str, list[str]](list)
        for link in targets:
            *way, end = _way(same_for(link), known, same_for)
            for place in dict.fromkeys(
                above for each in (*way, end) for above in _with_parents(each)
            ):
                through[place].append(link)
            if end and not same_for(link).startswith(f"{end}/"):
                into[end].append(link)
        return cls(through, into, same_for)

    def names_of(self, path: str) -> Sequence[str]:
        """Return the other names by which a path, or what lies behind it, can be reached."""
        found, new = {path: None}, [path]
        for _ in range(MAX_LINKS_ON_WAY):
            if not new or len(found) > MAX_NAMES:
                break
            behind = chain.from_iterable(map(self._via_link, new))
            new = [name for name in dict.fromkeys(behind) if name not in found]
            found.update(dict.fromkeys(new))
        return [*found][1:]

    def _via_link(self, name: str) -> Iterator[str]:
        steps, places = name.split("/"), self.same_for(name).split("/")
        yield from self.through.get("/".join(places), ())
        for depth in range(1, len(steps)):
            for link in self.into.get("/".join(places[:depth]), ()):
                yield "/".join([link, *steps[depth:]])


def _with_parents(place: str) -> Iterator[str]:
    steps = place.split("/") if place else []
    return ("/".join(steps[:depth]) for depth in range(1, len(steps) + 1))


def _way(link: str, known: Mapping[str, str], same_for: Callable[[str], str]) -> list[str]:
    """List the links on the way of a link, and its end last; "" if that is not in the tree."""
    way, place, left = list[str](), link.split("/")[:-1], _steps(known[link])
    while left and len(way) <= MAX_LINKS_ON_WAY:
        step = left.pop(0)
        if step == "/" or (step == ".." and not place):
            return [*way, ""]
        if step == "..":
            place.pop()
            continue
        place.append(same_for(step))
        here = "/".join(place)
        if here in known:
            way.append(here)
            place.pop()
            left = [*_steps(known[here]), *left]
    return [*way, "" if left else "/".join(place)]


def _steps(target: str) -> list[str]:
    """Split a target into its steps; an absolute one begins with `/`."""
    steps = [step for step in target.split("/") if step not in {"", "."}]
    return ["/", *steps] if target.startswith("/") else steps
