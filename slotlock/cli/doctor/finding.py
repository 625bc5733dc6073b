"""What a check found, as one line of `slotlock doctor`."""

from enum import StrEnum

from slotlock.api.settings.settings import env_name
from slotlock.domain.shared.value_object import value_object


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
        line = line_of(self.level.value, self.check, f"{self.found}{advice}")
        return " ".join(line.split("\n"))


def line_of(level: str, check: str, found: str) -> str:
    """Return one line of the table."""
    return f"{level:8} {check:22} {found}"


def ok(check: str, found: str) -> Finding:
    """Return that a check found nothing wrong."""
    return Finding(Level.OK, check, found)


def warning(check: str, found: str, advice: str) -> Finding:
    """Return what should be changed, while slotlock works."""
    return Finding(Level.WARNING, check, found, advice)


def fail(check: str, found: str, advice: str) -> Finding:
    """Return what has to be changed."""
    return Finding(Level.FAIL, check, found, advice)


def check_clock(check: str, sent_s: float, server_s: float, received_s: float, max_skew_s: float
) -> Finding:  # fmt: skip
    """Compare the clock of a server with that of this machine.

    `server_s` is the server's time, read between `sent_s` and `received_s` by the clock of this
    machine; all are in seconds since 1970. The round trip limits how exactly the skew is known.
    """
    least_skew_s = max(sent_s - server_s, server_s - received_s, 0)
    ahead_s = (sent_s + received_s) / 2 - server_s
    found = f"this machine is {ahead_s:+.3f} s ahead"
    if least_skew_s <= max_skew_s:
        return ok(check, found)
    advice = f"run NTP on both; {env_name('max_clock_skew_s')} allows {max_skew_s:g} s"
    return warning(check, found, advice)
