"""What has to be installed before a Python repository can be checked. Pure."""

from mulligan.starter.tree import Tree, keys_of, part, texts_of

EXTRAS = ("test", "tests", "testing", "dev", "lint", "typing")
GROUPS = ("test", "tests", "testing", "dev", "lint", "typing")
FILES = (
    *("requirements.txt", "requirements-dev.txt", "requirements-test.txt", "requirements_dev.txt"),
    *("dev-requirements.txt", "test-requirements.txt", "requirements/dev.txt"),
    *("requirements/test.txt", "tests/requirements.txt"),
)


def needs(tree: Tree, tools: tuple[str, ...]) -> tuple[str, ...]:
    """List pip's arguments: the project itself, its requirements, and the tools of the checks."""
    project = _project(tree)
    files = tuple(f"-r {name}" for name in FILES if name in tree.paths)
    groups = part(tree.mapping("pyproject.toml"), "dependency-groups")
    grouped = tuple(each for name in GROUPS for each in texts_of(part(groups, name)))
    return tuple(dict.fromkeys((*project, *files, *grouped, *tools)))


def _project(tree: Tree) -> tuple[str, ...]:
    """Name the project, editable and with its extras for development, where it can be installed."""
    settings = tree.mapping("pyproject.toml")
    built = part(settings, "build-system") is not None or "setup.py" in tree.paths
    if not built:
        return tuple(texts_of(part(settings, "project", "dependencies")))
    extras = keys_of(part(settings, "project", "optional-dependencies"))
    wanted = ",".join(name for name in EXTRAS if name in extras)
    return (f"-e .[{wanted}]" if wanted else "-e .",)
