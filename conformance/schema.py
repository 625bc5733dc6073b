"""The gate before schema.graphql: what would break a client is written only when told to.

`python -m conformance.schema [--breaking]` (make schema, make schema BREAKING=1) writes the file.
"""

import argparse
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from graphql import build_schema, find_breaking_changes, find_dangerous_changes

SCHEMA_FILE = Path(__file__).parent.parent / "schema.graphql"


@dataclass(frozen=True, slots=True)
class SchemaChanges:
    """What clients of the old schema see of the new one, each as a sentence."""

    breaking: tuple[str, ...]
    dangerous: tuple[str, ...]


class NoBaseError(Exception):
    """There is no such commit, or no schema in it."""


def committed_schema(base: str | None) -> str:
    """The schema to compare with: the file, or what it was in a commit. Errors: NoBaseError.

    The file follows the code, as a test sees to; what a branch breaks shows beside where it began.
    """
    if not base:
        return SCHEMA_FILE.read_text()
    shown = subprocess.run(
        ["git", "show", f"{base}:./{SCHEMA_FILE.name}"],
        cwd=SCHEMA_FILE.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    if shown.returncode != 0:
        raise NoBaseError(f"no schema to compare with: {shown.stderr.strip()}")
    return shown.stdout


def compare_schemas(old: str, new: str) -> SchemaChanges:
    """From one schema to another, both as SDL."""
    before, after = build_schema(old), build_schema(new)
    return SchemaChanges(
        tuple(change.description for change in find_breaking_changes(before, after)),
        tuple(change.description for change in find_dangerous_changes(before, after)),
    )


def current_schema() -> str:
    """The schema of the code, as `slotlock schema` prints it."""
    from slotlock.graphql.schema.schema import schema

    return f"{schema.as_str()}\n"


def write_schema(file: Path, new: str, *, breaking: bool) -> int:
    """Write the schema and tell what it changes; 1 and no change if it breaks clients unasked."""
    old = file.read_text() if file.exists() else new
    found = compare_schemas(old, new)
    for text in found.dangerous:
        print(f"dangerous: {text}")
    for text in found.breaking:
        print(f"breaking: {text}")
    if found.breaking and not breaking:
        print(
            f"{file.name} stays as it is. Deprecate before removing; "
            "`make schema BREAKING=1` writes it all the same.",
            file=sys.stderr,
        )
        return 1
    file.write_text(new)
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m conformance.schema", description=__doc__)
    parser.add_argument("--breaking", action="store_true", help="write breaking changes too")
    return write_schema(
        SCHEMA_FILE, current_schema(), breaking=parser.parse_args(arguments).breaking
    )


if __name__ == "__main__":
    sys.exit(main())
