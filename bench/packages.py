"""Installs the Node packages of a lock file, with a copy of the scripts that use them."""

import shutil
import subprocess
from pathlib import Path


class InstallError(Exception):
    """The packages cannot be installed; the text is the reason."""


def install(source: Path, home: Path) -> None:
    """Copy the files of `source` to `home` and install their packages; raises InstallError."""
    home.mkdir(parents=True, exist_ok=True)
    lock_file, marker = home / "package-lock.json", home / "installed"
    expected = (source / lock_file.name).read_bytes()
    is_installed = marker.exists() and lock_file.read_bytes() == expected
    for file in filter(Path.is_file, source.iterdir()):
        shutil.copyfile(file, home / file.name)
    if is_installed:
        return
    marker.unlink(missing_ok=True)
    npm = subprocess.run(
        ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"],
        cwd=home,
        capture_output=True,
        text=True,
        check=False,
    )
    if npm.returncode != 0:
        output = " | ".join((npm.stderr or npm.stdout).strip().splitlines()[:3])
        raise InstallError(f"npm ci fails in {home}: {output}")
    marker.touch()
