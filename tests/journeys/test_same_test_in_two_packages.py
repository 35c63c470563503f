"""Two packages have a test of one name: the red one of one excuses no red one of the other.

The checks print what `go test` 1.19 and Mocha 11 printed of such repositories.
"""

from pathlib import Path

import pytest

from mulligan.domain.outcome import Outcome
from world.place import NAME, mulligan_installation

GO_A = """\
--- FAIL: TestOpen (0.00s)
    store_test.go:8: Open() = 1, want 2
FAIL
FAIL\texample.com/shop/a\t0.003s
"""
GO_B_FINE = "ok  \texample.com/shop/b\t0.002s\nFAIL\n"
GO_B = f"{GO_A.replace('shop/a', 'shop/b')}FAIL\n"

GO_A_IN_TURN = f"=== RUN   TestOpen\n{GO_A}"
GO_B_IN_TURN = f"=== RUN   TestOpen\n--- PASS: TestOpen (0.00s)\nPASS\n{GO_B_FINE}"

MOCHA = """

  Store
    1) opens

  Store
    {second}


  {passing}{failing} failing

  1) Store
       opens:

      AssertionError [ERR_ASSERTION]: Expected values to be strictly equal:

1 !== 2

      + expected - actual

      -1
      +2
      
      at Context.<anonymous> (test/a.test.cjs:2:54)
      at process.processImmediate (node:internal/timers:483:21)

"""  # noqa: W293 - as Mocha writes it
MOCHA_A = MOCHA.format(second="✔ opens", passing="1 passing (3ms)\n  ", failing=1)
MOCHA_FIRST = MOCHA.format(second="2) opens", passing="0 passing (3ms)\n  ", failing=2)
MOCHA_SECOND = MOCHA_FIRST[MOCHA_FIRST.index("  1) Store") :].replace("a.test", "b.test")
MOCHA_BOTH = MOCHA_FIRST + MOCHA_SECOND.replace("1)", "2)")

OUTPUTS = {
    "go": (GO_A + GO_B_FINE, GO_A + GO_B, "example.com/shop/b.TestOpen"),
    "go -v": (
        GO_A_IN_TURN + GO_B_IN_TURN,
        f"=== RUN   TestOpen\n{GO_A}=== RUN   TestOpen\n{GO_B}",
        "example.com/shop/b.TestOpen",
    ),
    "mocha": (MOCHA_A, MOCHA_BOTH, "test/b.test.cjs › Store opens"),
}
SPOIL = "pathlib.Path('b', 'store').write_text('1\\n')\n"
RUN = "if grep -q 2 b/store; then cat before.txt; else cat after.txt; fi; exit 1"


@pytest.mark.parametrize(
    "tool", ["go", *(pytest.param(each, marks=pytest.mark.deep) for each in ("go -v", "mocha"))]
)
def test_the_red_test_of_one_package_excuses_no_other(tmp_path: Path, tool: str) -> None:
    before, after, named = OUTPUTS[tool]
    files = {"b/store": "2\n", "before.txt": before, "after.txt": after}
    tests = {"name": "tests", "run": RUN, "kind": "test"}
    with mulligan_installation(tmp_path, files, [tests], max_issue_attempts=2) as here:
        here.configure(sandbox="off")
        here.agent(SPOIL)
        ref = here.issue()
        assert here.run("once").returncode == 3
        first, second = here.attempts(ref)
        assert (first.outcome, second.outcome) == (Outcome.CHECKS_FAILED, Outcome.CHECKS_FAILED)
        (check,) = first.checks
        assert [found.test_id for found in check.findings] == [named]
        assert len(check.known) == 1
        told = here.prompt(ref, 2).partition("# Retry context")[2]
        assert named in told
        assert "shop/a" not in told
        assert "test/a" not in told
        assert not here.world.pulls_of(NAME)


@pytest.mark.deep
@pytest.mark.parametrize("tool", OUTPUTS)
def test_what_was_red_before_still_counts_for_nothing(tmp_path: Path, tool: str) -> None:
    files = {"b/store": "2\n", "before.txt": OUTPUTS[tool][0], "after.txt": OUTPUTS[tool][1]}
    tests = {"name": "tests", "run": RUN, "kind": "test"}
    with mulligan_installation(tmp_path, files, [tests]) as here:
        here.configure(sandbox="off")
        here.agent("pathlib.Path('notes').write_text('more\\n')\n")
        ref = here.issue()
        assert here.run("once").returncode == 0
        (meta,) = here.attempts(ref)
        assert (meta.outcome, meta.checks[0].preexisting) == (Outcome.SUCCEEDED, True)
