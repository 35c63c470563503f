"""What befalls the demo's issues from outside: somebody thinks again, and GitHub stumbles."""

import threading
from dataclasses import dataclass

from mulligan.domain.events import AgentStarted, Event, PublishStarted
from mulligan.domain.issue import IssueRef
from mulligan.domain.status import IssueStatus
from mulligan.simulator.faults import Fault
from mulligan.simulator.seed import MAINTAINER, READY
from mulligan.simulator.world import World
from mulligan.surfaces.cli.story import Story

SECOND_THOUGHTS = 1.0
"""Seconds after which the label is taken off; the agent would work several times as long."""
STUMBLES = 2


@dataclass
class Stumbling:
    """Answers the next calls for a pull request with 502, STUMBLES times; nothing is done then."""

    left: int = STUMBLES

    def __call__(self, method: str, path: str) -> Fault | None:
        """See simulator.faults."""
        if method != "POST" or not path.endswith("/pulls") or not self.left:
            return None
        self.left -= 1
        return Fault(502, body='{"message": "Server Error"}')


@dataclass(frozen=True, slots=True)
class Mishaps:
    """Hears what happens to the issues, and steps in."""

    world: World
    story: Story
    withdrawn: IssueRef
    unlucky: IssueRef

    def hear(self, status: IssueStatus, event: Event) -> None:
        """Let the one issue be withdrawn as soon as its agent works, the other not be published."""
        match event:
            case AgentStarted() if status.issue == self.withdrawn:
                timer = threading.Timer(SECOND_THOUGHTS, self._withdraw, [status])
                timer.daemon = True
                timer.start()
            case PublishStarted() if status.issue == self.unlucky and self.world.faults is None:
                self.world.faults = Stumbling()
            case _:
                return

    def _withdraw(self, status: IssueStatus) -> None:
        self.world.unlabel(status.issue, READY, MAINTAINER)
        self.story.say(status, f"  [bold]{MAINTAINER}[/] thinks again, and takes the label off")
