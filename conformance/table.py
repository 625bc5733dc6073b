"""The table of all checks: how many parts of each passed, and which failed."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """One check; `total` is the number of its parts, `failures` names those that failed."""

    name: str
    total: int
    failures: tuple[str, ...] = ()
    note: str = ""

    @property
    def passed(self) -> int:
        """Return how many parts passed."""
        return self.total - len(self.failures)

    @property
    def is_ok(self) -> bool:
        """Return whether all parts passed; a check without parts proves nothing."""
        return self.total > 0 and not self.failures


def format_table(rows: Sequence[Row]) -> str:
    """Return the rows, each followed by its failures, and the verdict."""
    width = max(len(row.name) for row in rows)
    lines = []
    for row in rows:
        verdict = "ok" if row.is_ok else "FAILS"
        count = f"{row.passed}/{row.total}"
        lines.append(f"{row.name:{width}}  {count:>11}  {verdict:5}  {row.note}".rstrip())
        lines += [f"  !!! {failure}" for failure in row.failures]
    failed = sum(not row.is_ok for row in rows)
    lines.append("")
    lines.append(
        f"{failed} of {len(rows)} checks FAIL" if failed else f"All {len(rows)} checks pass."
    )
    return "\n".join(lines)
