"""Processes of the app on hosts whose clocks are wrong, and differ from each other."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.faults.topology.apps import CLOCK_FOLDER, OFFSET
from tests.support.apps.deployment import app_variant
from tests.support.apps.processes import AppProcess
from tests.support.polling import wait_until

SKEW_TOLERANCE_S = 0.5


@dataclass(frozen=True)
class SkewedApp:
    """A process of the app, and the file with the offset of its clock."""

    app: AppProcess
    clock_file: Path

    def step_clock(self, ahead_s: float) -> None:
        """Set the clock of the process so many seconds ahead, or behind if negative."""
        _write_offset(self.clock_file, ahead_s)

    def wait_until_measured(self, ahead_s: float) -> None:
        """Wait until the process has compared this clock with MongoDB's."""
        wait_until(lambda: self._shows(ahead_s), f"a measured skew of {ahead_s:+} s")

    def _shows(self, ahead_s: float) -> bool:
        measured_s = self.app.metric("slotlock_clock_skew_seconds")
        return abs(measured_s - ahead_s) < SKEW_TOLERANCE_S


@contextmanager
def skewed_apps(
    environment: Mapping[str, str],
    directory: Path,
    skews_s: Sequence[float],
    without_guards: str = "",
) -> Iterator[list[SkewedApp]]:
    """Run processes without these guards, each with a clock that is so many seconds ahead."""
    with ExitStack() as stack:

        def start(index: int) -> SkewedApp:
            home = directory / str(index)
            home.mkdir(parents=True)
            clock_file = home / "clock"
            _write_offset(clock_file, skews_s[index])
            settings = {
                **environment,
                "VARIANT_CLOCK_MODULE": str(CLOCK_FOLDER / "sitecustomize.py"),
                "SKEWED_CLOCK_FILE": str(clock_file),
            }
            switches = f"skewed-clock {without_guards}"
            app = app_variant(settings, home, without_guards=switches)
            return SkewedApp(stack.enter_context(app), clock_file)

        yield [start(index) for index in range(len(skews_s))]


def _write_offset(clock_file: Path, ahead_s: float) -> None:
    # In place: the process has mapped the file into its memory.
    with clock_file.open("r+b" if clock_file.exists() else "wb") as file:
        file.write(OFFSET.pack(ahead_s))
