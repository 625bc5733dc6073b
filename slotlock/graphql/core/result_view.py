"""The view of a command's outcome that its client may see."""

from dataclasses import dataclass

from slotlock.domain.users.user import Caller


@dataclass(frozen=True, slots=True)
class ResultView:
    """The viewer of a result."""

    viewer: Caller | None
