"""`slotlock simulate` as a user runs it, in the test's own process."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from slotlock.cli.main import main
from slotlock.simulation import setup


@dataclass(frozen=True)
class SimulationRun:
    """What came of a run: its exit code, what it printed, and its JSON if it got that far."""

    exit_code: int
    stdout: str
    stderr: str
    results: dict[str, Any]

    @property
    def broken_invariants(self) -> set[str]:
        """The names of the invariants that do not hold."""
        return {each["name"] for each in self.results["invariants"] if not each["holds"]}


@dataclass(frozen=True)
class SimulationRunner:
    """Runs it, in a moment instead of two seconds."""

    monkeypatch: pytest.MonkeyPatch
    capsys: pytest.CaptureFixture[str]
    directory: Path

    def __post_init__(self) -> None:
        self.monkeypatch.setattr(setup, "OPENING_DELAY", timedelta(milliseconds=200))

    def __call__(self, url: str, *arguments: str) -> SimulationRun:
        """Run it at a server."""
        path = self.directory / "results.json"
        code = main(["simulate", "--url", url, "--json", str(path), *arguments])
        said = self.capsys.readouterr()
        results = json.loads(path.read_text()) if path.exists() else {}
        return SimulationRun(code, said.out, said.err, results)

    def expect_usage_error(self, *arguments: str) -> str:
        """The last line of a command that does nothing, by argparse or by itself."""
        try:
            code = main(["simulate", *arguments])
        except SystemExit as error:
            code = int(error.code or 0)
        said = self.capsys.readouterr()
        assert code == 2
        assert said.out == ""
        assert "Traceback" not in said.err
        return said.err.splitlines()[-1]


def replace_environment(monkeypatch: pytest.MonkeyPatch, settings: Mapping[str, str]) -> None:
    """These settings, and no others."""
    for name in list(os.environ):
        if name.startswith("SLOTLOCK_") or name == "PORT":
            monkeypatch.delenv(name)
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
