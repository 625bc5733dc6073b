"""Finds Caddy and nginx: on PATH, or unpacked from Debian's packages into a folder."""

import os
import shutil
import subprocess
from pathlib import Path


class ProxyMissingError(Exception):
    """A proxy is neither installed nor can it be downloaded; the text is the reason."""


def find_proxy(name: str, home: Path) -> Path:
    """Return the program, which is downloaded once if need be. Raises: ProxyMissingError."""
    search_path = os.environ.get("PATH", "") + ":/usr/sbin"
    if installed := shutil.which(name, path=search_path):
        return Path(installed)
    for folder in ("usr/bin", "usr/sbin"):
        if (program := home / folder / name).exists():
            return program
    home.mkdir(parents=True, exist_ok=True)
    try:
        _run(name, ["apt-get", "download", name], home)
    except ProxyMissingError:
        # The list of packages on a new machine may be empty, or name a version that was replaced.
        _run(name, ["apt-get", "update"], home)
        _run(name, ["apt-get", "download", name], home)
    for package in home.glob(f"{name}_*.deb"):
        _run(name, ["dpkg-deb", "-x", str(package), "."], home)
    for folder in ("usr/bin", "usr/sbin"):
        if (program := home / folder / name).exists():
            return program
    raise ProxyMissingError(f"Debian's package {name} has no program {name}")


def _run(name: str, command: list[str], home: Path) -> None:
    advice = f"{name} is not on PATH and cannot be downloaded"
    try:
        done = subprocess.run(
            command, cwd=home, capture_output=True, text=True, check=False, timeout=120
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ProxyMissingError(f"{advice}: {error}") from None
    if done.returncode != 0:
        raise ProxyMissingError(f"{advice}: {' | '.join(done.stderr.strip().splitlines()[:2])}")
