"""Read YAML with the line of each value, and report mistakes, one line each. Pure."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count

import yaml
from pydantic import JsonValue, TypeAdapter

from mulligan.domain.errors import ConfigError
from mulligan.text.escape import one_line

# Mistakes


@dataclass(frozen=True, slots=True)
class ConfigMistake:
    """One mistake: its line, if known, its dotted key, and what is wrong.

    `message` completes a sentence that begins with the key, says what to do, and has no full stop.
    """

    line: int | None
    key: str
    message: str

    def __str__(self) -> str:
        at = f"line {self.line}: " if self.line else ""
        return f"{at}{self.sentence}"

    @property
    def sentence(self) -> str:
        """Return the mistake as a sentence, without its line."""
        end = "" if self.message.endswith("?") else "."
        return f"{self.key} {self.message}{end}".lstrip()


MAX_LISTED = 20


class MistakesError(ConfigError):
    """A configuration file is invalid; `mistakes` are all those found in `where`."""

    def __init__(self, where: str, mistakes: Sequence[ConfigMistake]) -> None:
        self.where = where
        self.mistakes = tuple(sorted(mistakes, key=lambda each: each.line or 0))
        super().__init__(_listed(where, self.mistakes))


def _listed(where: str, mistakes: Sequence[ConfigMistake]) -> str:
    if len(mistakes) == 1:
        return f"{where}{', ' if mistakes[0].line else ': '}{mistakes[0]}"
    lines = [f"{where} has {len(mistakes)} mistakes:", *map(str, mistakes[:MAX_LISTED])]
    if len(mistakes) > MAX_LISTED:
        lines.append(f"and {len(mistakes) - MAX_LISTED} more.")
    return "\n  ".join(lines)


def split_mistakes(error: ConfigError) -> tuple[ConfigError, ...]:
    """Return one error per mistake, for output as a list."""
    if not isinstance(error, MistakesError):
        return (error,)
    return tuple(MistakesError(error.where, [mistake]) for mistake in error.mistakes)


class NotReadableError(Exception):
    """The text is no valid configuration; `mistakes` gives the reasons."""

    def __init__(self, *mistakes: ConfigMistake) -> None:
        super().__init__(*mistakes)
        self.mistakes = mistakes


# Reading YAML

KeyPath = tuple[str | int, ...]
"""The keys and list positions that lead to a value."""


@dataclass(frozen=True, slots=True)
class Position:
    """The line of a value, from 1, and the value in words."""

    line: int
    found: str
    is_plain: bool = False


@dataclass(frozen=True, slots=True)
class Document:
    """The values of a file, and the position of each."""

    content: dict[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    spots: Mapping[KeyPath, Position] = field(default_factory=dict[KeyPath, Position])

    def line(self, place: KeyPath) -> int:
        """Return the line of a value; of a missing one, the line of its parent."""
        while place and place not in self.spots:
            place = place[:-1]
        return self.spots[place].line if place else 1


TAG = "tag:yaml.org,2002:"
MERGE, NULL, TEXT, TIMESTAMP = f"{TAG}merge", f"{TAG}null", f"{TAG}str", f"{TAG}timestamp"


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader, except that it reads a date as text."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - PyYAML's own attribute
        first: [each for each in resolvers if each[0] != TIMESTAMP]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


MAPPING: TypeAdapter[dict[str, JsonValue]] = TypeAdapter(dict[str, JsonValue])


MAX_CHARS = 1024 * 1024
"""A larger file is not parsed: PyYAML takes a minute for 30 million characters in one line."""


def read_document(text: str) -> Document:
    """Parse YAML; NotReadableError if it is invalid, or uses YAML that no configuration needs."""
    if len(text) > MAX_CHARS:
        message = f"the file has over {MAX_CHARS} characters; shorten it"
        raise NotReadableError(ConfigMistake(None, "", message))
    try:
        return _read(_Loader(text))
    except yaml.MarkedYAMLError as error:
        raise NotReadableError(_of_yaml(error)) from error
    except yaml.reader.ReaderError as error:
        line = text[: error.position].count("\n") + 1
        message = "YAML does not allow this character; remove it"
        raise NotReadableError(ConfigMistake(line, "", message)) from error
    except RecursionError as error:
        message = "the file is nested too deeply, or contains itself; write it without the nesting"
        raise NotReadableError(ConfigMistake(None, "", message)) from error
    except ValueError as error:
        found = one_line(str(error), MAX_SHOWN_CHARS)
        message = f"a value does not match its YAML tag ({found}); write it without the tag"
        raise NotReadableError(ConfigMistake(None, "", message)) from error


def _read(loader: _Loader) -> Document:
    node = loader.get_single_node()
    if node is None:
        return Document()
    if not isinstance(node, yaml.MappingNode):
        message = f"the file is {_found(node)}; write keys and values, like `agent: …`"
        raise NotReadableError(ConfigMistake(_line(node), "", message))
    if wrong := tuple(_mistakes(node, (), count())):
        raise NotReadableError(*wrong)
    read: Callable[[yaml.Node], object] = loader.construct_document  # pyright: ignore[reportUnknownMemberType,reportUnknownVariableType] - the stubs lack its types
    content = MAPPING.validate_python(read(node))
    return Document(content, dict(_spots(node, ())))


YAML_MESSAGES = (
    (re.compile(r"found character '\\t' .*"), "there is a tab here; indent with spaces"),
    (re.compile(r"(mapping values are not allowed here)"), r"\1; check the indentation"),
    (re.compile(r"found unexpected end of stream"), "the closing quote is missing"),
    (re.compile(r"but found another document"), "a second document begins here; keep one"),
    (re.compile(r"'<stream end>'"), "the end of the file"),
    (re.compile(r"'<document start>'"), "`---`"),
)
"""Messages of PyYAML, with clearer replacements."""


def _of_yaml(error: yaml.MarkedYAMLError) -> ConfigMistake:
    message = error.problem or "it is invalid"
    for pattern, better in YAML_MESSAGES:
        message = pattern.sub(better, message)
    mark, begin = error.problem_mark, error.context_mark
    line = mark.line + 1 if mark else None
    if mark and begin and begin.line != mark.line:
        message += f", in what begins in line {begin.line + 1}"
    return ConfigMistake(line, "", f"this is not YAML: {message}")


def dotted(place: KeyPath) -> str:
    """Return a path in dotted form: `repositories.0.name`."""
    return ".".join(str(part) for part in place)


# Valid YAML that no configuration needs

MAX_VALUES = 20_000
"""Limit of values: nested aliases could otherwise expand beyond any machine's memory."""

PLAIN = {f"{TAG}{name}" for name in ("str", "int", "float", "bool", "null", "seq", "map")}
UNUSABLE = re.compile("[\0\ud800-\udfff]")


def _mistakes(node: yaml.Node, place: KeyPath, seen: "count[int]") -> Iterator[ConfigMistake]:
    """Yield the mistakes in valid YAML that no configuration needs, before reading its values."""
    if next(seen) > MAX_VALUES:
        raise NotReadableError(
            ConfigMistake(None, "", f"the file has over {MAX_VALUES} values; shorten it")
        )
    if node.tag not in PLAIN:
        message = f"has the YAML tag {node.tag.removeprefix(TAG)}; write it without the tag"
        yield ConfigMistake(_line(node), dotted(place), message)
    elif isinstance(node, yaml.ScalarNode) and UNUSABLE.search(node.value):
        message = "has a NUL character; remove it"
        yield ConfigMistake(_line(node), dotted(place), message)
    for key, child in _children(node):
        yield from _mistakes(child, (*place, key), seen)
    if isinstance(node, yaml.MappingNode):
        yield from _wrong_keys(node, place)


def _wrong_keys(node: yaml.MappingNode, place: KeyPath) -> Iterator[ConfigMistake]:
    first = dict[str, int]()
    for key, _ in node.value:
        if key.tag == MERGE:
            continue
        if not isinstance(key, yaml.ScalarNode) or key.tag != TEXT:
            message = f"has the key {_found(key)}, which is not text; put it in quotes"
            yield ConfigMistake(_line(key), dotted(place) or "the file", message)
        elif key.value in first:
            message = f"is already in line {first[key.value]}; keep one of the two"
            yield ConfigMistake(_line(key), dotted((*place, key.value)), message)
        else:
            first[key.value] = _line(key)


def _children(node: yaml.Node) -> Iterator[tuple[str | int, yaml.Node]]:
    if isinstance(node, yaml.SequenceNode):
        yield from enumerate(node.value)
    elif isinstance(node, yaml.MappingNode):
        yield from ((str(key.value), child) for key, child in node.value)


# Positions and values in words


def _spots(node: yaml.Node, place: KeyPath) -> Iterator[tuple[KeyPath, Position]]:
    yield place, Position(_line(node), _found(node), isinstance(node, yaml.ScalarNode))
    if isinstance(node, yaml.SequenceNode):
        for position, child in enumerate(node.value):
            yield from _spots(child, (*place, position))
    elif isinstance(node, yaml.MappingNode):
        for key, child in node.value:
            inner = (*place, str(key.value))
            yield from _spots(child, inner)
            yield inner, Position(_line(key), _found(child), isinstance(child, yaml.ScalarNode))


def _line(node: yaml.Node) -> int:
    return node.start_mark.line + 1


MAX_SHOWN_CHARS = 60


def _found(node: yaml.Node) -> str:
    """Describe a value in words; a scalar as it was written."""
    if not isinstance(node, yaml.ScalarNode):
        kind = "list" if isinstance(node, yaml.SequenceNode) else "mapping"
        return f"a {kind}" if node.value else f"an empty {kind}"
    if node.tag == NULL:
        return "empty"
    written = one_line(node.value, MAX_SHOWN_CHARS)
    return f"'{written}'" if node.tag == TEXT else written
