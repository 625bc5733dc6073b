"""Mutation testing: puts known faults into a copy of the code, and tests have to find each.

`python -m tools.mutations [WORD ...]` takes the faults whose names have one of the words, or all.
`tests/mutations.toml` has the faults, and for each the narrowest tests that find it.
"""

import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[1]
TESTS_FAILED = 1  # exit code of pytest
TIMEOUT_S = 300
FAILED = re.compile(r"^FAILED \S*?([^/\s]+::\S+)", re.MULTILINE)


@dataclass(frozen=True)
class Mutant:
    """A fault: the text of a file, what replaces it, and the tests of which one has to fail."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    def text(self, root: Path) -> str:
        """Return the file with the fault. Raises ValueError if its place is not found."""
        text = (root / self.file).read_text()
        if text.count(self.old) != 1:
            raise ValueError(f"{self.name}: {self.file} does not have {self.old!r} once")
        return text.replace(self.old, self.new)


def load_mutants() -> list[Mutant]:
    """Return the faults of `tests/mutations.toml`."""
    tables = tomllib.loads((ROOT / "tests/mutations.toml").read_text())["mutant"]
    return [Mutant(**{**table, "tests": tuple(table["tests"])}) for table in tables]


def copy_tree(target: Path) -> None:
    """Copy the files that git knows or would add, and refer to the same `.venv`."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).exists():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)
    (target / ".venv").symlink_to(ROOT / ".venv")


def run_tests(root: Path, tests: Iterable[str]) -> tuple[int | None, str]:
    """Run tests of a copy until one fails; return the exit code, None after TIMEOUT_S."""
    paths = os.pathsep.join([str(root), *map(str, root.glob("packages/*/src"))])
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-n", "0", "-p", "no:cacheprovider"]
    try:
        done = subprocess.run(
            [*command, *tests],
            cwd=root,
            env={**os.environ, "PYTHONPATH": paths},
            timeout=TIMEOUT_S,
            check=False,
            capture_output=True,
            text=True,
        )
    except subprocess.TimeoutExpired as error:
        return None, str(error)
    return done.returncode, done.stdout + done.stderr


def write_source(path: Path, text: str) -> None:
    """Write a module, and remove its bytecode: a file of the same second and size would be used."""
    path.write_text(text)
    for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*"):
        compiled.unlink()


def find_fault(root: Path, mutant: Mutant) -> str | None:
    """Return the test that finds a fault; None if none does. Afterwards, the copy is as before."""
    path, text = root / mutant.file, mutant.text(root)
    before = path.read_text()
    write_source(path, text)
    try:
        code, printed = run_tests(root, mutant.tests)
    finally:
        write_source(path, before)
    failed = FAILED.search(printed)
    return failed[1] if code == TESTS_FAILED and failed else None


def main(words: Sequence[str]) -> int:
    """Print which test finds each fault; return 1 if one is not found, 2 if tests fail without."""
    mutants = [
        each for each in load_mutants() if not words or any(word in each.name for word in words)
    ]
    names = max(len(each.name) for each in mutants)
    files = max(len(each.file) for each in mutants)
    missed = 0
    with TemporaryDirectory() as folder:
        root = Path(folder)
        copy_tree(root)
        tests = dict.fromkeys(test for each in mutants for test in each.tests)
        code, printed = run_tests(root, tests)
        if code != 0:
            print(printed, "The tests fail without any fault.", sep="\n")
            return 2
        for mutant in mutants:
            started_at = time.monotonic()
            found = find_fault(root, mutant)
            missed += found is None
            seconds = time.monotonic() - started_at
            row = f"{mutant.name:{names}}  {mutant.file:{files}}  {seconds:3.0f} s"
            print(row, found or "NOT FOUND", sep="  ", flush=True)
    print(f"{len(mutants) - missed} of {len(mutants)} faults were found")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
