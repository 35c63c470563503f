"""The exception for a simulator that cannot do its work."""


class SimulatorError(Exception):
    """The machine does not let the simulator work; the message is a sentence that says what to do.

    A refusal that GitHub itself would give is `reply.Refused`, not this.
    """
