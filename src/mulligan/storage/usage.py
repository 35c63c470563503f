"""The agents' usage, stored at every report so that it survives a kill or a restart."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import reduce
from threading import Lock

from pydantic import JsonValue
from sqlalchemy import ColumnElement, and_, delete, func, insert, select

from mulligan.domain.issue import IssueRef
from mulligan.domain.result import AgentFacts
from mulligan.domain.spending import Run, Spent, spent_in
from mulligan.storage.database import Database
from mulligan.storage.schema import RUNS_TABLE
from mulligan.storage.serialization import write_time
from mulligan.text.redact import Redactor

RUN = RUNS_TABLE.c
MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class SqlUsageStore:
    """Implements UsageStore with SQLAlchemy; redacts all text."""

    database: Database
    redactor: Redactor = field(default_factory=Redactor)

    def record(self, run: Run, usage: AgentFacts) -> None:
        """Store the usage of a run so far; it is durable when this returns."""
        spent = spent_in(usage)
        known = and_(_of(run.issue, run.number), RUN.fix_round == run.fix_round)
        values = {
            "repository": run.issue.repository,
            "number": run.issue.number,
            "attempt": run.number,
            "fix_round": run.fix_round,
            "day": run.day.isoformat(),
            "microdollars": round(spent.usd * MILLION),
            "tokens": spent.tokens,
            "usage": _redacted(usage, self.redactor).model_dump_json(),
            "agent": run.agent,
            "began": write_time(run.began),
            "denied": usage.denied,
        }
        with self.database.write_rows() as connection:
            connection.execute(delete(RUNS_TABLE).where(known))
            connection.execute(insert(RUNS_TABLE).values(values))

    def used_on(self, day: date) -> Mapping[str, Spent]:
        """Return the usage of the runs that began on a day; reads only the index of days."""
        sums = (func.sum(RUN.microdollars), func.sum(RUN.tokens))
        wanted = select(RUN.repository, *sums).where(RUN.day == day.isoformat())
        with self.database.read() as connection:
            rows = connection.execute(wanted.group_by(RUN.repository)).all()
        return {name: Spent(int(micro) / MILLION, int(tokens)) for name, micro, tokens in rows}

    def usage_of_attempt(self, ref: IssueRef, number: int) -> Mapping[int, AgentFacts]:
        """Return the usage of an attempt's runs, by fix round."""
        wanted = select(RUN.fix_round, RUN.usage).where(_of(ref, number)).order_by(RUN.fix_round)
        with self.database.read() as connection:
            rows = connection.execute(wanted).all()
        return {fix_round: AgentFacts.model_validate_json(usage) for fix_round, usage in rows}

    def key_refused_at(self, agent: str) -> datetime | None:
        """Return when an agent's last run began, if the model's service refused its key then."""
        wanted = select(RUN.denied, RUN.began).where(RUN.agent == agent)
        with self.database.read() as connection:
            last = connection.execute(wanted.order_by(RUN.began.desc()).limit(1)).first()
        return datetime.fromisoformat(last.began) if last and last.denied else None

    def retry_at(self, agent: str) -> datetime | None:
        """Return when the model's service accepts requests again, if it gave a time."""
        wanted = select(RUN.usage).where(RUN.agent == agent).order_by(RUN.began.desc()).limit(1)
        with self.database.read() as connection:
            last = connection.execute(wanted).scalar()
        return AgentFacts.model_validate_json(last).retry_at if last else None


class MemoryUsageStore:
    """Implements UsageStore in memory, for dry runs and tests; thread-safe."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._noted: dict[tuple[IssueRef, int, int], tuple[Run, AgentFacts]] = {}

    def record(self, run: Run, usage: AgentFacts) -> None:
        """Store the usage of a run so far."""
        with self._lock:
            self._noted[run.issue, run.number, run.fix_round] = (run, usage)

    def used_on(self, day: date) -> Mapping[str, Spent]:
        """Return the usage of the runs that began on a day."""
        found = dict[str, list[Spent]]()
        with self._lock:
            for run, usage in self._noted.values():
                if run.day == day:
                    found.setdefault(run.issue.repository, []).append(spent_in(usage))
        return {name: reduce(Spent.plus, each) for name, each in found.items()}

    def usage_of_attempt(self, ref: IssueRef, number: int) -> Mapping[int, AgentFacts]:
        """Return the usage of an attempt's runs, by fix round."""
        with self._lock:
            noted = sorted(self._noted.items(), key=lambda each: each[0][2])
        return {key[2]: usage for key, (_, usage) in noted if key[:2] == (ref, number)}

    def key_refused_at(self, agent: str) -> datetime | None:
        """Return when an agent's last run began, if the model's service refused its key then."""
        run, usage = self._last(agent)
        return run.began if run and usage and usage.denied else None

    def retry_at(self, agent: str) -> datetime | None:
        """Return when the model's service accepts requests again, if it gave a time."""
        _, usage = self._last(agent)
        return usage.retry_at if usage else None

    def _last(self, agent: str) -> tuple[Run, AgentFacts] | tuple[None, None]:
        with self._lock:
            noted = [each for each in self._noted.values() if each[0].agent == agent]
        return max(noted, key=lambda each: each[0].began, default=(None, None))


def _of(ref: IssueRef, number: int) -> ColumnElement[bool]:
    return and_(RUN.repository == ref.repository, RUN.number == ref.number, RUN.attempt == number)


def _redacted(usage: AgentFacts, redactor: Redactor) -> AgentFacts:
    written: JsonValue = usage.model_dump(mode="json")
    return AgentFacts.model_validate(redactor.tree(written))
