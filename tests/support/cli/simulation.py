"""Runs `slotlock simulate` as a user does, but in the process of the test."""

import json
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from slotlock.cli.main import main
from slotlock.simulation import setup


@dataclass(frozen=True)
class SimulationRun:
    """The exit code, the output and, if the simulation was completed, the JSON results."""

    exit_code: int
    stdout: str
    stderr: str
    results: dict[str, Any]

    @property
    def broken_invariants(self) -> set[str]:
        """Return the names of the invariants that do not hold."""
        invariants = self.results["invariants"]
        return {invariant["name"] for invariant in invariants if not invariant["holds"]}


@dataclass(frozen=True)
class SimulationRunner:
    """Runs the command with an opening delay of 0.2 s instead of two."""

    monkeypatch: pytest.MonkeyPatch
    capsys: pytest.CaptureFixture[str]
    directory: Path

    def __post_init__(self) -> None:
        self.monkeypatch.setattr(setup, "OPENING_DELAY", timedelta(milliseconds=200))

    def __call__(self, url: str, *arguments: str) -> SimulationRun:
        """Run the command against a server."""
        path = self.directory / "results.json"
        code = main(["simulate", "--url", url, "--results", str(path), *arguments])
        output = self.capsys.readouterr()
        results = json.loads(path.read_text()) if path.exists() else {}
        return SimulationRun(code, output.out, output.err, results)

    def expect_error(self, *arguments: str) -> str:
        """Run the command, expect exit code 2 and no output, and return the last line of stderr."""
        try:
            code = main(["simulate", *arguments])
        except SystemExit as error:
            code = int(error.code or 0)
        output = self.capsys.readouterr()
        assert code == 2
        assert output.out == ""
        assert "Traceback" not in output.err
        return output.err.splitlines()[-1]
