"""What was checked, as one table: how many of each passed, and each that did not by its name."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """One check of many parts; `failures` names the parts that failed, `note` is for the reader."""

    name: str
    total: int
    failures: tuple[str, ...] = ()
    note: str = ""

    @property
    def passed(self) -> int:
        """How many of its parts are as they should be."""
        return self.total - len(self.failures)

    @property
    def is_ok(self) -> bool:
        """Whether all passed; a check that looked at nothing proves nothing."""
        return self.total > 0 and not self.failures


def format_table(rows: Sequence[Row]) -> str:
    """The rows, each followed by its failures, and the verdict."""
    width = max(len(row.name) for row in rows)
    lines = []
    for row in rows:
        verdict = "ok" if row.is_ok else "FAILS"
        count = f"{row.passed}/{row.total}"
        lines.append(f"{row.name:{width}}  {count:>11}  {verdict:5}  {row.note}".rstrip())
        lines += [f"  !!! {failure}" for failure in row.failures]
    bad = sum(not row.is_ok for row in rows)
    lines.append("")
    lines.append(f"{bad} of {len(rows)} checks FAIL" if bad else f"All {len(rows)} checks pass.")
    return "\n".join(lines)
