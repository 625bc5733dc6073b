"""The violations that a check found, with the operations and versions that show them."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import orjson

from bench.faults.history import Json, Operation

MAX_SHOWN = 10
MAX_EVIDENCE = 6


@dataclass(frozen=True, slots=True)
class Violation:
    """A broken promise; the versions are documents of slots."""

    kind: str
    description: str
    operations: tuple[Operation, ...] = ()
    versions: tuple[Json, ...] = ()

    def text(self) -> str:
        """Return it with its evidence, a line each."""
        lines = [f"VIOLATION {self.kind}: {self.description}"]
        lines += [f"    {_line(each)}" for each in self.operations[:MAX_EVIDENCE]]
        lines += [f"    version {_line(each)}" for each in self.versions[:MAX_EVIDENCE]]
        return "\n".join(lines)


def _line(value: Operation | Json) -> str:
    return orjson.dumps(value).decode()[:1_500]


@dataclass(slots=True)
class Report:
    """What was checked, and what was broken."""

    violations: list[Violation] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    def add(
        self,
        kind: str,
        description: str,
        operations: Sequence[Operation] = (),
        versions: Sequence[Json] = (),
    ) -> None:
        """Add a violation."""
        self.violations.append(Violation(kind, description, tuple(operations), tuple(versions)))

    def kinds(self) -> Counter[str]:
        """Return how many violations there are of each kind."""
        return Counter(violation.kind for violation in self.violations)

    def text(self) -> str:
        """Return the counts, and the first violations of each kind."""
        shown: Counter[str] = Counter()
        lines = [f"checked: {', '.join(f'{n} {name}' for name, n in self.counts.items())}"]
        for violation in self.violations:
            shown[violation.kind] += 1
            if shown[violation.kind] <= MAX_SHOWN:
                lines.append(violation.text())
        totals = ", ".join(f"{kind} {count}" for kind, count in self.kinds().items())
        lines.append(f"{len(self.violations)} violations{f': {totals}' if totals else ''}")
        return "\n".join(lines)
