"""Statistics as people read them, on a terminal and on a page."""

import json
import re
from dataclasses import replace
from datetime import timedelta

import pytest
from pydantic import TypeAdapter

from mulligan.domain.stats import Cost, FeedbackStats, FrequentFailure, LedgerHistory, summarise
from mulligan.interfaces.cli.stats import write_page
from mulligan.interfaces.stats_report import (
    EMPTY,
    StatsTable,
    answers,
    as_json,
    duration_text,
    money,
    period,
    points,
    rate,
    split_table,
    stats_tables,
    tokens,
)
from world.sample_history import END, sample_month

pytestmark = pytest.mark.pure

MONTH, END_TEXT = summarise(sample_month(), END), END.isoformat()
HOSTILE = "<script>alert(1)</script>\u202e & \x1b[31m"
KNOWN, PARTLY = Cost(12.5, 100, 0, 0), Cost(12.5, 1000, 2, 1)


def sheet(title: str) -> StatsTable:
    return next(each for each in stats_tables(MONTH) if each.title == title)


@pytest.mark.parametrize(
    ("usd", "cost", "written"),
    [
        (1234.5, KNOWN, "$1,234.50"),
        (0.0, KNOWN, "$0.00"),
        (0.004, KNOWN, "$0.0040"),
        (12.5, PARTLY, "≥ $12.50"),
        (None, KNOWN, "–"),
        (None, Cost(None, 0, 1, 0), "unknown"),
    ],
)
def test_money_says_when_a_part_of_it_is_unknown(
    usd: float | None, cost: Cost, written: str
) -> None:
    assert money(usd, cost) == written


def test_tokens_say_so_too() -> None:
    assert tokens(KNOWN) == "100"
    assert tokens(PARTLY) == "≥ 1,000"
    assert tokens(Cost(1, None, 0, 1)) == "unknown"


@pytest.mark.parametrize(
    ("seconds", "written"),
    [
        (42, "42 s"),
        (60, "1 min"),
        (3599, "59 min"),
        (3 * 3600 + 61, "3 h 1 min"),
        (90_000, "1 d 1 h"),
    ],
)
def test_times_have_two_units_at_most(seconds: int, written: str) -> None:
    assert duration_text(timedelta(seconds=seconds)) == written
    assert duration_text(None) == "–"


def test_a_wide_sheet_is_halved_and_both_halves_name_the_rows() -> None:
    first, second = split_table(
        StatsTable("Wide", ("name", "a", "b", "c"), (("x", "1", "2", "3"),))
    )
    assert (first.columns, first.rows) == (("name", "a", "b"), (("x", "1", "2"),))
    assert (second.columns, second.rows) == (("name", "c"), (("x", "3"),))


def test_a_share_of_nothing_is_none() -> None:
    assert (rate(1, 3), rate(0, 0)) == ("33 %", "–")


def test_the_first_figures_say_what_a_merge_cost_and_of_what_nothing_is_known() -> None:
    told = {each.name: each for each in points(MONTH)}
    merged = told["per merged pull request"]
    assert merged.value == "≥ $2.03"
    assert merged.note.endswith("divided by 16 merged")
    assert told["spent"].note.endswith("3 attempts did not report the cost")
    assert told["waiting for human review"].value == "4"


def test_tables_have_a_cell_for_each_column_and_bars_of_at_most_their_width() -> None:
    for each in stats_tables(MONTH):
        assert {len(row) for row in each.rows} == {len(each.columns)}
        assert all(0 <= share <= 1 for share in each.shares)
        assert not each.shares or len(each.shares) == len(each.rows)
    assert sheet("Success by attempt").rows[0] == ("1", "25", "12", "48 %")


def test_programs_get_the_same_figures() -> None:
    found = as_json(MONTH)
    overall = MONTH.overall
    assert found["attempts"] == {
        "made": overall.attempts,
        "counted": overall.counted,
        "succeeded": overall.succeeded,
    }
    assert (found["since"], found["until"]) == (MONTH.since and MONTH.since.isoformat(), END_TEXT)
    groups = TypeAdapter(dict[str, object]).validate_python(found["agents"])
    assert [*groups] == [each.name for each in MONTH.agents]
    assert found["by_attempt"] == [
        {"attempt": each.place, "made": each.made, "succeeded": each.succeeded}
        for each in MONTH.places
    ]
    json.dumps(found)
    empty = as_json(summarise(LedgerHistory(None, (), (), ()), END))
    assert (empty["since"], empty["weeks"], empty["by_issue"]) == (None, [], [])


def test_the_period_is_told_with_its_label() -> None:
    assert re.fullmatch(r"From [0-9: -]{16} to [0-9: -]{16} UTC\.", period(MONTH))
    assert period(replace(MONTH, label="bug")).endswith(" UTC, issues with the label bug.")
    assert period(replace(MONTH, since=None)) == EMPTY


def test_each_table_has_an_address_of_its_own() -> None:
    slugs = [each.slug for each in stats_tables(MONTH)]
    assert slugs[0] == "outcomes-by-week"
    assert len(set(slugs)) == len(slugs)


def test_where_every_attempt_told_its_cost_nothing_is_said_about_it() -> None:
    whole = replace(MONTH.overall, cost=KNOWN)
    told = {each.name: each for each in points(replace(MONTH, overall=whole))}
    assert told["spent"].note == "100 tokens"


def test_three_questions_are_answered_first() -> None:
    issues, cost, time = answers(MONTH)
    assert (issues.value, issues.meaning) == ("16 merged", "25 issues taken")
    assert [each.name for each in issues.lines][:2] == ["merged", "in review now"]
    assert cost.value == "≥ $2.03"
    assert cost.meaning.startswith("for each of 16 merged")
    assert time.value.endswith("in failed attempts")
    assert [each.name for each in time.lines][:2] == ["agent", "waiting to start"]
    shares = [each.share for of in (issues, time) for each in of.lines if each.share is not None]
    assert all(0 < share <= 1 for share in shares)


def test_a_figure_that_was_not_measured_is_left_out() -> None:
    silent = replace(MONTH.overall, cost=Cost(None, None, 3, 3), to_merge=None)
    without = replace(MONTH, overall=silent)
    names = {each.name for each in points(without)}
    assert "issues taken" in names
    assert names.isdisjoint({"spent", "tokens", "per attempt", "per issue", "until the merge"})
    _, cost, _ = answers(without)
    assert (cost.value, cost.meaning) == (
        "not measured",
        "The agents did not report what they cost.",
    )
    counted = replace(MONTH, overall=replace(silent, cost=Cost(None, 9_000, 3, 0)))
    assert {each.name: each.value for each in points(counted)}["tokens"] == "9,000"


def test_an_attempt_without_a_run_of_the_agent_did_not_cost_zero() -> None:
    none_ran, silent = Cost(None, None, 0, 0), Cost(None, None, 1, 1)
    assert (money(None, none_ran), tokens(none_ran)) == ("–", "–")
    assert (money(None, silent), tokens(silent)) == ("unknown", "unknown")


def test_a_ledger_without_attempts_has_answers_too() -> None:
    nothing = summarise(LedgerHistory(END, (), (), ()), END)
    assert [each.value for each in answers(nothing)] == [
        "0 merged",
        "nothing merged",
        "not measured",
    ]
    assert {each.value for each in points(nothing)} == {"0"}


def test_the_page_needs_nothing_but_itself_and_has_a_heading_for_each_table() -> None:
    page = write_page(MONTH).replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert page.count("<svg") == 5
    assert re.findall(r"<script|<link|<img|src=|https?:|url\(", page) == []
    assert page.count("<h1>") == 1
    assert page.count("<h2") == page.count("<table") == len(stats_tables(MONTH))
    assert 'lang="en"' in page
    assert "prefers-color-scheme: dark" in page


def test_what_others_wrote_is_only_text_on_the_page() -> None:
    bad = (FrequentFailure("a/b", HOSTILE, 1, 1, HOSTILE, "f"),)
    told = replace(MONTH.retries, feedback=(FeedbackStats(HOSTILE, 2, 1),))
    page = write_page(replace(MONTH, failures=bad, checks=bad, retries=told))
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert "\u202e" not in page
    assert "\x1b" not in page
