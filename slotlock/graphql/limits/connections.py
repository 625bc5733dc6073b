"""How many streams one person or one address may have open at once in this process."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager


class ConnectionLimit:
    """At most so many at once of each subject."""

    def __init__(self, maximum: int) -> None:
        self.maximum = maximum
        self._open_counts: Counter[str] = Counter()

    @contextmanager
    def acquire(self, subject: str | None) -> Iterator[bool]:
        """Whether there is room for one more, which is taken as long as this lasts.

        There always is for a subject that cannot be told.
        """
        if subject is None or self._open_counts[subject] >= self.maximum:
            yield subject is None
            return
        self._open_counts[subject] += 1
        try:
            yield True
        finally:
            self._open_counts[subject] -= 1
            if not self._open_counts[subject]:
                del self._open_counts[subject]
