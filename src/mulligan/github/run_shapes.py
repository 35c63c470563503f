"""The parts of GitHub's answers about checks that Mulligan reads. Pure."""

from collections.abc import Callable
from typing import Annotated

from pydantic import BeforeValidator, TypeAdapter

from mulligan.github.shapes import Shape, Words


class AppShape(Shape):
    """The GitHub App that made a check run."""

    slug: str


class OutputShape(Shape):
    """What a check run says of itself."""

    title: Words = ""
    summary: Words = ""
    text: Words = ""


class SuiteShape(Shape):
    """What a check run was started with: the run of one workflow."""

    id: int


class CheckRunShape(Shape):
    """A check run; it has a conclusion once it is completed."""

    id: int
    name: str
    status: str
    conclusion: str | None = None
    app: AppShape | None = None
    check_suite: SuiteShape | None = None
    output: OutputShape = OutputShape()


class StatusShape(Shape):
    """A commit status."""

    id: int
    context: str
    state: str
    description: Words = ""


class AnnotationShape(Shape):
    """What a check run says about a line."""

    path: Words = ""
    start_line: int | None = None
    annotation_level: Words = ""
    message: Words = ""


def _inside(key: str) -> Callable[[object], object]:
    """Take the list out of an object that counts it too."""

    def take(value: object) -> object:
        return value.get(key) if isinstance(value, dict) else value  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType] - pydantic looks inside

    return take


CHECK_RUN = TypeAdapter(CheckRunShape)
CHECK_RUNS = TypeAdapter[tuple[CheckRunShape, ...]](
    Annotated[tuple[CheckRunShape, ...], BeforeValidator(_inside("check_runs"))]
)
STATUSES = TypeAdapter[tuple[StatusShape, ...]](
    Annotated[tuple[StatusShape, ...], BeforeValidator(_inside("statuses"))]
)
ANNOTATIONS = TypeAdapter(tuple[AnnotationShape, ...])
