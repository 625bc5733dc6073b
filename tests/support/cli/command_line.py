"""Runs commands of `slotlock` in the process of the test."""

import os
from collections.abc import Mapping

import pytest

from slotlock.cli.main import main


def replace_environment(monkeypatch: pytest.MonkeyPatch, settings: Mapping[str, str]) -> None:
    """Set these environment variables and remove all other settings."""
    for name in list(os.environ):
        if name.startswith("SLOTLOCK_") or name == "PORT":
            monkeypatch.delenv(name)
    for name, value in settings.items():
        monkeypatch.setenv(name, value)


def run_command(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Run a command that succeeds and return its output."""
    assert main(arguments) == 0
    output = capsys.readouterr()
    assert output.err == ""
    return output.out


def command_errors(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    """Run a command that fails and return its lines of stderr without their prefix."""
    assert main(arguments) == 1
    output = capsys.readouterr()
    assert output.out == ""
    lines = output.err.splitlines()
    assert all(line.startswith("slotlock: ") for line in lines)
    return [line.removeprefix("slotlock: ") for line in lines]
