"""What is proposed for repositories of every kind, from names and small texts alone."""

# ruff: noqa: E501 - one row of the table on one line is easier to read

from pathlib import Path

import pytest

from mulligan.config.load import load_policy
from mulligan.domain.result import CheckKind
from mulligan.interfaces.bootstrap.clone import read_tree
from mulligan.interfaces.onboarding.plans import plan
from mulligan.interfaces.onboarding.proposal import (
    FileDraft,
    Origin,
    Proposal,
    ProposedCheck,
    operator_text,
    origin_of,
    policy_pull_request,
    policy_text,
    with_repository,
)
from mulligan.interfaces.onboarding.tree import Machine, RepositoryFiles

SAMPLES = Path(__file__).parents[1] / "fixtures" / "repositories"
VENV = "python3 -m venv .venv && echo '*' > .venv/.gitignore"
INSTALL = ".venv/bin/pip install --quiet"


HERE = Machine(
    "3.12", "22", frozenset({"uv", "poetry", "pdm", "npm", "pnpm", "yarn", "go", "cargo"})
)


def propose(files: RepositoryFiles) -> Proposal:
    return plan(files, HERE).proposal


def tree(**texts: str) -> RepositoryFiles:
    """Make a tree; a double underscore stands for a dot, `_in_` for a slash."""
    named = {name.replace("_in_", "/").replace("__", "."): text for name, text in texts.items()}
    return RepositoryFiles(frozenset(named), named)


def ci(*lines: str) -> dict[str, str]:
    steps = "".join(f"      - run: {line}\n" for line in lines)
    text = f"on: push\njobs:\n  all:\n    steps:\n      - uses: actions/checkout@v4\n{steps}"
    return {"__github_in_workflows_in_ci__yml": text}


def lines_of(found: Proposal) -> list[str]:
    return [*found.set_up, *(check.run for check in found.checks)]


@pytest.mark.pure
@pytest.mark.parametrize(
    ("texts", "lines"),
    [
        ({"tests_in_test_a__py": "import pytest\n"}, [VENV, f"{INSTALL} pytest", ".venv/bin/python -m pytest -q"]),
        ({"tests_in_test_a__py": ""}, ["python3 -m unittest discover -s tests"]),
        ({"test_a__py": ""}, ["python3 -m unittest"]),
        (
            {"setup__py": "", "conftest__py": "", "requirements__txt": "six", "__flake8": ""},
            [VENV, f"{INSTALL} -e . -r requirements.txt pytest flake8", ".venv/bin/python -m pytest -q", ".venv/bin/flake8 --extend-exclude .venv"],
        ),
        (
            {"pyproject__toml": "[dependency-groups]\ndev = ['pytest>=8']\n[tool.mypy]\n", "conftest__py": ""},
            [VENV, f"{INSTALL} 'pytest>=8' pytest mypy", ".venv/bin/python -m pytest -q", ".venv/bin/mypy ."],
        ),
        (
            {"pyproject__toml": "[tool.pytest]\n[tool.ruff]\n", "uv__lock": ""},
            ["uv sync --frozen --all-groups --all-extras", "uv run --offline python -m pytest -q", "uv run --offline ruff check ."],
        ),
        (
            {"pyproject__toml": "", "poetry__lock": "", **ci("poetry install", "poetry run pytest -x tests")},
            ["poetry install", "poetry run pytest -x tests"],
        ),
        ({"pyproject__toml": "[tool.pytest]\n", "poetry__lock": ""}, ["poetry install --no-interaction", "poetry run python -m pytest -q"]),
        ({"pyproject__toml": "[tool.pytest]\n", "pdm__lock": ""}, ["pdm install --dev", "pdm run python -m pytest -q"]),
        (
            {"pyproject__toml": "[dependency-groups]\ndev = [\"tomli; python_version<'3.11'\"]\n", "test_a__py": "def test_a(): ..."},
            [VENV, f"{INSTALL} \"tomli; python_version<'3.11'\" pytest", ".venv/bin/python -m pytest -q"],
        ),
        (
            {"pyproject__toml": "[dependency-groups]\ntest = ['six', {include-group = 'base'}, {other = 1}]\nbase = ['a', {include-group = 'test'}]\n", "conftest__py": ""},
            [VENV, f"{INSTALL} six a pytest", ".venv/bin/python -m pytest -q"],
        ),
        (
            {"pyproject__toml": "[tool.pdm.dev-dependencies]\ntest = ['six']\ndoc = ['furo']\n[tool.uv]\ndev-dependencies = ['b']\n", "conftest__py": ""},
            [VENV, f"{INSTALL} six b pytest", ".venv/bin/python -m pytest -q"],
        ),
        (
            {"pyproject__toml": "[tool.poetry.dev-dependencies]\npython = '^3.9'\na = '*'\nb = '^1.2.3'\nc = '^0.2'\nd = '~1.2'\ne = {path = '../e'}\n[tool.poetry.group.test.dependencies]\nf = '>=1, <2'\ng = {version = '2.0', extras = ['x', 'y'], markers = \"python_version < '4'\"}\nh = '~=1.4'\ni = '~3'\nj = '^0.0'\n", "conftest__py": ""},
            [VENV, f"{INSTALL} a 'b>=1.2.3,<2' 'c>=0.2,<0.3' 'd>=1.2,<1.3' 'f>=1,<2' \"g[x,y]==2.0; python_version < '4'\" 'h~=1.4' 'i>=3,<4' 'j>=0.0,<0.1' pytest", ".venv/bin/python -m pytest -q"],
        ),
        (
            {"pyproject__toml": "[tool.ruff]\nfix = true\n[tool.mypy]\nfiles = 'a'\n", "__pre-commit-config__yaml": "- repo: https://github.com/astral-sh/ruff-pre-commit\n  rev: v0.6.9\n"},
            [VENV, f"{INSTALL} ruff==0.6.9 mypy", ".venv/bin/ruff check --no-fix .", ".venv/bin/mypy"],
        ),
        ({"setup__py": "", **ci("python -m unittest -v")}, [VENV, ". .venv/bin/activate && python -m unittest -v"]),
        (
            {"noxfile__py": "import nox\n\n@nox.session\ndef tests(session):\n    pass\n"},
            [VENV, f"{INSTALL} nox", ".venv/bin/nox -s tests"],
        ),
        ({"tox__ini": ""}, [VENV, f"{INSTALL} tox", ".venv/bin/tox -q -e py"]),
        ({"pyproject__toml": "no toml at all ["}, []),
        ({"package__json": '{"scripts": {"test": "echo no test specified && exit 1"}}'}, []),
        (
            {"package__json": '{"scripts": {"test": "jest", "typecheck": "tsc"}, "devDependencies": {"jest": "1"}}', "pnpm-lock__yaml": ""},
            ["pnpm install --frozen-lockfile", "pnpm test", "pnpm run typecheck"],
        ),
        (
            {"package__json": '{"scripts": {"test:ci": "jest"}, "dependencies": {"a": "1"}}', "yarn__lock": ""},
            ["yarn install --frozen-lockfile", "yarn run test:ci"],
        ),
        (
            {"package__json": '{"scripts": {"lint": "eslint"}, "packageManager": "yarn@4", "dependencies": {"a": "1"}}', "__yarnrc__yml": ""},
            ["yarn install --immutable", "yarn run lint"],
        ),
        (
            {"package__json": '{"scripts": {"test": "x"}, "dependencies": {"a": "1"}}', "package-lock__json": ""},
            ["npm ci --no-audit --no-fund", "npm test"],
        ),
        (
            {"package__json": '{"scripts": {"test": "x"}, "dependencies": {"a": "1"}}'},
            ["npm install --no-audit --no-fund --no-package-lock", "npm test"],
        ),
        ({"go__mod": "", "go__sum": ""}, ["go mod download", "go test ./...", "go vet ./..."]),
        (
            {"Cargo__toml": "", **ci("cargo test --all", "cargo clippy -- -D warnings")},
            ["cargo fetch", "cargo test --all", "cargo clippy -- -D warnings"],
        ),
        ({"pom__xml": "", "mvnw": "", **ci("./mvnw -B verify")}, ["./mvnw -B verify"]),
        ({"build__gradle__kts": "", "gradlew": ""}, ["./gradlew --no-daemon --console=plain test"]),
        (
            {"Gemfile": "gem 'rspec'\ngem 'rubocop', require: false\n", "spec_in_a_spec__rb": ""},
            ["bundle config set --local path vendor/bundle", "bundle install", "bundle exec rspec", "bundle exec rubocop"],
        ),
        ({"Rakefile": "", **ci("rake spec")}, ["rake spec"]),
        ({"Rakefile": "Rake::TestTask.new"}, ["rake test"]),
        ({"Rakefile": "task :default"}, []),
        (
            {"composer__json": '{"require-dev": {"phpunit/phpunit": "^11", "phpstan/phpstan": "^2"}}', "phpstan__neon": ""},
            ["composer install --no-interaction --no-progress", "vendor/bin/phpunit", "vendor/bin/phpstan analyse --no-progress"],
        ),
        ({"composer__json": '{"scripts": {"test": "phpunit"}}'}, ["composer test"]),
        ({"phpunit__xml__dist": ""}, ["phpunit"]),
        ({"CMakeLists__txt": "project(a)"}, ["cmake -S . -B build && cmake --build build --parallel"]),
        (
            {"CMakeLists__txt": "enable_testing()"},
            ["cmake -S . -B build && cmake --build build --parallel && ctest --test-dir build --output-on-failure"],
        ),
        ({"meson__build": "project('a')"}, ["meson setup build && meson compile -C build"]),
        ({"meson__build": "test('a', a)"}, ["meson setup build && meson test -C build --print-errorlogs"]),
        ({"configure__ac": "", "configure": ""}, ["./configure && make check"]),
        ({"configure__ac": ""}, ["autoreconf -i && ./configure && make check"]),
        ({"Makefile": "deps:\ncheck: all\n\ttrue\nmypy:\nX := 1\n"}, ["make deps", "make check", "make mypy"]),
        ({"Makefile": "test:\n", "go__mod": ""}, ["go test ./...", "go vet ./..."]),
        ({"Makefile": "test:\nlint:\n", "go__mod": "", **ci("make test")}, ["make test", "go vet ./..."]),
        ({"Makefile": "test:\nlint:\n", **ci("make test")}, ["make test", "make lint"]),
        ({"go__mod": "", **ci("go test -race ./... 2>&1 | tee log")}, ["go test -race ./...", "go vet ./..."]),
        ({"README__md": ""}, []),
        ({"go__mod": "", "__github_in_workflows_in_ci__yml": "- [not: a workflow"}, ["go test ./...", "go vet ./..."]),
    ],
)  # fmt: skip
def test_lines_are_the_repositorys_own(texts: dict[str, str], lines: list[str]) -> None:
    found = propose(tree(**texts))
    assert lines_of(found) == lines
    policy = load_policy(policy_text(found).encode(), {}, "proposed")
    assert [*policy.setup.run, *(check.run for check in policy.checks)] == lines


@pytest.mark.pure
def test_a_check_that_is_left_out_is_a_comment_with_the_reason() -> None:
    passing = ProposedCheck("tests", "make test", CheckKind.TEST, "CI", setup=("make deps",))
    failing = ProposedCheck(
        "lint", "make lint", CheckKind.LINT, "CI", setup=("make tools",), fails="it fails here: no"
    )
    text = policy_text(Proposal("x", ("npm ci",), (passing, failing)))
    assert text.endswith(
        "setup:\n  - npm ci\n  - make deps\n\n# Commands that verify a change, in this order.\n"
        "checks:\n  - name: tests\n    run: make test # from CI\n    kind: test\n"
        "  # Left out, since it fails here: no:\n"
        "  # - name: lint\n  #   run: make lint # from CI\n  #   kind: lint\n"
    )
    assert len(load_policy(text.encode(), {}, "proposed").checks) == 1
    nothing = policy_text(Proposal("x", (), (failing,)))
    assert load_policy(nothing.encode(), {}, "proposed").checks == ()


@pytest.mark.pure
def test_two_ecosystems_keep_their_checks_apart() -> None:
    found = propose(tree(go__mod="", Cargo__toml=""))
    assert found.ecosystem == "Go and Rust"
    assert [check.name for check in found.checks] == ["tests (Go)", "lint", "tests (Rust)"]


@pytest.mark.pure
@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("git@github.com:octocat/hello.git", Origin("octocat/hello", "github.com")),
        ("https://github.com/octocat/hello.world", Origin("octocat/hello.world", "github.com")),
        ("ssh://git@ghe.example:2222/a/b.git", Origin("a/b", "ghe.example")),
        ("https://x:token@ghe.example/a/b/", Origin("a/b", "ghe.example")),
        ("/srv/git/hello.git", None),
        ("https://example.org/only-one", None),
    ],
)
def test_the_repository_is_read_from_the_remote(url: str, origin: Origin | None) -> None:
    config = f'[core]\n\tbare = false\n[remote "origin"]\n\turl = {url}\n\tfetch = +refs/*\n'
    assert origin_of(config) == origin


@pytest.mark.pure
def test_a_configuration_that_is_none_names_no_repository() -> None:
    assert origin_of("") is None
    assert origin_of("no section\n") is None


@pytest.mark.pure
def test_a_server_of_ones_own_has_its_api_under_its_name() -> None:
    text = operator_text(Origin("a/b", "ghe.example"), "codex")
    assert "  api_url: https://ghe.example/api/v3\n" in text
    assert "api_url" not in operator_text(Origin("a/b", "github.com"), "codex")


@pytest.mark.pure
@pytest.mark.parametrize(
    ("before", "diff"),
    [
        (None, ["--- /dev/null", "+++ a.yml", "@@ -0,0 +1,2 @@", "+a: 1", "+b: 2"]),
        ("a: 1\n", ["--- a.yml", "+++ a.yml", "@@ -1 +1,2 @@", " a: 1", "+b: 2"]),
        ("a: 1\nb: 2\n", []),
    ],
)
def test_a_proposed_file_is_shown_as_a_diff(before: str | None, diff: list[str]) -> None:
    draft = FileDraft(Path("/srv/a.yml"), "a: 1\nb: 2\n", before)
    assert [line.rstrip() for line in draft.diff("a.yml")] == diff


@pytest.mark.pure
@pytest.mark.parametrize(
    ("checks", "promise"),
    [
        (0, "when the agent made a change, since there are no checks yet."),
        (1, "when its check passes."),
        (3, "when its 3 checks pass."),
    ],
)
def test_the_pull_request_that_proposes_checks_says_what_its_merge_starts(
    checks: int, promise: str
) -> None:
    text = policy_pull_request(".github/mulligan.yml", "main", "a`b", checks)
    assert text.title == "Configure Mulligan"
    assert "Mulligan reads the file from `main`. It works on an issue" in text.body
    assert "adds the label `a'b`, and opens a pull request " + promise in text.body


def test_every_sample_has_checks() -> None:
    samples = sorted(SAMPLES.iterdir())
    assert len(samples) >= 10
    assert [place.name for place in samples if not propose(read_tree(place)).checks] == []


@pytest.mark.pure
@pytest.mark.parametrize(
    ("text", "added"),
    [
        ("repositories:\n- name: a/b\n", "repositories:\n- name: c/d\n- name: a/b\n"),
        ("repositories:\n  - {name: a/b}\n", "repositories:\n  - name: c/d\n  - {name: a/b}\n"),
        ("repositories: [{name: a/b}]\n", "repositories: [{name: c/d}, {name: a/b}]\n"),
        ("repositories: []\n", None),
        ("agent: {kind: claude}\n", None),
        ("", None),
    ],
)
def test_a_repository_is_added_to_a_list_of_any_form(text: str, added: str | None) -> None:
    assert with_repository(text, "c/d") == added
