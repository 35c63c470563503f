"""Sleep that takes no time, on a clock that only sleep moves on."""


class FakeSleep:
    """Keeps what somebody wanted to sleep, in seconds."""

    def __init__(self) -> None:
        self.taken: list[float] = []

    def __call__(self, seconds: float) -> None:
        self.taken.append(seconds)

    def now(self) -> float:
        return sum(self.taken)
