"""What an import does with the lines of accounts that somebody registered."""

from collections.abc import Mapping
from dataclasses import field
from enum import Enum, auto

from slotlock.domain.shared.value_object import value_object

ALL_LINES = "all"
INVALID_CHOICES = (
    "The lines to claim and the lines to vouch for are all or numbers, separated by commas, such "
    "as 7,9. No line is among both."
)
# A file has at most 10,000 lines of users; more digits are no line of it.
_MAX_DIGITS = 6


class Choice(Enum):
    """What happens to an account that somebody registered; without one, it does not change."""

    CLAIM = auto()  # the user who registered it is locked out
    VOUCH = auto()  # the user who registered it is the one of the line


@value_object
class Choices:
    """The choices for some lines of a file by their numbers, and the one for all others."""

    by_line: Mapping[int, Choice] = field(default_factory=dict)
    others: Choice | None = None

    def of(self, line: int) -> Choice | None:
        """Return the choice for a line."""
        return self.by_line.get(line, self.others)


def parse_choices(claim: str | None, vouch: str | None) -> Choices | None:
    """Return the choices that two texts name: `all`, or `7,9`. None if one is invalid."""
    by_line: dict[int, Choice] = {}
    others = None
    for choice, text in ((Choice.CLAIM, claim), (Choice.VOUCH, vouch)):
        if text == ALL_LINES and others is None:
            others = choice
        elif text is not None:
            for number in text.split(","):
                if not number.isascii() or not number.isdecimal() or len(number) > _MAX_DIGITS:
                    return None
                if by_line.setdefault(int(number), choice) is not choice:
                    return None
    return Choices(by_line, others)
