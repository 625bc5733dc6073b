"""What a check found, as one line of `slotlock doctor`."""

from enum import StrEnum

from slotlock.domain.shared.values import value_object


class Level(StrEnum):
    """How bad a finding is; only FAIL makes the exit status 1."""

    OK = "ok"
    WARNING = "warning"
    FAIL = "FAIL"


@value_object
class Finding:
    """The result of one check: what was found, and what to do about it, if anything."""

    level: Level
    check: str
    found: str
    advice: str = ""

    def __str__(self) -> str:
        """Return one line."""
        advice = f"; {self.advice}" if self.advice else ""
        line = f"{self.level.value:8} {self.check:22} {self.found}{advice}"
        return " ".join(line.split("\n"))


def ok(check: str, found: str) -> Finding:
    """Return that a check found nothing wrong."""
    return Finding(Level.OK, check, found)


def warning(check: str, found: str, advice: str) -> Finding:
    """Return what should be changed, while slotlock works."""
    return Finding(Level.WARNING, check, found, advice)


def fail(check: str, found: str, advice: str) -> Finding:
    """Return what has to be changed."""
    return Finding(Level.FAIL, check, found, advice)
