"""Node packages as their lock file names them, installed beside a copy of what uses them."""

import shutil
import subprocess
from pathlib import Path


class InstallError(Exception):
    """The packages cannot be installed; the text says why."""


def install(source: Path, home: Path) -> None:
    """Have the files of a folder and their locked packages in another. Errors: InstallError."""
    home.mkdir(parents=True, exist_ok=True)
    lock, done = home / "package-lock.json", home / "installed"
    wanted = (source / lock.name).read_bytes()
    installed = done.exists() and lock.read_bytes() == wanted
    for file in filter(Path.is_file, source.iterdir()):
        shutil.copyfile(file, home / file.name)
    if installed:
        return
    done.unlink(missing_ok=True)
    npm = subprocess.run(
        ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"],
        cwd=home,
        capture_output=True,
        text=True,
        check=False,
    )
    if npm.returncode != 0:
        said = " | ".join((npm.stderr or npm.stdout).strip().splitlines()[:3])
        raise InstallError(f"npm ci fails in {home}: {said}")
    done.touch()
