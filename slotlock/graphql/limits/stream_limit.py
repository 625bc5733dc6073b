"""Limits on the streams that one user or one address may have open in this process."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager


class StreamLimit:
    """At most `maximum` open connections for each subject."""

    def __init__(self, maximum: int) -> None:
        self.maximum = maximum
        self._open_counts: Counter[str] = Counter()

    @contextmanager
    def acquire(self, subject: str | None) -> Iterator[bool]:
        """Yield whether the subject may open one more connection, and count it meanwhile.

        A subject that is None is never limited.
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
