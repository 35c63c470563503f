"""Evaluate the expressions of a GitHub workflow, as far as they are known before it runs. Pure.

The syntax is GitHub's: docs.github.com, "Evaluate expressions in workflows and actions".
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, auto


class Unknown(Enum):
    """A value that is known only while the workflow runs."""

    UNKNOWN = auto()


UNKNOWN = Unknown.UNKNOWN

Value = str | float | bool | Unknown | None

Context = Mapping[str, Mapping[str, Value]]
"""The values by context and name, such as `matrix` and `python`."""

COMPLETE = {"matrix", "env", "inputs"}
"""Contexts whose missing names are null; those of others are not known."""

EXPRESSION = re.compile(r"\$\{\{(.*?)\}\}", re.DOTALL)


def substitute(text: str, context: Context) -> str | None:
    """Replace each `${{ … }}` by its value; None if one of them is not known."""
    unknown = False

    def value(found: re.Match[str]) -> str:
        nonlocal unknown
        result = evaluate(found[1], context)
        unknown = unknown or result is UNKNOWN
        return written(result)

    replaced = EXPRESSION.sub(value, text)
    return None if unknown else replaced


def is_true(condition: str, context: Context) -> bool | None:
    """Evaluate the condition of an `if`, with or without `${{ }}`; None if it is not known."""
    whole = EXPRESSION.fullmatch(condition.strip())
    result = evaluate(whole[1] if whole else condition, context)
    return None if result is UNKNOWN else bool(result)


def evaluate(expression: str, context: Context) -> Value:
    """Return the value of an expression; UNKNOWN if it is not known, or not valid."""
    try:
        parser = _Parser(_tokens(expression), context)
        result = parser.either()
    except (SyntaxError, RecursionError):
        return UNKNOWN
    return result if parser.is_at_end else UNKNOWN


def written(value: Value) -> str:
    """Return a value as GitHub writes it into a text."""
    match value:
        case None | Unknown.UNKNOWN:
            return ""
        case bool():
            return str(value).lower()
        case str():
            return value
        case _:
            return f"{value:g}"


TOKEN = re.compile(
    r"\s*(?:(?P<text>'(?:[^']|'')*')|(?P<number>-?\d+(?:\.\d+)?)(?![\w.])"
    r"|(?P<name>[A-Za-z_][\w-]*(?:\.(?:[A-Za-z_][\w-]*|\*))*)|(?P<sign>==|!=|<=|>=|&&|\|\||[!<>()\[\],]))"
)


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str


def _tokens(expression: str) -> list[_Token]:
    tokens, place = list[_Token](), 0
    rest = expression.rstrip()
    while place < len(rest):
        found = TOKEN.match(rest, place)
        if found is None or found.lastgroup is None:
            raise SyntaxError(expression)
        tokens.append(_Token(found.lastgroup, found[found.lastgroup]))
        place = found.end()
    return tokens


CONSTANTS: Mapping[str, Value] = {"true": True, "false": False, "null": None}


class _Parser:
    """A recursive descent over the tokens, from the loosest operator to the tightest."""

    def __init__(self, tokens: list[_Token], context: Context) -> None:
        self._tokens = tokens
        self._context = context
        self._at = 0

    @property
    def is_at_end(self) -> bool:
        return self._at == len(self._tokens)

    def either(self) -> Value:
        result = self._both()
        while self._takes("||"):
            other = self._both()
            if result is not UNKNOWN:
                result = result or other
        return result

    def _both(self) -> Value:
        result = self._compared()
        while self._takes("&&"):
            other = self._compared()
            if result is UNKNOWN:
                result = UNKNOWN if other is UNKNOWN or other else other
            else:
                result = result and other
        return result

    def _compared(self) -> Value:
        left = self._single()
        for sign in ("==", "!="):
            if self._takes(sign):
                right = self._single()
                if UNKNOWN in {left, right}:
                    return UNKNOWN
                return (_comparable(left) == _comparable(right)) is (sign == "==")
        for sign in ("<", ">", "<=", ">="):
            if self._takes(sign):
                self._single()
                return UNKNOWN
        return left

    def _single(self) -> Value:
        if self._takes("!"):
            value = self._single()
            return UNKNOWN if value is UNKNOWN else not value
        if self._takes("("):
            value = self.either()
            self._expect(")")
            return value
        token = self._next()
        match token.kind:
            case "text":
                return token.text[1:-1].replace("''", "'")
            case "number":
                return float(token.text)
            case "name" if self._takes("("):
                return self._called(token.text)
            case "name":
                return self._named(token.text)
            case _:
                raise SyntaxError(token.text)

    def _called(self, function: str) -> Value:
        arguments = list[Value]()
        while not self._takes(")"):
            arguments.append(self.either())
            if not self._takes(","):
                self._expect(")")
                break
        known = FUNCTIONS.get(function.lower())
        if known is None or UNKNOWN in arguments:
            return UNKNOWN
        return known([written(each) for each in arguments])

    def _named(self, name: str) -> Value:
        if name in CONSTANTS:
            return CONSTANTS[name]
        context, _, key = name.partition(".")
        if self._takes("["):
            key = written(self.either())
            self._expect("]")
        values = self._context.get(context)
        missing = None if context in COMPLETE else UNKNOWN
        return UNKNOWN if values is None else values.get(key, missing)

    def _takes(self, sign: str) -> bool:
        if self.is_at_end or self._tokens[self._at] != _Token("sign", sign):
            return False
        self._at += 1
        return True

    def _expect(self, sign: str) -> None:
        if not self._takes(sign):
            raise SyntaxError(sign)

    def _next(self) -> _Token:
        if self.is_at_end:
            raise SyntaxError("end")
        self._at += 1
        return self._tokens[self._at - 1]


def _comparable(value: Value) -> Value:
    """Return a value as `==` compares it: without case, and a number also in a text."""
    text = written(value).lower()
    try:
        return float(text)
    except ValueError:
        return text


def _format(arguments: list[str]) -> Value:
    template, *values = arguments or [""]
    return re.sub(
        r"\{(\d+)\}",
        lambda found: values[int(found[1])] if int(found[1]) < len(values) else "",
        template,
    )


def _of_two(function: Callable[[str, str], bool]) -> Callable[[list[str]], Value]:
    def called(arguments: list[str]) -> Value:
        if len(arguments) != 2:  # noqa: PLR2004 - the text, and the other one
            return UNKNOWN
        return function(arguments[0].lower(), arguments[1].lower())

    return called


FUNCTIONS: Mapping[str, Callable[[list[str]], Value]] = {
    "format": _format,
    "contains": _of_two(lambda text, part: part in text),
    "startswith": _of_two(str.startswith),
    "endswith": _of_two(str.endswith),
    "success": lambda _: True,
    "always": lambda _: True,
    "failure": lambda _: False,
    "cancelled": lambda _: False,
}
