"""Name a change in the form of its repository, for pull request and commit (PR-11). Pure.

A repository's form comes from a commitlint configuration in JSON or YAML, or from the subjects of
its base branch. An agent may propose a title; one that does not fit gives way to the issue's.
"""

import re
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from pydantic import TypeAdapter

from mulligan.domain.issue import Issue
from mulligan.text.escape import one_line
from mulligan.text.foreign import subject_line

TITLE_CHARS = 72

MOST_CHARS = 100
"""The longest title, whatever commitlint allows."""

LEAST_CHARS = 8

FEWEST_SUBJECTS = 5
"""With fewer subjects, a history shows no form."""

USUAL = 0.6
"""The share of subjects that makes a form the repository's."""


class Form(StrEnum):
    """The forms of titles."""

    PLAIN = "plain"
    CONVENTIONAL = "conventional"
    GITMOJI = "gitmoji"
    AREA = "area"
    CAPITALISED = "capitalised"


CONVENTIONAL_TYPES = (
    *("build", "chore", "ci", "docs", "feat", "fix", "perf", "refactor", "revert", "style", "test"),
)
"""The types of @commitlint/config-conventional."""

FIX, FEATURE, DOCUMENTATION = "fix", "feat", "docs"

EMOJI = {FIX: ("🐛", ":bug:"), FEATURE: ("✨", ":sparkles:"), DOCUMENTATION: ("📝", ":memo:")}
"""The signs of https://gitmoji.dev for what an issue asks for."""

KINDS = {
    FIX: {"bug", "bugs", "bugfix", "regression", "defect", "crash"},
    DOCUMENTATION: {"documentation", "docs", "doc"},
    FEATURE: {"enhancement", "feature", "features", "improvement"},
}
"""The words of labels that say what an issue asks for; the first that fits counts."""

TYPED = re.compile(r"(?P<type>[A-Za-z][\w-]*)(?P<scope>\([^()\s]{1,40}\))?!?:\s+(?P<what>\S.*)")

SIGN = re.compile(r":[a-z0-9_+-]+:\s*|[\u2600-\u27bf\u2b00-\u2bff\U0001f300-\U0001faff]\ufe0f?\s*")

AREA = re.compile(r"(?P<area>[\w./*{},-]{1,40}(?:, ?[\w./*-]{1,40})?): (?P<what>\S.*)")

CAPITAL = re.compile(r"[A-Z][a-z]")

NAME = re.compile(r"[\w./-]{1,30}")

NUMBER = re.compile(r"\s*\(#\d+\)$")
"""What GitHub adds to the subject of a squash merge."""

TAG = re.compile(
    r"\s*\[[^\[\]]{1,20}\]:?\s+|(?:bug|feature request|feature|docs)(?: report)?:\s+", re.IGNORECASE
)
"""What issue forms put before a title: `[Bug]: `."""


@dataclass(frozen=True, slots=True)
class TitleStyle:
    """The form of titles in a repository.

    `types` and `scopes` are what commitlint allows; no scopes allow all. `has_codes` is whether its
    signs are written as `:bug:`.
    """

    form: Form = Form.PLAIN
    types: tuple[str, ...] = CONVENTIONAL_TYPES
    scopes: tuple[str, ...] = ()
    most: int = TITLE_CHARS
    has_codes: bool = False

    @property
    def has_number(self) -> bool:
        """Return whether the subject of a commit ends with the number of the issue."""
        return self.form in {Form.PLAIN, Form.CAPITALISED}


PLAIN = TitleStyle()

RULES: TypeAdapter[dict[str, object]] = TypeAdapter(dict[str, object])


# The form of a repository.


def style_of(subjects: Sequence[str], lint: Mapping[str, object] | None = None) -> TitleStyle:
    """Find the form of titles from the newest subjects, without merges, and from commitlint."""
    shown = [
        NUMBER.sub("", each) for each in subjects if not each.startswith(("Revert ", "Merge "))
    ]
    if lint is not None:
        return _linted(lint)
    if len(shown) < FEWEST_SUBJECTS:
        return PLAIN
    typed = [each for each in shown if _type_of(each, CONVENTIONAL_TYPES)]
    if _is_usual(typed, shown):
        return TitleStyle(Form.CONVENTIONAL)
    signed = [each for each in shown if SIGN.match(each)]
    if _is_usual(signed, shown):
        has_codes = 2 * sum(each.startswith(":") for each in signed) > len(signed)
        return TitleStyle(Form.GITMOJI, has_codes=has_codes)
    if _is_usual([each for each in shown if AREA.fullmatch(each)], shown):
        return TitleStyle(Form.AREA)
    if _is_usual([each for each in shown if CAPITAL.match(each)], shown):
        return TitleStyle(Form.CAPITALISED)
    return PLAIN


def _is_usual(some: Sequence[str], of: Sequence[str]) -> bool:
    return len(some) >= USUAL * len(of)


def _type_of(subject: str, types: Collection[str]) -> str:
    """Return the type of a conventional subject; empty if it has none of the types."""
    found = TYPED.fullmatch(subject)
    return found["type"] if found and found["type"].casefold() in types else ""


def _linted(lint: Mapping[str, object]) -> TitleStyle:
    """Read the rules of commitlint: each is [level, always or never, value]."""
    rules = lint.get("rules")
    found = RULES.validate_python(rules) if isinstance(rules, dict) else {}
    longest = _value(found.get("header-max-length"))
    return TitleStyle(
        Form.CONVENTIONAL,
        types=_names(_value(found.get("type-enum"))) or CONVENTIONAL_TYPES,
        scopes=_names(_value(found.get("scope-enum"))),
        most=min(longest, MOST_CHARS) if isinstance(longest, int) else TITLE_CHARS,
    )


def _value(rule: object) -> object:
    """Return the value of a rule that is on and says `always`; None otherwise."""
    match rule:
        case [int(level), "always", object() as value] if level:
            return value
        case _:
            return None


def _names(value: object) -> tuple[str, ...]:
    """Return the names of a list; what is no name, commitlint would not find in a title, either."""
    listed: list[object] = [*value] if isinstance(value, list) else []
    return tuple(each for each in listed if isinstance(each, str) and NAME.fullmatch(each))


# A title.


def title_of(issue: Issue, proposed: str, style: TitleStyle) -> str:
    """Return the agent's title if it fits, or else the issue's in the repository's form.

    Empty if the issue's title is to stand as it is.
    """
    return fitting_title(proposed, issue, style) or issue_title(issue, style)


def issue_title(issue: Issue, style: TitleStyle) -> str:
    """Return the issue's title in a form that has signs for it; empty in any other form.

    It is not escaped yet: pull request and commit do that, as with any title.
    """
    kind = kind_of(issue.labels)
    match style.form:
        case Form.CONVENTIONAL:
            if _type_of(issue.title, style.types):
                return one_line(issue.title, style.most)
            start = f"{_type_for(kind, style.types)}: "
            title = _lowered(TAG.sub("", issue.title, count=1).strip())
        case Form.GITMOJI:
            start, title = f"{_sign(kind, style)} ", issue.title
        case _:
            return ""
    what = one_line(title, style.most - len(start))
    return f"{start}{what}" if what else ""


def fitting_title(proposed: str, issue: Issue, style: TitleStyle) -> str:
    """Return an agent's title in the repository's form; empty if it does not fit.

    It is one line without mentions, references, addresses, marks and unseen characters. A `!`
    for a breaking change is taken out: people decide on that.
    """
    # The variation selector of a sign, such as in ♻️, is never seen by itself.
    text = NUMBER.sub("", proposed.replace("\ufe0f", "").strip()).removesuffix(".")
    if not _is_inert(text):
        return ""
    match style.form:
        case Form.CONVENTIONAL:
            text = _conventional(text, issue, style)
        case Form.GITMOJI if not SIGN.match(text):
            text = f"{_sign(kind_of(issue.labels), style)} {text}"
        case Form.AREA if not AREA.fullmatch(text):
            return ""
        case Form.CAPITALISED:
            text = text[:1].upper() + text[1:]
        case _:
            pass
    return text if len(text) <= style.most else ""


def _is_inert(text: str) -> bool:
    """Return whether a text is one short line that does nothing wherever GitHub shows it."""
    is_seen = not any(unicodedata.category(sign) in {"Cc", "Cf", "Cn", "Co", "Cs"} for sign in text)
    is_a_title = LEAST_CHARS <= len(text) <= MOST_CHARS and any(map(str.isalpha, text))
    return is_seen and is_a_title and subject_line(text, 200) == text


def _conventional(text: str, issue: Issue, style: TitleStyle) -> str:
    found = TYPED.fullmatch(text)
    if found is None or found["type"].casefold() not in style.types:
        return f"{_type_for(kind_of(issue.labels), style.types)}: {_lowered(text)}"
    scope = found["scope"] or ""
    if style.scopes and scope.strip("()") not in style.scopes:
        scope = ""
    return f"{found['type'].casefold()}{scope}: {found['what']}"


def _type_for(kind: str, types: Sequence[str]) -> str:
    """Return the type for what an issue asks for, of those that commitlint allows."""
    return next((each for each in (kind, FIX, "chore") if each in types), types[0])


def _sign(kind: str, style: TitleStyle) -> str:
    return EMOJI[kind][style.has_codes]


def _lowered(text: str) -> str:
    """Begin with a small letter, unless the first word is a name or an abbreviation."""
    first = text.partition(" ")[0]
    return text[:1].lower() + text[1:] if first[1:].islower() or len(first) == 1 else text


def kind_of(labels: Collection[str]) -> str:
    """Return what an issue asks for, by its labels: a fix, a feature or documentation."""
    words = {word for label in labels for word in re.split(r"[^a-z]+", label.casefold())}
    return next((kind for kind, named in KINDS.items() if words & named), FIX)


# What an agent is told about titles.

WANTED = {
    Form.PLAIN: "",
    Form.CAPITALISED: ", beginning with a capital letter",
    Form.GITMOJI: ", beginning with a sign of gitmoji",
    Form.AREA: ", as `area: what changes`, as in the subjects of this branch",
}


def title_request(style: TitleStyle) -> str:
    """Say what title an agent may propose, for its prompt."""
    if style.form is Form.CONVENTIONAL:
        types = ", ".join(style.types[:20])
        form = f", as `type: what changes` or `type(scope): what changes`; the types are {types}"
    else:
        form = WANTED[style.form]
    return f"one line of at most {style.most} characters in the imperative{form}"
