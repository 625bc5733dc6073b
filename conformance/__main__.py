"""The command: `python -m conformance` (make conformance)."""

import argparse
import asyncio
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx

from bench.packages import InstallError, install
from conformance import cop, node, schema
from conformance.apps import DEVELOPMENT, PRODUCTION, App, AppError, running
from conformance.clients.checks import CHECKS
from conformance.clients.remote import KINDS
from conformance.clients.run import disappointments
from conformance.described import descriptions, undescribed
from conformance.fuzz.run import fuzz
from conformance.table import Row, table
from slotlock.api.embedded import CannotStart, embedded_servers
from slotlock.graphql.schema import executable

NODE_HOME = Path(__file__).parent.parent / ".bench" / "conformance"
EXAMPLES = 200
# Those of the version that is pinned: fewer would be no pass.
AUDITS = 61
_CANNOT_RUN = (CannotStart, InstallError, AppError, node.NodeError, schema.NoBaseError)


def main(arguments: Sequence[str] | None = None) -> int:
    """0 when every check passes, 1 when one does not, 2 when it cannot be checked here."""
    parser = argparse.ArgumentParser(prog="python -m conformance", description=__doc__)
    parser.add_argument(
        "--examples", type=int, default=EXAMPLES, metavar="N", help="of schemathesis, a field"
    )
    examples = parser.parse_args(arguments).examples
    # Leave by the front door, where what was started is ended.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        node.check_version()
        install(node.SOURCE, NODE_HOME)
        with tempfile.TemporaryDirectory(prefix="slotlock-conformance-") as folder:
            rows = []
            for row in _rows(Path(folder), examples):
                print(f"... {row.name}", file=sys.stderr, flush=True)
                rows.append(row)
    except _CANNOT_RUN as error:
        print(f"conformance: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    print(table(rows))
    return 0 if all(row.good for row in rows) else 1


def _rows(folder: Path, examples: int) -> Iterator[Row]:
    yield from _of_the_schema()
    with (
        embedded_servers(folder / "servers") as servers,
        running(DEVELOPMENT, servers, "development", folder) as development,
        running(PRODUCTION, servers, "production", folder) as production,
    ):
        yield from _of_production(production)
        yield _audits(development)
        yield from _clients(production, folder)
        yield from fuzz(development, examples, folder)
        yield _logs(development, production)


def _of_the_schema() -> Iterator[Row]:
    everything = [name for name, _ in descriptions(executable)]
    yield Row("everything is described", len(everything), tuple(undescribed(executable)))
    base = os.environ.get("BASE")
    found = schema.changes(schema.committed(base), schema.printed())
    against = f"against {base or schema.COMMITTED.name}"
    note = "; ".join([against, *(f"dangerous: {text}" for text in found.dangerous)])
    yield Row("no breaking change", len(executable.type_map), found.breaking, note)
    told = node.run(NODE_HOME, "lint.js", {"SCHEMA": str(schema.COMMITTED)})
    yield Row("graphql-eslint, rules", len(told["rules"]), tuple(told["failures"]))


def _of_production(app: App) -> Iterator[Row]:
    yield Row("graphql-cop's probes", len(cop.PROBES), tuple(cop.findings(app.url)), "production")
    if checkout := os.environ.get("GRAPHQL_COP"):
        asked, found = 1, [""]
        try:
            asked, found = cop.real_findings(Path(checkout), app.url)
        except (OSError, ValueError, subprocess.TimeoutExpired) as error:
            found = [str(error)]
        yield Row("graphql-cop itself", asked, tuple(found), "production")


def _audits(app: App) -> Row:
    return audited(node.run(NODE_HOME, "audits.js", {"URL": app.url}))


def audited(told: Mapping[str, Any]) -> Row:
    """The row for what the audits told: {total, failures}."""
    failures = list(told["failures"])
    if told["total"] != AUDITS:
        failures.append(f"there are {told['total']} audits instead of {AUDITS}")
    return Row("graphql-http, audits", AUDITS, tuple(failures), "development")


def _clients(app: App, folder: Path) -> Iterator[Row]:
    for kind in KINDS:
        log = folder / "client.log"
        try:
            failures = asyncio.run(disappointments(kind, app, NODE_HOME, log))
        except (httpx.TransportError, OSError) as error:
            failures = [f"{type(error).__name__} {error}"]
        yield Row(kind.name, len(CHECKS), tuple(failures), "production")


def _logs(*apps: App) -> Row:
    """Nothing of all that may have surprised the apps."""
    failures = [
        f"{app.profile}: {line}"
        for app in apps
        for line in app.log_file.read_text(errors="replace").splitlines()
        if "Traceback" in line or " ERROR " in line
    ]
    return Row("logs without errors", max(len(apps), len(failures)), tuple(failures[:20]))


if __name__ == "__main__":
    sys.exit(main())
