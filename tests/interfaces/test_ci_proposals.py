"""What is proposed from the workflows of a repository: the shapes of public ones, made small."""

# ruff: noqa: E501 - one row of the table on one line is easier to read

from textwrap import dedent, indent

import pytest

from mulligan.domain.repairing import checking_form, repairs_by_default
from mulligan.domain.result import CheckKind
from mulligan.interfaces.onboarding.ci_checks import propose_from_ci
from mulligan.interfaces.onboarding.commands import Role, classify, split_script
from mulligan.interfaces.onboarding.expressions import UNKNOWN, evaluate, is_true, substitute
from mulligan.interfaces.onboarding.plans import joined, missing, plan
from mulligan.interfaces.onboarding.proposal import (
    Proposal,
    ProposedCheck,
    policy_text,
    suite,
)
from mulligan.interfaces.onboarding.tox import environments_of
from mulligan.interfaces.onboarding.tree import Machine, RepositoryFiles
from mulligan.interfaces.onboarding.workflows import jobs_of

pytestmark = pytest.mark.pure

HERE = Machine("3.12", "22", frozenset({"uv", "uvx", "npm", "pnpm", "go", "cargo", "gcc"}))
VENV = "python3 -m venv .venv && echo '*' > .venv/.gitignore"
ON = ". .venv/bin/activate && "
CI = ".github/workflows/ci.yml"
TOOLS = 'python3 -m venv "$HOME/tools" && "$HOME/tools"/bin/pip install --quiet'
FIND = 'export PATH="$PATH:$HOME/tools/bin" && '
NPM = 'npm install --global --silent --prefix "$HOME/tools"'
BARE = Machine("3.12", "22", frozenset({"npm"}))


def tree(workflow: str = "", **texts: str) -> RepositoryFiles:
    named = {name.replace("_in_", "/").replace("__", "."): text for name, text in texts.items()}
    if workflow:
        named[CI] = workflow
    return RepositoryFiles(frozenset(named), named)


def job(body: str, *, on: str = "[push, pull_request]", before: str = "") -> str:
    return f"on: {on}\n{dedent(before)}jobs:\n  main:\n{indent(dedent(body), '    ')}"


def steps(*runs: str, uses: str = "") -> str:
    lines = [f"- uses: {uses}"] if uses else []
    lines += [f"- run: {run}" for run in runs]
    return "runs-on: ubuntu-latest\nsteps:\n" + "\n".join(f"  {line}" for line in lines) + "\n"


def lines_of(files: RepositoryFiles, machine: Machine = HERE) -> list[str]:
    found = propose_from_ci(files, machine)
    return [*found.set_up, *(check.run for check in found.checks)]


# What a job runs


@pytest.mark.parametrize(
    ("runs", "files", "lines"),
    [
        (["pip install -U pip setuptools", "pip install .[test] coverage", "pytest -q"], {"setup__py": ""}, [VENV, f"{ON}pip install --quiet -e '.[test]' coverage", f"{ON}pytest -q"]),
        (["python -m pip install -r requirements.txt -e .", "python -m unittest -v"], {"setup__py": ""}, [VENV, f"{ON}pip install --quiet -r requirements.txt -e .", f"{ON}python -m unittest -v"]),
        (["pip install dist/*.whl", "pytest"], {"setup__py": ""}, [VENV, f"{ON}pytest"]),
        (["pip install tox tox-gh-actions", "tox"], {}, [VENV, f"{ON}pip install --quiet tox", f"{ON}tox -e py --notest", f"{ON}tox -e py"]),
        (["pip install tox", "tox run -e py39 --skip-pkg-install -- -x"], {}, [VENV, f"{ON}pip install --quiet tox", f"{ON}tox run -e py --notest", f"{ON}tox run -e py -- -x"]),
        (["pip install tox", "tox run --installpkg dist/a.whl -e py312"], {}, [VENV, f"{ON}pip install --quiet tox", f"{ON}tox run -e py312 --notest", f"{ON}tox run -e py312"]),
        (["pip install tox", "tox -e ${{ matrix.none }}"], {}, [VENV, f"{ON}pip install --quiet tox", f"{ON}tox -e py --notest", f"{ON}tox -e py"]),
        (["pip install flake8", "flake8 --ignore=E501 .", "flake8 --extend-exclude x"], {}, [VENV, f"{ON}pip install --quiet flake8", f"{ON}flake8 --extend-exclude .venv --ignore=E501 .", f"{ON}flake8 --extend-exclude x"]),
        (["pip install poetry", "poetry install", "poetry run pytest"], {}, [VENV, f"{ON}pip install --quiet poetry", f"{ON}poetry install", f"{ON}poetry run pytest"]),
        (["pip install tox", "tox -e coverage", "tox -e docs", "tox -f lint"], {}, [VENV, f"{ON}pip install --quiet tox", f"{ON}tox -f lint --notest", f"{ON}tox -f lint"]),
        (["pipx run nox -s tests-3.12"], {}, [VENV, f"{ON}pip install --quiet nox", f"{ON}nox -s tests-3.12"]),
        (["pipx install poetry", "uv tool install --python 3.12 tox --with tox-uv", "uv pip install --system -e .", "tox -e lint"], {}, [VENV, f"{ON}pip install --quiet poetry", f"{ON}pip install --quiet tox tox-uv", f"{ON}pip install --quiet -e .", f"{ON}tox -e lint --notest", f"{ON}tox -e lint"]),
        (["uvx --with tox-uv tox run -e 3.12"], {}, [VENV, f"{ON}uvx --with tox-uv tox run -e 3.12 --notest", f"{ON}uvx --with tox-uv tox run -e 3.12"]),
        (["uv sync --frozen", "uv run --locked --group dev pytest -q"], {"pyproject__toml": ""}, ["uv sync --frozen", "uv run --locked --group dev true", "uv run --locked --group dev pytest -q"]),
        (["uv run pre-commit run --all-files"], {"pyproject__toml": ""}, ["uv run true", "uv run pre-commit install-hooks", "uv run pre-commit run --all-files"]),
        (["npm ci", "npm test", "npm run check"], {"package-lock__json": "", "package__json": '{"scripts": {"test": "jest", "check": "npm run a && npm run b", "a": "tsc", "b": "eslint ."}}'}, ["npm ci --no-audit --no-fund", "npm test", "npm run check"]),
        (["npm install", "npm install -g pnpm", "npm t"], {"package__json": "{}"}, ["npm install --no-audit --no-fund --no-package-lock", "npm t"]),
        (["pnpm i", "npm install", "pnpm -r test", "pnpm vitest run"], {"pnpm-lock__yaml": "", "package__json": "{}"}, ["pnpm install --frozen-lockfile", "pnpm -r test", "pnpm vitest run"]),
        (["npm run build", "npm test"], {"package__json": '{"scripts": {"build": "x", "test": "y"}}'}, ["npm run build && npm test"]),
        (["npm run lint"], {"package__json": '{"scripts": {"lint": "eslint --fix . && prettier --write src"}}'}, ['export PATH="$PWD/node_modules/.bin:$PATH" && eslint . && prettier --check src']),
        (["ruff check --fix .", "ruff format", "black ."], {"pyproject__toml": ""}, ["ruff check .", "ruff format --check", "black --check ."]),
        (["ruff check ."], {"pyproject__toml": "[tool.ruff]\nfix = true\n"}, ["ruff check --no-fix ."]),
        (["cmake -B build", "cmake --build build", "ctest --test-dir build"], {"CMakeLists__txt": ""}, ["cmake -B build && cmake --build build && ctest --test-dir build"]),
        (["cmake -B build"], {"CMakeLists__txt": ""}, ["cmake -B build"]),
        (["sudo apt-get install cmake", "echo hello", "git status", "twine check dist/*"], {}, []),
        (["go test -race ./... 2>&1 | tee log"], {"go__sum": ""}, ["go mod download", "go test -race ./..."]),
        (["cargo test"], {"Cargo__lock": ""}, ["cargo fetch --locked", "cargo test"]),
        (["python setup.py develop", "python setup.py build_ext -i", "make test"], {"setup__py": ""}, [VENV, f"{ON}pip install --quiet -e .", f"{ON}python setup.py build_ext -i && make test"]),
        (["python manage.py test", "python scripts/lint.py", "python -c 1"], {"setup__py": ""}, [VENV, f"{ON}python manage.py test", f"{ON}python scripts/lint.py"]),
        (["./scripts/test.sh", "bash x"], {}, ["./scripts/test.sh"]),
        (["bundle config x y", "bundle install", "bundle exec rake spec"], {}, ["bundle config x y", "bundle install", "bundle exec rake spec"]),
        (["yarn install --immutable", "pnpm mocha"], {"yarn__lock": "", "package__json": "{}"}, [f"{NPM} yarn", f"{FIND}yarn install --immutable", f"{FIND}pnpm mocha"]),
        (["uv pip install --upgrade pip", "uv tool install --force tox", "pytest"], {}, [VENV, f"{ON}pip install --quiet tox", f"{ON}pytest"]),
        (["uv run --extra test -m pytest"], {"pyproject__toml": ""}, ["uv run --extra test true", "uv run --extra test -m pytest"]),
        (["playwright install", "npx playwright test"], {}, ["npx playwright test"]),
    ],
)  # fmt: skip
def test_the_commands_of_a_job(runs: list[str], files: dict[str, str], lines: list[str]) -> None:
    assert lines_of(tree(job(steps(*runs)), **files)) == lines


def test_checks_have_their_kind_and_a_name() -> None:
    files = tree(job(steps("npm test", "npm run test:esm", "npm run lint", "npm run types")))
    found = propose_from_ci(files, HERE)
    assert [(check.name, check.kind) for check in found.checks] == [
        ("tests", CheckKind.TEST),
        ("tests (test:esm)", CheckKind.TEST),
        ("lint", CheckKind.LINT),
        ("types", CheckKind.TYPE),
    ]
    assert {check.source for check in found.checks} == {f"{CI}, job main"}


def test_the_same_name_gets_a_number() -> None:
    files = tree(
        job(
            steps(
                "make test A=1", "make test A=2", "make test A=3", "make test A=4", "make test A=5"
            )
        )
    )
    found = propose_from_ci(files, HERE)
    assert [check.name for check in found.checks] == ["tests", "tests (test)", "tests 2", "tests 3"]


@pytest.mark.parametrize(
    ("on", "count"),
    [
        ("push", 1),
        ("pull_request", 1),
        ("[push]", 1),
        ("{pull_request: {branches: [main]}}", 1),
        ("{push: {branches: [main]}}", 1),
        ("{push: {tags: ['v*']}}", 0),
        ("schedule", 0),
        ("{workflow_dispatch: {}}", 0),
        ("5", 0),
        ("null", 0),
    ],
)
def test_only_workflows_that_run_for_a_change(on: str, count: int) -> None:
    assert len(jobs_of(tree(job(steps("make test"), on=on)), HERE)) == count


@pytest.mark.parametrize(
    "text", ["- [not: a workflow", "a list: [1]\njobs: 3\non: push", "[]", "on: push"]
)
def test_what_is_no_workflow_is_skipped(text: str) -> None:
    assert lines_of(tree(text)) == []


def test_a_called_workflow_counts() -> None:
    files = tree(
        "on: push\njobs:\n  call:\n    uses: ./.github/workflows/tests.yml\n  gone:\n    uses: ./x.yml\n",
        __github_in_workflows_in_tests__yml=job(steps("make test"), on="workflow_call"),
    )
    assert lines_of(files) == ["make test"]


def test_the_steps_of_a_local_action_count() -> None:
    action = dedent("""
        inputs: {what: {default: unit}}
        runs:
          steps:
            - run: npm run test:${{ inputs.what }}
            - run: npm run lint
              if: inputs.what == 'none'
            - uses: ./.github/actions/other
        """)
    body = "runs-on: ubuntu-latest\nsteps:\n  - uses: ./.github/actions/check\n    with: {what: esm}\n  - uses: ./gone\n  - uses: ./\n"
    files = tree(job(body), __github_in_actions_in_check_in_action__yml=action)
    assert lines_of(files) == ["npm run test:esm"]


# Directories, variables, shells


def test_a_working_directory_and_variables() -> None:
    body = """
        runs-on: ubuntu-latest
        defaults: {run: {working-directory: ./app}}
        env: {MODE: ci, CI: 'true', EMPTY: ''}
        steps:
          - run: npm ci
          - run: npm test -- $MODE ${LEVEL} $UNKNOWN
            env: {LEVEL: high, TZ: Europe/Kyiv}
          - run: npm run lint
            working-directory: .
          - run: npm run types
            working-directory: ${{ steps.x.outputs.y }}
        """
    assert lines_of(tree(job(body), package__json="{}")) == [
        "(cd app && npm install --no-audit --no-fund --no-package-lock)",
        "(cd app && export TZ=Europe/Kyiv && npm test -- ci high $UNKNOWN)",
        "export MODE=ci && npm run lint",
    ]


def test_builds_and_tests_share_their_variables() -> None:
    body = """
        runs-on: ubuntu-latest
        env: {CC: gcc}
        steps:
          - run: make
          - run: make test
          - run: make check
            env: {CFLAGS: '-O2 -g'}
        """
    assert lines_of(tree(job(body))) == [
        "export CC=gcc && make && make test",
        "export CC=gcc && make && export CC=gcc CFLAGS='-O2 -g' && make check",
    ]


def test_the_environment_that_a_variable_chooses_is_the_one_of_tox() -> None:
    body = """
        runs-on: ubuntu-latest
        steps:
          - run: tox
            env: {TOXENV: docs}
          - run: tox
            env: {TOX_ENV: lint}
        """
    assert lines_of(tree(job(body))) == ["tox -e lint --notest", "tox -e lint"]


GH_ACTIONS = """
[tox]
envlist = docs, py{311,312}-{a,b}
    py312-db-{sqlite,mysql}
[gh-actions]
python =
    3.11: py311
    3.12: py312, docs
[gh-actions:env]
DB =
    sqlite3: sqlite
    mariadb: mysql
"""


@pytest.mark.parametrize(
    ("file", "text", "chosen"),
    [
        ("tox.ini", "[tox]\nenvlist = py{311,312}-{a,b}, lint # py312-c\n", "py312-a,py312-b"),
        ("tox.ini", "[tox]\nenv_list =\n  3.1{0-2}-tests\n  lint\n", "3.12-tests"),
        ("tox.ini", "[tox]\nenvlist = py{3.11, 3.12}\n", "py3.12"),
        ("tox.ini", "[tox]\nenvlist = py{38,39}\n", "py"),
        ("tox.ini", "[tox]\nenvlist = py312-{1-9}\n", "py"),
        ("tox.ini", "envlist = py312\n", "py"),
        ("tox.ini", GH_ACTIONS, "docs,py312-a,py312-b,py312-db-sqlite,py312-db-mysql"),
        ("tox.toml", 'env_list = ["3.12", "3.11", "lint"]\n', "3.12"),
        ("pyproject.toml", '[tool.tox]\nenv_list = ["py3.12", "style"]\n', "py3.12"),
        ("pyproject.toml", "[tool.tox]\nlegacy_tox_ini = '[tox]\\nenvlist = py312'\n", "py"),
        ("pyproject.toml", '[tool.tox]\nlegacy_tox_ini = "[tox]\\nenvlist = py312"\n', "py312"),
    ],
)
def test_a_plain_tox_runs_the_environments_of_this_python(
    file: str, text: str, chosen: str
) -> None:
    files = RepositoryFiles(frozenset({file}), {file: text})
    assert ",".join(environments_of(files, HERE, {})) == chosen


def test_a_variable_chooses_environments_as_tox_gh_actions_does() -> None:
    files = RepositoryFiles(frozenset({"tox.ini"}), {"tox.ini": GH_ACTIONS})
    assert environments_of(files, HERE, {"DB": "sqlite3"}) == ("py312-db-sqlite",)
    assert environments_of(files, HERE, {"DB": "other", "X": "y"})[0] == "docs"


def test_the_environment_of_python_is_in_the_top_directory() -> None:
    body = "runs-on: ubuntu-latest\ndefaults: {run: {working-directory: lib}}\nsteps:\n  - run: pip install x\n  - run: pytest\n"
    assert lines_of(tree(job(body))) == [
        VENV,
        f"{ON}(cd lib && pip install --quiet x)",
        f"{ON}(cd lib && pytest)",
    ]


def test_the_workflows_variables_and_directory() -> None:
    before = """
        env: {WHAT: unit, LATER: "${{ steps.a.outputs.b }}"}
        defaults: {run: {working-directory: app}}
        """
    files = tree(job(steps("make test-$WHAT"), before=before))
    assert lines_of(files) == ["(cd app && make test-unit)"]


def test_a_script_with_control_flow_runs_in_bash() -> None:
    body = """
        runs-on: ubuntu-latest
        steps:
          - run: |
              if [[ $X == y ]]; then
                pytest -q
              fi
          - run: pytest -x
            shell: bash
          - run: pytest -l
            shell: pwsh
        """
    assert lines_of(tree(job(body))) == [
        "bash -ec 'if [[ $X == y ]]; then\n  pytest -q\nfi'",
        "pytest -x",
    ]


def test_what_needs_a_service_or_a_secret_is_not_tried() -> None:
    body = """
        runs-on: ubuntu-latest
        services: {postgres: {}, redis: {}}
        container: node:22
        steps: [{run: make test}]
        """
    found = propose_from_ci(tree(job(body)), HERE)
    assert (
        found.checks[0].not_tried
        == "it needs the service postgres and the service redis and a container image"
    )
    secret = "runs-on: ubuntu-latest\nsteps:\n  - run: make test\n    env: {KEY: '${{ secrets.KEY }}'}\n  - run: make e2e KEY=${{ secrets.KEY }}\n"
    found = propose_from_ci(tree(job(secret)), HERE)
    assert [check.not_tried for check in found.checks] == ["it needs a secret"]
    other = steps("make test").replace(
        "steps:", "steps:\n  - uses: actions/checkout@v4\n    with: {repository: a/b}"
    )
    assert (
        propose_from_ci(tree(job(other)), HERE).checks[0].not_tried == "it needs another repository"
    )
    gone = propose_from_ci(tree(job(steps("cargo test"))), Machine("3.12"))
    assert gone.checks[0].not_tried == "cargo is not installed here"
    assert gone.set_up == ()
    build = "runs-on: ubuntu-latest\nsteps:\n  - run: cmake -B b\n    env: {KEY: '${{ secrets.KEY }}'}\n"
    assert propose_from_ci(tree(job(build)), HERE).checks[0].not_tried == "it needs a secret"


def using(action: str, *runs: str, version: str = "") -> str:
    """Write a job that uses an action, with a version or without."""
    written = steps(*runs, uses=action)
    given = f"\n    with: {{version: '{version}'}}\n"
    return job(
        written.replace(f"uses: {action}\n", f"uses: {action}{given}") if version else written
    )


@pytest.mark.parametrize(
    ("workflow", "files", "lines"),
    [
        (job(steps("curl -sSL https://x | python -", "poetry install", "poetry run pytest")), {}, [f"{TOOLS} poetry", f"{FIND}poetry install", f"{FIND}poetry run pytest"]),
        (using("pdm-project/setup-pdm@v4", "pipx install nox", "nox -s test-3.12"), {"noxfile__py": ""}, [f"{TOOLS} pdm", VENV, f"{FIND}{ON}pip install --quiet nox", f"{FIND}{ON}nox -s test-3.12"]),
        (using("astral-sh/setup-uv@v9", "uv pip install --system -e .", "pytest"), {"setup__py": ""}, [VENV, f"{ON}pip install --quiet -e .", f"{ON}pytest"]),
        (using("astral-sh/setup-uv@v9", "pip install pytest", "pytest"), {"setup__py": ""}, [VENV, f"{ON}pip install --quiet pytest", f"{ON}pytest"]),
        (using("astral-sh/setup-uv@v9", "uv run pytest", version="0.9.1"), {}, [f"{TOOLS} uv==0.9.1", f"{FIND}uv run true", f"{FIND}uv run pytest"]),
        (using("pypa/hatch@install", "hatch test", version="1"), {}, [f"{TOOLS} 'hatch==1.*'", f"{FIND}hatch test"]),
        (using("pnpm/action-setup@v4", "pnpm install", "pnpm test", version="9"), {"pnpm-lock__yaml": ""}, [f"{NPM} pnpm@9", f"{FIND}pnpm install --frozen-lockfile", f"{FIND}pnpm test"]),
        (using("pnpm/action-setup@v4", "pnpm test", version="9"), {"package__json": '{"packageManager": "pnpm@10.2.1+sha512.ab"}'}, [f"{NPM} pnpm@10.2.1", f"{FIND}pnpm test"]),
        (job(steps("yarn test")), {"package__json": '{"packageManager": "yarn@4.5.0"}'}, [f"{NPM} @yarnpkg/cli-dist@4.5.0", f"{FIND}yarn test"]),
        (job("defaults: {run: {working-directory: web}}\n" + steps("bun run test")), {"package__json": '{"packageManager": "npm@10"}'}, [f"{NPM} bun", f"{FIND}(cd web && bun run test)"]),
        (using("astral-sh/setup-uv@v9", "npm test", version="latest"), {}, [f"{TOOLS} uv", f"{FIND}npm test"]),
    ],
)  # fmt: skip
def test_a_package_manager_that_is_not_here_is_installed(
    workflow: str, files: dict[str, str], lines: list[str]
) -> None:
    assert lines_of(tree(workflow, **files), BARE) == lines


def test_a_package_manager_of_a_manifest_is_installed_too() -> None:
    package = '{"scripts": {"test": "jest"}, "devDependencies": {"jest": "1"}}'
    found = plan(tree(package__json=package, **{"pnpm-lock__yaml": ""}), BARE).proposal
    assert found.set_up == (f"{NPM} pnpm", f"{FIND}pnpm install --frozen-lockfile")
    assert [check.run for check in found.checks] == [f"{FIND}pnpm test"]


def test_what_runs_here_already_is_not_installed() -> None:
    workflow = using("astral-sh/setup-uv@v9", "uv run pytest")
    assert lines_of(tree(workflow)) == ["uv run true", "uv run pytest"]
    without_npm = propose_from_ci(tree(job(steps("pnpm test"))), Machine("3.12"))
    assert without_npm.checks[0].not_tried == "pnpm is not installed here"


def test_the_action_of_pre_commit_is_its_command() -> None:
    files = tree(job(steps(uses="pre-commit/action@v3")))
    assert lines_of(files) == [
        VENV,
        f"{ON}pip install --quiet pre-commit",
        f"{ON}pre-commit install-hooks",
        f"{ON}pre-commit run --all-files",
    ]


# The matrix


def rows(
    matrix: str, run: str = "make test-${{ matrix.v }}", runs_on: str = "ubuntu-latest"
) -> list[str]:
    body = f"runs-on: {runs_on}\nstrategy: {{matrix: {matrix}}}\nsteps:\n  - run: {run}\n"
    return lines_of(tree(job(body)))


@pytest.mark.parametrize(
    ("matrix", "run", "line"),
    [
        ("{v: [a, b]}", "make test-${{ matrix.v }}", "make test-a"),
        ("{python: ['3.9', '3.12', pypy3.12]}", "tox -e ${{ matrix.python }}", "tox -e 3.12"),
        ("{python: [pypy3.12, '3.9', '3.14']}", "make test-${{ matrix.python }}", "make test-3.14"),
        ("{python: [latest, '3.11']}", "make test-${{ matrix.python }}", "make test-3.11"),
        ("{node: [18, 20.x, 23]}", "make test-${{ matrix.node }}", "make test-23"),
        ("{v: [a, b], exclude: [{v: a}]}", "make test-${{ matrix.v }}", "make test-b"),
        ("{v: [a], include: [{v: a, w: x}, {v: c}]}", "make test-${{ matrix.v }}${{ matrix.w }}", "make test-ax"),
        ("{include: [{v: a}, {v: b}]}", "make test-${{ matrix.v }}", "make test-a"),
        ("{v: [{n: a, l: [1]}]}", "make test-${{ matrix.v.n }}", "make test-a"),
        ("{cc: [clang-9, gcc]}", "make test CC=${{ matrix.cc }}", "make test CC=gcc"),
        ("{v: []}", "make test-x${{ matrix.v }}", "make test-x"),
        ("{python: '${{ fromJSON(needs.a.outputs.b) }}'}", "make test-${{ matrix.python }}", "make test-3.12"),
        ("'${{ fromJSON(needs.a.outputs.b) }}'", "make test-${{ matrix.python-version }}", "make test-3.12"),
        ("{other: '${{ fromJSON(needs.a.outputs.b) }}'}", "make test-${{ matrix.other }}", None),
    ],
)  # fmt: skip
def test_the_row_that_fits_this_machine(matrix: str, run: str, line: str | None) -> None:
    found = rows(matrix, run)
    assert found[-1:] == ([line] if line else [])


def test_jobs_of_other_systems_are_skipped() -> None:
    assert rows("{os: [windows-latest, ubuntu-latest], v: [a]}", runs_on="${{ matrix.os }}") == [
        "make test-a"
    ]
    assert rows("{v: [a]}", runs_on="macos-14") == []
    assert rows("{v: [a]}", runs_on="[self-hosted, linux]") == ["make test-a"]


def test_conditions_of_jobs_and_steps() -> None:
    body = """
        runs-on: ubuntu-latest
        strategy: {matrix: {v: [a, b, benchmark]}}
        if: github.event_name == 'pull_request'
        steps:
          - run: make test-${{ matrix.v }}
            if: ${{ !cancelled() }}
          - run: make lint-${{ matrix.v }}
            if: matrix.v == 'b'
          - run: make types
            if: matrix.v == 'benchmark'
          - run: make format
            if: steps.x.outputs.y
        """
    assert lines_of(tree(job(body))) == ["make test-a", "make lint-b"]
    assert lines_of(tree(job(f"if: github.ref == 'refs/heads/main'\n{steps('make test')}"))) == []


# Expressions

CONTEXT = {
    "matrix": {"v": "3.9", "b": True, "n": 2.0, "u": UNKNOWN},
    "github": {"ref": "refs/pull/1"},
}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("matrix.v", "3.9"),
        ("matrix['v']", "3.9"),
        ("matrix.missing", None),
        ("github.missing", UNKNOWN),
        ("secrets.KEY", UNKNOWN),
        ("matrix.tox || format('py{0}', matrix.v)", "py3.9"),
        ("matrix.v || secrets.KEY", "3.9"),
        ("secrets.KEY || 'a'", UNKNOWN),
        ("matrix.b && 'yes' || 'no'", "yes"),
        ("matrix.missing && 'yes' || 'no'", "no"),
        ("secrets.KEY && false", False),
        ("secrets.KEY && true", UNKNOWN),
        ("matrix.v == '3.9'", True),
        ("matrix.v == 3.9", True),
        ("matrix.v != '3.9'", False),
        ("matrix.u == 1", UNKNOWN),
        ("matrix.n < 3", UNKNOWN),
        ("!matrix.b", False),
        ("!secrets.KEY", UNKNOWN),
        ("(matrix.b)", True),
        ("'it''s'", "it's"),
        ("-1.5", -1.5),
        ("true", True),
        ("null", None),
        ("contains('abc', 'B')", True),
        ("startsWith(github.ref, 'refs/tags')", False),
        ("endsWith('a.py', '.py')", True),
        ("contains('abc')", UNKNOWN),
        ("format('{0}-{1}', 'a')", "a-"),
        ("format()", ""),
        ("always() && success() && !failure() && !cancelled()", True),
        ("fromJSON('[1]')", UNKNOWN),
        ("hashFiles(secrets.KEY)", UNKNOWN),
        ("matrix.v matrix.v", UNKNOWN),
        ("(matrix.v", UNKNOWN),
        ("", UNKNOWN),
        ("#", UNKNOWN),
        ("==", UNKNOWN),
    ],
)
def test_expressions(text: str, value: object) -> None:
    found = evaluate(text, CONTEXT)
    assert (found, type(found)) == (value, type(value))


def test_texts_with_expressions() -> None:
    assert (
        substitute("py${{ matrix.v }}-${{ matrix.b }}-${{ matrix.n }}${{ matrix.x }}", CONTEXT)
        == "py3.9-true-2"
    )
    assert substitute("${{ secrets.KEY }}", CONTEXT) is None
    assert is_true("${{ matrix.b }}", CONTEXT) is True
    assert is_true("matrix.missing", CONTEXT) is False
    assert is_true("secrets.KEY", CONTEXT) is None


# Commands


@pytest.mark.parametrize(
    ("command", "use"),
    [
        ("python3.12 -m pytest", CheckKind.TEST),
        ("coverage run --source x -m pytest", CheckKind.TEST),
        ("npx --yes vitest run", CheckKind.TEST),
        ("env A=1 B='x y' pytest", CheckKind.TEST),
        ("cd x && pip install . && pytest", CheckKind.TEST),
        ("nox -s lint", CheckKind.LINT),
        ("nox", CheckKind.TEST),
        ("tox --notest", Role.INSTALL),
        ("nox --install-only -s x", Role.INSTALL),
        ("make", CheckKind.BUILD),
        ("make -C tests check", CheckKind.TEST),
        ("make all || true", Role.UNKNOWN),
        ("make install-deps", Role.INSTALL),
        ("hatch test", CheckKind.TEST),
        ("hatch run types:check", CheckKind.TYPE),
        ("mvn -B verify", CheckKind.TEST),
        ("./gradlew --no-daemon assemble", Role.UNKNOWN),
        ("yarn", Role.INSTALL),
        ("npm", Role.SKIP),
        ("npm run", Role.UNKNOWN),
        ("npm run something", Role.UNKNOWN),
        ("npm run check", CheckKind.TEST),
        ("python --version", Role.SKIP),
        ("python", Role.UNKNOWN),
        ("pytest --version", Role.SKIP),
        ("./run-tests.py", CheckKind.TEST),
        ("tools/thing", Role.UNKNOWN),
        ("something", Role.UNKNOWN),
        ("echo 'unfinished", Role.SKIP),
        ("A=1", Role.SKIP),
        ("uv run -m pytest", CheckKind.TEST),
        ("docker compose up", Role.SYSTEM),
        ("(cd x && pytest)", Role.UNKNOWN),
        ("for a in 1 2; do\n  pytest $a\ndone", CheckKind.TEST),
    ],
)
def test_what_a_command_is_for(command: str, use: object) -> None:
    assert classify(command).use == use


def test_a_script_of_a_package_is_read() -> None:
    scripts = {
        "check": "npm run one",
        "one": "npm run two",
        "two": "npm run three",
        "three": "npm run four",
        "four": "tsc",
    }
    assert classify("npm run three", scripts).use is CheckKind.TYPE
    assert classify("npm run check", scripts).use is Role.UNKNOWN
    assert classify("npm run empty", {"empty": ""}).use is Role.UNKNOWN


def test_scripts_are_split_into_commands() -> None:
    assert split_script("# a comment\npytest \\\n  -q\n\necho done\n") == ["pytest -q", "echo done"]
    assert split_script("a && \\\n b") == ["a && b"]
    assert split_script("cat x |\n grep y") == ["cat x |\n grep y"]
    assert split_script('echo "a\nb"') == ['echo "a\nb"']
    assert split_script("for a in b; do\n c\ndone") == ["for a in b; do\n c\ndone"]


@pytest.mark.parametrize(
    ("command", "checking"),
    [
        ("eslint . --fix", "eslint ."),
        ("prettier --write .", "prettier --check ."),
        ("prettier -l .", "prettier -l ."),
        ("biome check --write", "biome check"),
        ("./bin/format-with-prettier.mjs --check", "./bin/format-with-prettier.mjs --check"),
        ("./node_modules/.bin/prettier x", "./node_modules/.bin/prettier --check x"),
        ("isort . && black .", "isort --check-only . && black --check ."),
        ("cargo fmt --all", "cargo fmt --check --all"),
        ("ruff check --fix --unsafe-fixes", "ruff check --no-fix"),
        ("ruff check --no-fix", "ruff check --no-fix"),
        ("git ls-files | xargs black", "git ls-files | xargs black"),
        ("pytest --fixtures-per-test", "pytest --fixtures-per-test"),
    ],
)
def test_the_form_that_only_checks(command: str, checking: str) -> None:
    assert checking_form(command, ruff_repairs=True) == checking


@pytest.mark.parametrize(
    ("pyproject", "ruff", "repairs"),
    [
        ("[tool.ruff]\nline-length = 80\nfix = true\n", "", True),
        ("[tool.ruff]\n[tool.other]\nfix = true\n", "", False),
        ("", "fix = true\n", True),
        ("", "[lint]\nfix = true\n", False),
        ("", "fix = false\n", False),
        ("[tool.ruff] # ours\r\nfix = true # always\r\n", "", True),
        ("[tool]\nruff = {fix = true}\n", "", True),
        ('[tool.ruff.lint]\nselect = ["E"]\n[tool.ruff]\nfix = true', "", True),
        ("[tool.ruff]\nfix = ", "fix = true", True),
        ("tool = 3", "", False),
    ],
)
def test_whether_ruff_repairs_by_default(pyproject: str, ruff: str, *, repairs: bool) -> None:
    assert repairs_by_default(pyproject, ruff) is repairs


# The plan


def test_manifests_stand_in_for_what_ci_lacks_and_for_what_fails() -> None:
    files = tree(
        job(steps("npm ci", "npm test")),
        package__json='{"scripts": {"test": "x", "lint": "y"}, "dependencies": {"a": "1"}}',
        **{"package-lock__json": ""},
    )
    found = plan(files, HERE)
    assert [check.run for check in found.proposal.checks] == ["npm test", "npm run lint"]
    assert [check.run for check in found.spare.checks] == ["npm test"]
    failed = Proposal("", (), (ProposedCheck("tests", "a", CheckKind.TEST, "", fails="it fails"),))
    assert missing(failed, found.spare) == found.spare
    linted = Proposal("", (), (ProposedCheck("lint", "a", CheckKind.LINT, ""),))
    assert missing(linted, found.spare) == found.spare
    passed = Proposal("", (), (ProposedCheck("tests", "a", CheckKind.TEST, ""),))
    assert missing(passed, found.spare).checks == ()


def test_manifests_that_would_install_more_add_nothing_to_ci() -> None:
    files = tree(job(steps("pip install tox", "tox")), tox__ini="", pyproject__toml="[tool.ruff]\n")
    found = plan(files, HERE)
    assert [check.name for check in found.proposal.checks] == ["tests"]
    assert [check.name for check in found.spare.checks] == ["tests", "lint"]


def test_without_workflows_the_manifests_are_the_plan() -> None:
    found = plan(tree(go__mod=""), HERE)
    assert [check.run for check in found.proposal.checks] == ["go test ./...", "go vet ./..."]
    assert found.spare.checks == ()


def test_submodules_and_lfs_files_are_part_of_the_plan() -> None:
    body = "runs-on: u\nsteps:\n  - uses: actions/checkout@v4\n    with: {submodules: recursive}\n  - run: make test\n"
    files = tree(job(body), __gitmodules='[submodule "a"]\n\tpath = a\n\turl = ../a\n')
    text = policy_text(plan(files, HERE).proposal)
    assert "checkout:\n  submodules: recursive\n\n# Commands that verify" in text
    without = tree(README__md="", __gitattributes="*.bin filter=lfs\n")
    text = policy_text(plan(without, HERE).proposal)
    assert text.endswith("checkout:\n  lfs: true\n")


def test_joined_names_are_unique_among_kept_checks() -> None:
    left_out = ProposedCheck("lint", "a", CheckKind.LINT, "", fails="no")
    first = Proposal("x", ("one",), (suite("a", "b"), left_out))
    second = Proposal(
        "y", ("one", "two"), (suite("c", "d"), ProposedCheck("lint", "e", CheckKind.LINT, ""))
    )
    found = joined(first, second)
    assert found.setup == ("one", "two")
    assert [check.name for check in found.checks] == ["tests", "lint", "tests 2", "lint"]
