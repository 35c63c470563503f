"""How an agent is started is read from its adapter and the operator's settings."""

from pathlib import Path

import pytest

from mulligan.agents.adapters import BUILT_IN
from mulligan.agents.invocation import (
    MAX_ARGUMENT_BYTES,
    Invocation,
    adapter_of,
    invoke,
    litter_of,
    marks_closing_text,
)
from mulligan.config.adapters import Adapter
from mulligan.config.operator import AgentSettings
from mulligan.domain.errors import ConfigError

pytestmark = pytest.mark.pure
HOME = Path("/private/home")


def started(
    settings: AgentSettings, prompt: str = "Do it.", *, contained: bool = False
) -> Invocation:
    adapter = adapter_of(settings, {})
    return invoke(settings, adapter, prompt, HOME, contained=contained)


def test_a_command_is_run_as_it_is_written() -> None:
    start = started(AgentSettings(command=("sh", "-c", "{prompt} {model}x"), model="m"))
    assert start.argv == ("sh", "-c", "Do it. {model}x")
    assert (start.stdin, start.files, start.record) == (b"Do it.", {}, None)


def test_the_model_and_the_turns_are_named_where_they_are_set() -> None:
    bare = started(AgentSettings(kind="claude")).argv
    assert "--model" not in bare
    assert "--max-turns" not in bare
    full = started(AgentSettings(kind="claude", model="opus", max_turns=9)).argv
    assert full == (*bare, "--model", "opus", "--max-turns", "9")


def test_what_the_operator_adds_comes_after_the_adapters_arguments() -> None:
    start = started(AgentSettings(kind="gemini", arguments=("--debug",), command=("node", "g.js")))
    assert start.argv == (
        *("node", "g.js", "--output-format", "stream-json", "--approval-mode", "yolo"),
        "--debug",
    )


def test_codexs_own_sandbox_is_off_inside_of_ours_and_on_without() -> None:
    inside = started(AgentSettings(kind="codex"), contained=True).argv
    assert inside[-2:] == ("-c", 'sandbox_mode="danger-full-access"')
    alone = started(AgentSettings(kind="codex"))
    assert 'sandbox_mode="workspace-write"' in alone.argv
    assert alone.stdin == b"Do it."


def test_aider_reads_the_prompt_from_a_file_of_its_home() -> None:
    start = started(AgentSettings(kind="aider"), "Ä\0 {model}")
    assert start.files == {"prompt.md": "Ä\0 {model}"}
    assert start.argv[:3] == ("aider", "--message-file", str(HOME / "prompt.md"))
    assert start.stdin == b""


def test_mini_gets_the_prompt_as_an_argument_that_stays_whole() -> None:
    start = started(AgentSettings(kind="mini"), "Fill in {record} and {model}.\0")
    assert start.argv[:3] == ("mini", "-t", "Fill in {record} and {model}.")
    assert start.record == HOME / "trajectory.json"
    assert str(start.record) in start.argv
    assert start.files == {}


def test_a_prompt_that_is_too_long_for_an_argument_goes_into_a_file() -> None:
    prompt = "x" * (MAX_ARGUMENT_BYTES + 1)
    start = started(AgentSettings(kind="mini"), prompt)
    place = HOME / "prompt.md"
    assert start.argv[2] == f"Read your task in the file {place}, all of it, and do it."
    assert start.files == {"prompt.md": prompt}


def test_an_agent_of_the_operator_is_found_by_its_name_even_before_one_built_in() -> None:
    own = {"claude": Adapter(program="mine")}
    assert adapter_of(AgentSettings(kind="claude"), own).program == "mine"
    assert adapter_of(AgentSettings(kind="claude"), {}) is BUILT_IN["claude"]


def test_an_agent_that_nobody_knows_is_refused_with_those_that_are() -> None:
    with pytest.raises(
        ConfigError, match=r"agent\.kind: 'cloude' is not known; write one of claude"
    ):
        adapter_of(AgentSettings(kind="cloude"), {"mine": Adapter(program="x")})


def test_files_that_any_agent_leaves_behind_are_known() -> None:
    own = {"mine": Adapter(program="mine", litter=(".mine/",))}
    assert {".aider*", ".claude/", ".mine/"} <= set(litter_of(own))
    assert set(litter_of(own)) - set(litter_of({})) == {".mine/"}


def test_an_agent_whose_rules_mark_its_closing_text_says_nothing_else() -> None:
    assert marks_closing_text(BUILT_IN["claude"])
    assert not marks_closing_text(Adapter(program="mine"))
