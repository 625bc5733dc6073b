"""How many streams one person or one address may have open at once in this process."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager


class Bound:
    """At most so many at once of each subject."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._open: Counter[str] = Counter()

    @contextmanager
    def room_for(self, subject: str | None) -> Iterator[bool]:
        """Whether there is room for one more, which is taken as long as this lasts.

        There always is for a subject that cannot be told.
        """
        if subject is None or self._open[subject] >= self.most:
            yield subject is None
            return
        self._open[subject] += 1
        try:
            yield True
        finally:
            self._open[subject] -= 1
            if not self._open[subject]:
                del self._open[subject]
