"""The doctor sees what is wrong with a whole Mulligan, and goes on after each thing it finds."""

import os
from collections.abc import Callable, Generator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Never

import pytest
from pydantic import JsonValue

from github_simulator.world import Fault
from mulligan.config.load import load_operator
from mulligan.config.operator import Operator
from mulligan.daemon.doctor import GIB, Probes, agent_faults, diagnose, machine_faults
from mulligan.domain.errors import UnavailableError
from mulligan.domain.host import CommandNetworkStatus, Diagnosis, DiskSpace, Level, SandboxStatus
from mulligan.domain.issue import IssueRef, RepositoryFacts
from mulligan.domain.result import AgentFacts, Rest, RestKind
from mulligan.domain.spending import Run
from mulligan.git.commits import read_signing_key
from mulligan.interfaces.bootstrap.container import build_agents
from mulligan.interfaces.bootstrap.doctor import build_probes
from mulligan.interfaces.bootstrap.sandbox import confine
from mulligan.storage.database import open_database
from mulligan.storage.usage import SqlUsageStore
from mulligan.text.redact import Redactor
from world.confined import sandbox
from world.place import NAME, TOKEN, MulliganInstallation, mulligan_installation
from world.repositories import commit_to
from world.signing import make_key, public_key

CHECK: dict[str, JsonValue] = {"name": "tests", "run": "sh ./test.sh", "kind": "test"}
FILES = {"notes.txt": "one\n"}
GOOD, BAD = {Level.OK, Level.NOTE}, {Level.WARNING, Level.FAULT}


@pytest.fixture
def here(tmp_path: Path) -> Generator[MulliganInstallation]:
    with mulligan_installation(tmp_path, FILES, checks=[CHECK]) as made:
        made.agent("")
        yield made


def test_what_holds_all_work_is_a_fault_of_the_machine(here: MulliganInstallation) -> None:
    given = {"PATH": "/usr/bin:/bin", **here.environment}
    missing: JsonValue = {"command": ["/nowhere/agent"], "env": ["KEY"]}
    here.configure(agent=missing, agents={"there": {"command": ["sh"]}})
    operator = load_operator(here.config, given)
    with build_probes(operator, given) as probes:
        full = DiskSpace(here.directory, free=0, writable=True)
        short = replace(probes, workspace_room=lambda: full)
        assert machine_faults(operator, short) == ()
        assert [each.area for each in agent_faults("", short.agent(""))] == ["agent", "agent"]
        assert agent_faults("there", short.agent("there")) == ()
        closed = replace(short, workspace_room=lambda: replace(full, writable=False))
        assert len(machine_faults(operator, closed)) == 1
        unsigned = replace(short, signing_key=lambda: read_signing_key(Path("/nowhere"), given))
        assert [each.area for each in machine_faults(operator, unsigned)] == ["signing"]
        old = replace(short, git_version=lambda: (2, 1))
        assert len(machine_faults(operator, old)) == 1


def as_they_are(probes: Probes) -> Probes:
    return probes


def see(
    here: MulliganInstallation, what: Callable[[Probes], Probes] = as_they_are, **environment: str
) -> list[Diagnosis]:
    """Examine in this process; `what` may put other probes in place of the real ones."""
    given = {"PATH": "/usr/bin:/bin", **here.environment, **environment}
    operator = load_operator(here.config, given)
    with build_probes(operator, given) as built:
        probes = replace(built, sandbox_status=partial(tried_once, operator, built))
        return list(diagnose(operator, what(probes)))


TRIED = dict[str, SandboxStatus]()


def tried_once(operator: Operator, probes: Probes) -> SandboxStatus:
    """Try each sandbox once for all tests: that costs more than all else that the doctor does."""
    settings = repr(operator.sandbox)
    if settings not in TRIED:
        TRIED[settings] = probes.sandbox_status()
    return TRIED[settings]


def policy(here: MulliganInstallation, **keys: JsonValue) -> None:
    repository(here, policy=keys)


def repository(here: MulliganInstallation, **settings: JsonValue) -> None:
    (known,) = parts(here.settings["repositories"])
    assert isinstance(known, dict)
    here.configure(repositories=[{**known, **settings}])


def parts(value: JsonValue) -> list[JsonValue]:
    assert isinstance(value, list)
    return value


def bad(found: list[Diagnosis], area: str = NAME) -> list[Diagnosis]:
    return [each for each in found if each.area == area and each.level in BAD]


def only(found: list[Diagnosis], area: str = NAME) -> Diagnosis:
    (each,) = bad(found, area)
    assert each.fix.endswith(".")
    return each


def test_a_healthy_mulligan_has_no_fault(here: MulliganInstallation) -> None:
    found = see(here)
    assert [each for each in found if each.level is Level.FAULT] == []
    # Where bubblewrap does not work, or Mulligan is root, that is a warning and no fault.
    assert {each.area for each in found if each.level is Level.WARNING} <= {"sandbox", "user"}
    said = "\n".join(each.message for each in found if each.level is Level.OK)
    for part in (
        "Git 2",
        "It has 0 issues",
        "GiB are free for",
        "The agent's program is ",
        "its account is mulligan-bot",
        "can push",
        "base branch 'main'",
        "The policy is valid: 1 check, 3 attempts",
        "programs of the setup commands and checks are installed",
    ):
        assert part in said


def test_a_pattern_that_finds_nothing_is_a_warning(here: MulliganInstallation) -> None:
    policy(here, checks=[{**CHECK, "patterns": ["fine", "(?!odd)"]}])
    found = only(see(here))
    assert found.message == "The pattern '(?!odd)' of the check 'tests' finds nothing."
    assert found.fix.startswith("Write a regular expression that RE2 can read")


def test_everything_but_what_is_well_has_a_fix(here: MulliganInstallation) -> None:
    for each in see(here):
        assert bool(each.fix) is (each.level is not Level.OK)


def test_labels_that_are_missing_are_a_note(here: MulliganInstallation) -> None:
    notes = [each.message for each in see(here) if each.area == NAME and each.level is Level.NOTE]
    assert notes == [
        "The label 'mulligan' does not exist, so nobody can add it.",
        "Labels that do not exist yet: 'mulligan:running', 'mulligan:review', 'mulligan:hitl'.",
    ]
    here.issue()
    assert "'mulligan' does not exist" not in "".join(each.message for each in see(here))


def test_a_refused_token_does_not_keep_git_from_being_looked_at(here: MulliganInstallation) -> None:
    repository(here, base_branch="main")
    found = see(here, GITHUB_TOKEN="not-a-token")
    said = "GitHub refused the token (Bad credentials). Replace the one that github.token"
    assert only(found, "github").message.startswith(said)
    assert bad(found) == []
    assert "base branch 'main'" in "".join(each.message for each in found if each.area == NAME)


def test_without_a_token_github_is_not_asked(here: MulliganInstallation) -> None:
    repository(here, base_branch="main")
    here.configure(github={"api_url": here.url})
    assert only(see(here), "github").message == "No token for GitHub is configured."
    assert here.world.requests == []


def test_a_github_that_is_away_is_said_once(here: MulliganInstallation) -> None:
    repository(here, base_branch="main")
    here.world.faults = lambda _method, _path: Fault(502)
    found = see(here)
    assert "GET /user" in only(found, "github").message
    assert bad(found) == []


def test_rights_that_are_missing_are_named(here: MulliganInstallation) -> None:
    here.world.set_role(NAME, "mulligan-bot", "triage")
    assert only(see(here)).message == "The token cannot push."
    here.world.archive(NAME)
    assert "archived" in bad(see(here))[0].message


def test_what_github_does_not_say_is_a_note_and_issues_may_be_off(
    here: MulliganInstallation,
) -> None:
    def facts(name: str) -> RepositoryFacts:
        return RepositoryFacts(name, "", "main", has_issues=False)

    found = see(here, lambda probes: replace(probes, facts=facts))
    assert only(found).message == "Issues are disabled."
    assert "GitHub does not report whether the token can push." in {each.message for each in found}


def test_a_repository_that_is_not_there_is_said_once(here: MulliganInstallation) -> None:
    here.configure(repositories=[{"name": "acme/gone"}, *parts(here.settings["repositories"])])
    found = see(here)
    assert "does not find" in only(found, "acme/gone").message
    assert bad(found) == []


def test_what_cannot_be_fetched_is_said_and_its_checks_are_looked_at(
    here: MulliganInstallation,
) -> None:
    checks: list[JsonValue] = [CHECK, {"name": "own", "run": "./own.sh"}]
    repository(here, clone_url="/nowhere.git", policy={"checks": checks})
    found = see(here)
    assert "git fetch" in only(found).message
    assert "The programs of the setup commands and checks are installed." in {
        e.message for e in found
    }


def test_a_base_branch_that_is_not_there_is_said(here: MulliganInstallation) -> None:
    repository(here, base_branch="trunk")
    assert only(see(here)).message.startswith(f"{NAME} has no branch 'trunk'; push a first")


def test_a_policy_that_is_invalid_is_a_fault(here: MulliganInstallation) -> None:
    text = "max_issue_attempts: many\nnonsense: 1\n"
    commit_to(here.bare, {".github/mulligan.yml": text}, "main")
    number, unknown = bad(see(here))
    assert {number.level, unknown.level} == {Level.FAULT}
    assert number.message == (
        f".github/mulligan.yml of {NAME}, line 1: max_issue_attempts is 'many'; write a whole"
        " number from 1 to 10."
    )
    assert "line 2: nonsense" in unknown.message


def test_without_checks_nothing_is_verified(here: MulliganInstallation) -> None:
    policy(here)
    assert only(see(here)).message.startswith("The base branch has no .github/mulligan.yml, so")
    commit_to(here.bare, {".github/mulligan.yml": "checks: []\n"}, "main")
    assert only(see(here)).message.startswith("The policy has no checks")
    assert only(see(here)).level is Level.WARNING


def test_a_reviewer_with_the_whole_network_is_named(here: MulliganInstallation) -> None:
    checks: list[JsonValue] = [{"name": "look", "run": "true"}]
    for network in (True, "model"):
        policy(here, checks=checks, reviewer={"run": "true", "network": network})
        found = [each for each in see(here) if "reviewer.network: true" in each.message]
        assert [each.level for each in found] == [Level.WARNING] * (network is True)


def test_a_check_that_repairs_is_a_warning(here: MulliganInstallation) -> None:
    policy(here, checks=[{"name": "lint", "run": "echo eslint . --fix", "kind": "lint"}])
    found = only(see(here))
    assert found.message == "The check 'lint' repairs files instead of reporting them."
    assert found.fix == "Let it run this instead: `echo eslint .`."


def test_programs_that_are_missing_are_named_with_their_line(here: MulliganInstallation) -> None:
    lost: JsonValue = {"name": "lint", "run": "nobody-has-this -q"}
    policy(here, checks=[CHECK, lost])
    found = only(see(here))
    assert found.message == "'nobody-has-this' not found. It is the program of the check 'lint'."
    assert found.level is Level.FAULT
    policy(here, checks=[CHECK, lost], setup=["true"])
    assert only(see(here)).level is Level.WARNING
    venv: JsonValue = {"name": "own", "run": ".venv/bin/pytest -q"}
    policy(here, checks=[CHECK, venv], setup=["true", ".venv/bin/pip install x"])
    assert bad(see(here)) == []
    said = "The repository does not contain '.venv/bin/pip' and '.venv/bin/pytest'."
    assert said in [each.message for each in see(here) if each.level is Level.NOTE]
    policy(here, checks=[CHECK], setup=["nobody-has-this install"])
    assert "the setup command 'nobody-has-this install'" in only(see(here)).message
    assert only(see(here)).level is Level.FAULT


def test_a_program_that_the_sandbox_hides_is_named_with_the_setting(
    here: MulliganInstallation, tmp_path_factory: pytest.TempPathFactory
) -> None:
    sandbox()
    tools = tmp_path_factory.mktemp("tools")
    for file, first in (
        ("bin/lint", f"#!{tools}/venv/bin/python"),
        ("venv/bin/python", "#!/bin/sh"),
    ):
        (tools / file).parent.mkdir(parents=True)
        (tools / file).write_text(f"{first}\n")
        (tools / file).chmod(0o755)
    policy(here, checks=[CHECK, {"name": "lint", "run": "lint ."}])
    here.configure(sandbox="auto")
    path = f"{tools}/bin:/usr/bin:/bin"
    found = only(see(here, PATH=path))
    assert found.level is Level.WARNING
    assert found.message == (
        f"'lint' is installed at {tools}/bin/lint, but the sandbox hides {tools}/venv/bin/python."
    )
    assert found.fix == f"Add {tools}/venv to `sandbox.read` in mulligan.yml."
    here.configure(sandbox={"mode": "auto", "read": [str(tools / "venv")]})
    assert bad(see(here, PATH=path)) == []


def test_a_check_of_the_repositorys_own_is_looked_for_in_it(here: MulliganInstallation) -> None:
    policy(here, checks=[{"name": "own", "run": "./check.sh"}])
    assert "'./check.sh'" in only(see(here)).message
    commit_to(here.bare, {"check.sh": "exit 0\n"}, "main")
    assert bad(see(here)) == []


def test_lfs_and_submodules_are_noted(here: MulliganInstallation) -> None:
    files = {".gitattributes": "*.bin filter=lfs diff=lfs\n", ".gitmodules": '[submodule "x"]\n'}
    commit_to(here.bare, files, "main")
    notes = "".join(f"{each.message} {each.fix}" for each in see(here) if each.level is Level.NOTE)
    assert "Git LFS" in notes
    assert "submodules" in notes
    assert "`checkout: {submodules: true}`" in notes
    assert "`checkout: {lfs: true}`" in notes
    policy(here, checkout={"submodules": True, "lfs": True})
    notes = "".join(each.message for each in see(here) if each.level is Level.NOTE)
    assert "It has submodules. Agents and checks get their files." in notes
    assert "It uses Git LFS. Agents and checks get the files." in notes


@pytest.mark.parametrize(
    "name", ["mulligan.yml", ".mulligan.yaml", ".github/Mulligan.yml", ".github/mulligan.json"]
)
def test_a_policy_where_mulligan_does_not_read_it_is_a_warning(
    here: MulliganInstallation, name: str
) -> None:
    commit_to(here.bare, {name: "checks: []\n"}, "main")
    said = f"Mulligan does not read {name} as the policy of the repository."
    (found,) = [each for each in see(here) if each.message == said]
    assert found.level is Level.WARNING
    assert ".github/mulligan.yml" in found.fix
    commit_to(here.bare, {".github/mulligan.yaml": "checks: []\n"}, "main")
    assert said not in {each.message for each in see(here)}


def test_a_template_with_the_ready_label_is_a_warning_that_reassures(
    here: MulliganInstallation,
) -> None:
    templates = ".github/ISSUE_TEMPLATE"
    commit_to(
        here.bare,
        {
            f"{templates}/bug.yml": "name: Bug\nlabels: [bug, Mulligan]\n",
            f"{templates}/idea.md": "---\nlabels: idea\n---\n",
        },
        "main",
    )
    found = only(see(here))
    assert found.level is Level.WARNING
    assert found.message.startswith(f"{templates}/bug.yml adds the label 'mulligan'")
    assert "trusted" in found.message


def test_the_agents_program_and_what_it_needs(here: MulliganInstallation) -> None:
    here.configure(agent={"command": ["nobody-has-this", "/nowhere/agent.py"], "env": ["KEY"]})
    program, file, name = bad(see(here), "agent")
    assert program.message == "The agent's program 'nobody-has-this' was not found."
    assert file.message == "agent.command names /nowhere/agent.py, which does not exist."
    assert name.message == "agent.env names KEY, which is not set."
    here.configure(agent={"command": ["./agent"]})
    assert only(see(here), "agent").level is Level.WARNING


def test_the_agents_program_is_started(here: MulliganInstallation) -> None:
    program = here.directory / "claude"
    program.write_text("#!/bin/sh\necho 'SyntaxError: Unexpected token' >&2\nexit 1\n")
    program.chmod(0o755)
    here.configure(agent={"kind": "claude", "command": [str(program)]})
    found = only(see(here), "agent")
    assert found.level is Level.FAULT
    assert found.message == (
        f"The agent's program {program} does not start."
        " It ended with exit code 1: SyntaxError: Unexpected token."
    )
    here.configure(agent={"kind": "claude", "command": ["sh", str(program)]})
    assert bad(see(here), "agent") == []
    program.write_text("#!/nowhere/node\n")
    here.configure(agent={"kind": "claude", "command": [str(program)]})
    assert "cannot be started" in only(see(here), "agent").message


def test_an_agent_that_rests_is_a_warning_until_its_configuration_changes(
    here: MulliganInstallation,
) -> None:
    here.configure(agent={"command": ["sh"], "env": ["KEY"]})
    operator = load_operator(here.config, {"PATH": "/usr/bin:/bin", **here.environment})
    given = {"PATH": "/usr/bin:/bin", **here.environment, "KEY": "one"}
    agent = build_agents(operator, given, confine(operator, given), Redactor())[""]
    now = datetime.now(UTC)
    with open_database(operator.state.url) as database:
        rest = Rest(
            kind=RestKind.REFUSED,
            since=now,
            at=now,
            until=now + timedelta(hours=1),
            words="The model's service refused: no.",
            account=agent.account,
        )
        run = Run(IssueRef("o/r", 1), 1, 0, now, agent.name)
        SqlUsageStore(database).record(run, AgentFacts(kind="command", rest=rest))
    found = only(see(here, KEY="one"), "agent")
    assert found.level is Level.WARNING
    assert "The model's service refused: no." in found.message
    assert bad(see(here, KEY="two"), "agent") == []


NO_WALLS = SandboxStatus(available=False, reason="It is not installed.", fix="Install it.")


@pytest.mark.parametrize(
    ("mode", "walls", "level", "words"),
    [
        ("auto", SandboxStatus(available=True), Level.OK, "Bubblewrap confines"),
        ("required", SandboxStatus(available=True), Level.OK, "Bubblewrap confines"),
        (
            "auto",
            NO_WALLS,
            Level.FAULT,
            "`sandbox: auto` needs a working sandbox. It is not installed.",
        ),
        ("required", NO_WALLS, Level.FAULT, "needs a working sandbox. It is not installed."),
        ("off", NO_WALLS, Level.WARNING, "The sandbox is off: agents and checks"),
        (
            "auto",
            SandboxStatus(available=True, calls_filtered=False),
            Level.NOTE,
            "does not filter system calls",
        ),
        (
            "auto",
            SandboxStatus(available=True, copies="it is not allowed"),
            Level.NOTE,
            "copies the files that setup commands left: it is not allowed.",
        ),
        (
            "auto",
            SandboxStatus(available=True, missing=("/srv/x",)),
            Level.WARNING,
            "lists /srv/x, which does not exist",
        ),
    ],
)
def test_what_keeps_agents_in_is_said(
    mode: str, walls: SandboxStatus, level: Level, words: str, here: MulliganInstallation
) -> None:
    here.configure(sandbox=mode)
    found = see(here, lambda probes: replace(probes, sandbox_status=lambda: walls))
    assert level in {each.level for each in found if words in each.message}


@pytest.mark.parametrize(
    ("status", "words", "fix"),
    [
        (CommandNetworkStatus(unset=("A",)), "lists A, which is not set", "Set A"),
        (CommandNetworkStatus(exposed=("A",)), "A in `sandbox.env` has a password", "registries"),
        (CommandNetworkStatus(secret_files=("/etc/x",)), "cannot read /etc/x", "registries"),
        (CommandNetworkStatus(registry_problems=("It is down.",)), "It is down.", "registries"),
    ],
)
def test_what_commands_cannot_use_of_the_network_is_said(
    status: CommandNetworkStatus, words: str, fix: str, here: MulliganInstallation
) -> None:
    found = see(here, lambda probes: replace(probes, command_network=lambda: status))
    (warning,) = [each for each in found if words in each.message]
    assert warning.level is Level.WARNING
    assert fix in warning.fix


def test_a_registry_that_does_not_answer_is_said(here: MulliganInstallation) -> None:
    registry: JsonValue = {"host": "127.0.0.2:1", "password": "$INDEX_PASSWORD"}
    here.configure(sandbox={"mode": "off", "env": ["NOT_SET"], "registries": [registry]})
    messages = [each.message for each in see(here, INDEX_PASSWORD="a-password")]
    assert any(each.startswith("https://127.0.0.2:1 could not be reached: ") for each in messages)
    assert "`sandbox.env` lists NOT_SET, which is not set where Mulligan runs." in messages


@pytest.mark.parametrize(
    ("agent", "network", "level", "words"),
    [
        ("claude", None, Level.OK, "The agent can reach only its model and sandbox.hosts."),
        ("claude", "none", Level.OK, "The agent has no network."),
        ("command", None, Level.NOTE, "The agent can reach every host that this machine can."),
        ("command", "model", Level.FAULT, "sandbox.network: model cannot be used"),
    ],
)
def test_the_network_of_an_agent_is_said(
    agent: str, network: str | None, level: Level, words: str, here: MulliganInstallation
) -> None:
    command: dict[str, JsonValue] = {"kind": agent, "command": ["/bin/sh"]}
    here.configure(sandbox={"network": network}, agent=command)
    found = see(
        here, lambda probes: replace(probes, sandbox_status=lambda: SandboxStatus(available=True))
    )
    (said,) = (each for each in found if each.area == "sandbox" and words in each.message)
    assert said.level is level
    confined = see(here, lambda probes: replace(probes, sandbox_status=lambda: NO_WALLS))
    assert words not in "".join(each.message for each in confined)


def test_what_the_sandbox_is_to_show_has_to_be_there(here: MulliganInstallation) -> None:
    sandbox()
    here.configure(sandbox={"read": ["/usr"], "write": ["/nowhere/x"]})
    assert only(see(here), "sandbox").message == "`sandbox` lists /nowhere/x, which does not exist."


@pytest.mark.parametrize("is_root", [True, False])
def test_who_runs_as_root_is_warned(is_root: bool, here: MulliganInstallation) -> None:  # noqa: FBT001
    found = see(here, lambda probes: replace(probes, is_root=lambda: is_root))
    assert [each.message.startswith("Mulligan runs as root") for each in bad(found, "user")] == (
        [True] if is_root else []
    )


@pytest.mark.skipif(os.getuid() != 0, reason="commands run as Mulligan's own user then")
def test_what_is_named_and_closed_to_commands_is_told(
    here: MulliganInstallation, tmp_path: Path
) -> None:
    sandbox()
    closed, shown, kept = (tmp_path / name for name in ("closed", "shown", "kept"))
    for directory, mode in ((closed, 0o700), (shown, 0o755), (kept, 0o755)):
        directory.mkdir()
        directory.chmod(mode)
    here.configure(sandbox={"read": [str(closed), str(shown)], "write": [str(kept)]})
    told = [each.message for each in bad(see(here), "sandbox")]
    whom = "but the user of sandboxed commands cannot read it."
    assert told == [f"`sandbox` lists {path}, {whom}" for path in (closed, kept)]


def test_a_disk_without_room_for_files_is_a_fault(here: MulliganInstallation) -> None:
    room = DiskSpace(Path("/srv"), 10 * GIB, writable=True, free_files=3)
    found = see(here, lambda probes: replace(probes, state_room=lambda: room))
    assert "free inodes" in " ".join(each.message for each in found if each.level is Level.FAULT)


@pytest.mark.parametrize(
    ("free", "writable", "level"),
    [
        (10 * GIB, True, Level.OK),
        (GIB, True, Level.WARNING),
        (GIB // 10, True, Level.FAULT),
        (10 * GIB, False, Level.FAULT),
    ],
)
def test_room_is_measured(
    *, free: int, writable: bool, level: Level, here: MulliganInstallation
) -> None:
    room = DiskSpace(Path("/srv"), free, writable)
    found = see(here, lambda probes: replace(probes, workspace_room=lambda: room))
    assert [each.level for each in found if each.area == "workspace"] == [level]


def test_places_that_cannot_be_used_are_faults_and_the_rest_is_looked_at(
    here: MulliganInstallation,
) -> None:
    (here.directory / "file").touch()
    blocked = here.directory / "file" / "inside"
    here.configure(state={"url": f"sqlite:///{blocked}/x.db"}, workspace={"root": str(blocked)})
    found = see(here)
    assert {each.area for each in found if each.level is Level.FAULT} == {
        *("state", "workspace", NAME)
    }
    assert "its account is mulligan-bot" in "".join(each.message for each in found)


def test_a_git_that_is_missing_or_too_old_is_a_fault(
    here: MulliganInstallation, tmp_path: Path
) -> None:
    found = see(here, lambda probes: replace(probes, git_version=lambda: (2, 20)))
    assert only(found, "git").fix == "Install git 2.32 or newer."
    (tmp_path / "empty").mkdir()
    found = see(here, PATH=str(tmp_path / "empty"))
    assert only(found, "git").level is Level.FAULT


def test_a_look_that_fails_is_a_finding_and_the_next_is_taken(here: MulliganInstallation) -> None:
    def fail(*_: object) -> Never:
        message = "The machine is out of processes; restart it."
        raise UnavailableError(message)

    def unwell(probes: Probes) -> Probes:
        return replace(probes, has_program=fail, workspace_room=fail)

    here.world.faults = lambda _, path: Fault(404) if path.endswith("/labels") else None
    assert "/labels" in only(see(here)).message
    found = see(here, unwell)
    program, labels = bad(found)
    assert program.message == "The machine is out of processes; restart it."
    assert "/labels" in labels.message
    assert "its account is mulligan-bot" in "".join(each.message for each in found)


def test_a_policy_that_is_invalid_hides_no_finding_that_does_not_need_it(
    here: MulliganInstallation,
) -> None:
    template = "---\nlabels: bot\n---\n"
    files = {
        ".github/mulligan.yml": "labels: {ready: bot}\nnonsense: 1\n",
        ".github/ISSUE_TEMPLATE/bug.md": template,
        ".gitattributes": "*.bin filter=lfs\n",
    }
    commit_to(here.bare, files, "main")
    repository(here, policy={})
    found = [each.message for each in see(here) if each.area == NAME]
    for part in (
        "line 2: nonsense",
        "The label 'bot' does not exist",
        "bug.md adds the label 'bot'",
        "It uses Git LFS",
    ):
        assert part in "\n".join(found)


def test_a_token_that_is_missing_hides_no_other_fault(here: MulliganInstallation) -> None:
    here.configure(sandbox="off", agent={"command": ["nobody-has-this"]})
    repository(here, base_branch="main")
    checks: list[JsonValue] = [{"name": "lint", "run": "nobody-has-this-either"}]
    policy(here, checks=checks)
    del here.environment["GITHUB_TOKEN"]
    done = here.run("doctor")
    assert done.returncode == 1
    for part in (
        "configuration\n  ✓ ",
        "agent\n  ✗ The agent's program 'nobody-has-this' was not found.",
        "github.token needs the environment variable GITHUB_TOKEN, which is not set",
        "✗ 'nobody-has-this-either' not found.",
        "\n3 faults and ",
    ):
        assert part in done.stdout


def test_without_an_account_what_git_cannot_fetch_is_only_a_note(
    here: MulliganInstallation,
) -> None:
    del here.environment["GITHUB_TOKEN"]
    repository(here, base_branch="trunk")
    done = here.run("doctor")
    assert f"{NAME}\n  · Not checked yet: {NAME} has no branch 'trunk'" in done.stdout


def test_an_invalid_configuration_hides_no_fault_of_the_machine(
    here: MulliganInstallation,
) -> None:
    here.configure(nonsense=1, agnt=2)
    done = here.run("doctor")
    assert done.returncode == 1
    for part in ("nonsense", "agnt", "git\n  ✓ Git 2."):
        assert part in done.stdout


def test_a_mulligan_at_work_is_named(here: MulliganInstallation) -> None:
    assert "No Mulligan is running now." in {each.message for each in see(here)}
    found = see(here, lambda probes: replace(probes, at_work=lambda: "`mulligan run` (process 7)"))
    assert "`mulligan run` (process 7) is running." in {each.message for each in found}


def test_the_command_prints_a_list_and_a_sum(here: MulliganInstallation) -> None:
    here.configure(sandbox="off")
    done = here.run("doctor")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[:2] == ["configuration", f"  ✓ {here.config} is valid; it names 1 repository."]
    # One is that the sandbox is off, and the other that Mulligan is root, where it is.
    warnings = "1 warning" if os.getuid() else "2 warnings"
    assert lines[-1] == f"{warnings}; nothing stops the work."
    assert [line for line in lines if line != line.rstrip()] == []
    here.configure(agent={"command": ["nobody-has-this"]})
    done = here.run("doctor")
    assert done.returncode == 1
    assert "  ✗ The agent's program 'nobody-has-this' was not found.\n    → Install" in done.stdout
    assert done.stdout.endswith(f"\n1 fault and {warnings}.\n")


def test_programs_get_a_list_of_findings(here: MulliganInstallation) -> None:
    found = parts(here.ask("doctor"))
    assert found[0] == {
        "area": "configuration",
        "level": "ok",
        "message": f"{here.config} is valid; it names 1 repository.",
        "fix": None,
    }


def test_a_configuration_that_is_wrong_is_a_finding(here: MulliganInstallation) -> None:
    here.config.write_text("repositories: 3\n")
    done = here.run("doctor", "--json")
    assert done.returncode == 1
    assert '"level": "fault"' in done.stdout
    here.config.unlink()
    done = here.run("doctor")
    assert "Run `mulligan init` to write one, or name another" in done.stdout


def test_rules_that_refuse_mulligans_work_are_named_before_an_agent_is_paid(
    here: MulliganInstallation,
) -> None:
    (good,) = [each for each in see(here) if "No rule of GitHub's" in each.message]
    assert (good.area, good.level) == (NAME, Level.OK)
    here.world.add_rule(NAME, "required_signatures", ["main"])
    here.world.add_rule(NAME, "creation", ["mulligan/*"])
    pattern: JsonValue = {"operator": "starts_with", "pattern": "feat: \n"}
    here.world.add_rule(NAME, "commit_message_pattern", ["main"], pattern)
    found = bad(see(here))
    assert {each.level for each in found} == {Level.FAULT}
    assert sorted(each.message.split(", ")[0] for each in found) == [
        "A rule allows only some people to create branches such as mulligan/issue-1.",
        "A rule requires signed commits",
        "A rule says that commit messages must start with `feat: `. It refuses Mulligan's",
    ]


@pytest.mark.parametrize("status", [403, 404])
def test_rules_that_github_does_not_show_are_unknown(
    here: MulliganInstallation, status: int
) -> None:
    here.world.faults = lambda _, path: Fault(status) if "/rules/branches/" in path else None
    found = [each for each in see(here) if "does not report its rules" in each.message]
    assert [each.level for each in found] == [Level.NOTE, Level.NOTE]
    assert not [each for each in see(here) if "No rule of GitHub's" in each.message]


def test_a_protection_that_only_administrators_see_is_unknown(here: MulliganInstallation) -> None:
    here.world.protect(NAME, "main", "required_signatures")
    (found,) = [each for each in see(here) if "GitHub does not say how" in each.message]
    assert found.level is Level.NOTE
    here.world.set_role(NAME, here.world.tokens[TOKEN].login, "admin")
    assert "signing_key_file" in only(see(here)).fix


def test_a_signing_key_that_github_does_not_know_is_a_warning(here: MulliganInstallation) -> None:
    key = make_key(here.directory / "signing-key")
    github = here.settings["github"]
    assert isinstance(github, dict)
    here.configure(github={**github, "signing_key_file": str(key)})
    here.world.add_rule(NAME, "required_signatures", ["*"])
    found = see(here)
    assert "knows no such signing key" in only(found, "signing").message
    assert "belongs to no account" in bad(found)[0].message
    here.world.add_signing_key(here.world.tokens[TOKEN].login, public_key(key))
    policy(here, commit={"email": "bot@users.noreply.github.com"}, checks=[CHECK])
    assert bad(see(here), "signing") == bad(see(here)) == []
