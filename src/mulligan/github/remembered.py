"""Answers that are kept for their ETags, so that asking again is free while nothing changed."""

import threading

from mulligan.github.answers import Answer


class Remembered:
    """Keeps up to `most` characters of answers, those that were used last; safe for threads."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._size = 0
        self._answers: dict[str, Answer] = {}
        self._lock = threading.Lock()

    def find(self, asked: str) -> Answer | None:
        """Give the answer that came last, if it is still kept."""
        with self._lock:
            found = self._answers.pop(asked, None)
            if found:
                # The first of a dict is the oldest; this one is the newest now.
                self._answers[asked] = found
            return found

    def keep(self, asked: str, answer: Answer) -> None:
        """Keep an answer that has an ETag; what was not used for longest goes."""
        with self._lock:
            self._drop(asked)
            self._answers[asked] = answer
            self._size += len(answer.body)
            while self._size > self._most:
                self._drop(next(iter(self._answers)))

    def _drop(self, asked: str) -> None:
        gone = self._answers.pop(asked, None)
        self._size -= len(gone.body) if gone else 0
