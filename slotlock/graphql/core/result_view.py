"""What a client may see of the outcome of a command."""

from dataclasses import dataclass

from slotlock.domain.users.user import Caller


@dataclass(frozen=True, slots=True)
class ResultView:
    """The viewer of a result."""

    viewer: Caller | None
