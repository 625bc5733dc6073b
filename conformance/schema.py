"""Writes schema.graphql; a change that breaks clients needs the option `--breaking`.

`python -m conformance.schema [--breaking]` (make schema, make schema BREAKING=1) writes the file,
and the table of refusals on the page about errors.
"""

import argparse
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from graphql import build_schema, find_breaking_changes, find_dangerous_changes

ROOT = Path(__file__).parent.parent
SCHEMA_FILE = ROOT / "schema.graphql"
ERRORS_PAGE = ROOT / "docs" / "reference" / "errors.md"
TABLE_HEAD = "| code | meaning |\n|---|---|\n"


@dataclass(frozen=True, slots=True)
class SchemaChanges:
    """The changes between two schemas that affect clients, each as a sentence."""

    breaking: tuple[str, ...]
    dangerous: tuple[str, ...]


class NoBaseError(Exception):
    """The commit does not exist or contains no schema."""


def committed_schema(base: str | None) -> str:
    """Return the schema of the file, or that of a commit; raises NoBaseError.

    A test compares the file with the code, so only a commit shows what a branch breaks.
    """
    if not base:
        return SCHEMA_FILE.read_text()
    completed = subprocess.run(
        ["git", "show", f"{base}:./{SCHEMA_FILE.name}"],
        cwd=SCHEMA_FILE.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    if completed.returncode != 0:
        raise NoBaseError(f"no schema to compare with: {completed.stderr.strip()}")
    return completed.stdout


def compare_schemas(old: str, new: str) -> SchemaChanges:
    """Compare two schemas in the schema definition language."""
    before, after = build_schema(old), build_schema(new)
    return SchemaChanges(
        tuple(change.description for change in find_breaking_changes(before, after)),
        tuple(change.description for change in find_dangerous_changes(before, after)),
    )


def current_schema() -> str:
    """Return the schema of the code, as `slotlock schema` prints it."""
    from slotlock.graphql.schema.schema import schema

    return f"{schema.as_str()}\n"


def with_refusals(page: str) -> str:
    """Return a page with all refusals in its table: the code, and the summary of the docstring."""
    from slotlock.domain.shared.declare import declarations
    from slotlock.graphql.core.refusals import RefusalCode

    rows = {
        declaration.code: " ".join((declared.__doc__ or "").split("\n\n")[0].split())
        for declared, declaration in declarations.items()
        if declaration.message
    }
    table = "".join(f"| `{code.name}` | {rows[code.name]} |\n" for code in RefusalCode)
    before, _, after = page.partition(TABLE_HEAD)
    return before + TABLE_HEAD + table + re.sub(r"\A(\|.*\n)*", "", after)


def write_schema(file: Path, new: str, *, breaking: bool) -> int:
    """Write the schema and print its changes; return 1 without writing if clients would break."""
    old = file.read_text() if file.exists() else new
    changes = compare_schemas(old, new)
    for text in changes.dangerous:
        print(f"dangerous: {text}")
    for text in changes.breaking:
        print(f"breaking: {text}")
    if changes.breaking and not breaking:
        print(
            f"{file.name} was not written. Deprecate before removing, "
            "or run `make schema BREAKING=1`.",
            file=sys.stderr,
        )
        return 1
    file.write_text(new)
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m conformance.schema", description=__doc__)
    parser.add_argument("--breaking", action="store_true", help="write breaking changes too")
    ERRORS_PAGE.write_text(with_refusals(ERRORS_PAGE.read_text()))
    return write_schema(
        SCHEMA_FILE, current_schema(), breaking=parser.parse_args(arguments).breaking
    )


if __name__ == "__main__":
    sys.exit(main())
