"""The agents' usage, stored at every report so that it survives a kill or a restart."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import reduce
from threading import Lock

from pydantic import JsonValue
from sqlalchemy import ColumnElement, and_, delete, func, insert, select

from mulligan.domain.agent_rest import last_rest
from mulligan.domain.issue import IssueRef
from mulligan.domain.result import AgentFacts, Rest
from mulligan.domain.spending import Run, Spent, spent_in
from mulligan.storage.database import Database
from mulligan.storage.schema import RUNS_TABLE
from mulligan.storage.serialization import write_time
from mulligan.text.redact import Redactor

RUN = RUNS_TABLE.c
MILLION = 1_000_000

RECENT_RUNS = 20
"""Runs of an agent of which the last one counts; more never run at the same time."""


@dataclass(frozen=True, slots=True)
class SqlUsageStore:
    """Implements UsageStore with SQLAlchemy; redacts all text."""

    database: Database
    redactor: Redactor = field(default_factory=Redactor)

    def record(self, run: Run, usage: AgentFacts) -> None:
        """The usage is durable when this returns."""
        spent = spent_in(usage)
        known = and_(_of(run.issue, run.number), RUN.fix_round == run.fix_round)
        values = {
            "repository": run.issue.repository,
            "number": run.issue.number,
            "attempt": run.number,
            "fix_round": run.fix_round,
            "day": run.day.isoformat(),
            "microdollars": round((spent.usd or 0.0) * MILLION),
            "tokens": spent.tokens or 0,
            "usage": _redacted(usage, self.redactor).model_dump_json(),
            "agent": run.agent,
            "began": write_time(run.began),
            "denied": usage.rest is not None,
        }
        with self.database.write_rows() as connection:
            connection.execute(delete(RUNS_TABLE).where(known))
            connection.execute(insert(RUNS_TABLE).values(values))

    def used_on(self, day: date) -> Mapping[str, Spent]:
        """Read only the index of days; there, no report and a reported 0 are the same."""
        sums = (func.sum(RUN.microdollars), func.sum(RUN.tokens))
        wanted = select(RUN.repository, *sums).where(RUN.day == day.isoformat())
        with self.database.read() as connection:
            rows = connection.execute(wanted.group_by(RUN.repository)).all()
        return {
            name: Spent(int(micro) / MILLION or None, int(tokens) or None)
            for name, micro, tokens in rows
        }

    def usage_of_attempt(self, ref: IssueRef, number: int) -> Mapping[int, AgentFacts]:
        wanted = select(RUN.fix_round, RUN.usage).where(_of(ref, number)).order_by(RUN.fix_round)
        with self.database.read() as connection:
            rows = connection.execute(wanted).all()
        return {fix_round: AgentFacts.model_validate_json(usage) for fix_round, usage in rows}

    def rest(self, agent: str) -> Rest | None:
        wanted = select(RUN.began, RUN.denied, RUN.usage).where(RUN.agent == agent)
        with self.database.read() as connection:
            rows = connection.execute(wanted.order_by(RUN.began.desc()).limit(RECENT_RUNS)).all()
        return last_rest(
            (
                datetime.fromisoformat(began),
                AgentFacts.model_validate_json(usage).rest if rests else None,
            )
            for began, rests, usage in rows
        )


class MemoryUsageStore:
    """Implements UsageStore in memory, for dry runs and tests; thread-safe."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._noted: dict[tuple[IssueRef, int, int], tuple[Run, AgentFacts]] = {}

    def record(self, run: Run, usage: AgentFacts) -> None:
        with self._lock:
            self._noted[run.issue, run.number, run.fix_round] = (run, usage)

    def used_on(self, day: date) -> Mapping[str, Spent]:
        found = dict[str, list[Spent]]()
        with self._lock:
            for run, usage in self._noted.values():
                if run.day == day:
                    found.setdefault(run.issue.repository, []).append(spent_in(usage))
        return {name: reduce(Spent.plus, each) for name, each in found.items()}

    def usage_of_attempt(self, ref: IssueRef, number: int) -> Mapping[int, AgentFacts]:
        with self._lock:
            noted = sorted(self._noted.items(), key=lambda each: each[0][2])
        return {key[2]: usage for key, (_, usage) in noted if key[:2] == (ref, number)}

    def rest(self, agent: str) -> Rest | None:
        with self._lock:
            noted = [each for each in self._noted.values() if each[0].agent == agent]
        return last_rest((run.began, usage.rest) for run, usage in noted)


def _of(ref: IssueRef, number: int) -> ColumnElement[bool]:
    return and_(RUN.repository == ref.repository, RUN.number == ref.number, RUN.attempt == number)


def _redacted(usage: AgentFacts, redactor: Redactor) -> AgentFacts:
    written: JsonValue = usage.model_dump(mode="json")
    return AgentFacts.model_validate(redactor.tree(written))
