"""Tests running servers with third-party tools and clients: `python -m conformance`."""

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
from conformance import board, graphql_cop, node_scripts, schema, sign_on
from conformance.apps import DEVELOPMENT, PRODUCTION, ConformanceApp, ConformanceAppError, running
from conformance.clients.checks import CHECKS
from conformance.clients.client_process import CLIENT_LIBRARIES
from conformance.clients.run import failed_checks
from conformance.descriptions import descriptions, undescribed
from conformance.examples import programs, short_tokens, typescript
from conformance.fuzz.run import fuzz
from conformance.proxies.packages import ProxyMissingError
from conformance.proxies.run import proxy_rows
from conformance.table import Row, format_table
from slotlock.devserver.binaries import ServerStartError
from slotlock.devserver.embedded import embedded_servers
from slotlock.graphql.schema.schema import executable_schema

NODE_HOME = Path(__file__).parent.parent / ".bench" / "conformance"
PROXIES_HOME = NODE_HOME.with_name("proxies")
TYPESCRIPT_HOME = NODE_HOME.with_name("typescript")
EXAMPLES, FIXED_EXAMPLES = 200, 20
# The number of audits in the pinned version; with fewer, the check fails.
AUDIT_COUNT = 61
_CANNOT_RUN = (
    ServerStartError,
    InstallError,
    ConformanceAppError,
    node_scripts.NodeError,
    schema.NoBaseError,
    ProxyMissingError,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Return 0 if every check passes, 1 if one fails, 2 if the machine cannot run them."""
    parser = argparse.ArgumentParser(prog="python -m conformance", description=__doc__)
    parser.add_argument(
        "--examples",
        type=int,
        default=EXAMPLES,
        metavar="N",
        help="examples of schemathesis per field",
    )
    parser.add_argument(
        "--fixed",
        action="store_true",
        help="only what follows from the commit: fixed examples, no download; "
        "without the packages of npm, what needs them is not checked",
    )
    parser.add_argument(
        "--only", choices=["proxies"], help="run these checks alone, without node and npm"
    )
    args = parser.parse_args(arguments)
    # An exception on SIGTERM lets the context managers stop the servers.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        has_node = args.only is None and _prepare_node(is_needed=not args.fixed)
        with tempfile.TemporaryDirectory(prefix="slotlock-conformance-") as folder:
            rows = []
            only_proxies = args.only == "proxies"
            home = Path(folder)
            examples = FIXED_EXAMPLES if args.fixed else args.examples
            found = (
                _proxy_rows(home) if only_proxies else _rows(home, examples, args.fixed, has_node)
            )
            for row in found:
                print(f"... {row.name}", file=sys.stderr, flush=True)
                rows.append(row)
    except _CANNOT_RUN as error:
        print(f"conformance: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    print(format_table(rows))
    return 0 if all(row.is_ok for row in rows) else 1


def _prepare_node(*, is_needed: bool) -> bool:
    """Install the packages of npm. Return whether they are there; raises if they are needed."""
    try:
        node_scripts.check_version()
        install(node_scripts.SOURCE, NODE_HOME)
        if is_needed:
            typescript.prepare(TYPESCRIPT_HOME)
    except (node_scripts.NodeError, InstallError) as error:
        if is_needed:
            raise
        print(f"what needs packages of npm is NOT CHECKED: {error}", file=sys.stderr, flush=True)
        return False
    return True


def _rows(folder: Path, examples: int, is_fixed: bool, has_node: bool) -> Iterator[Row]:
    yield from _schema_rows(has_node=has_node)
    if not is_fixed:
        failures = tuple(board.failed_checks(TYPESCRIPT_HOME))
        yield Row("the board, TypeScript types", len(board.modules()), failures)
    with (
        embedded_servers(folder / "servers") as servers,
        running(DEVELOPMENT, servers, "development", 0, folder) as development,
        running(PRODUCTION, servers, "production", 1, folder) as production,
        running(
            PRODUCTION, servers, "examples", 2, folder, short_tokens.__name__
        ) as app_with_short_tokens,
    ):
        yield from _production_rows(production)
        if has_node:
            yield _audit_row(development)
            yield _introspection_row(development)
        yield from _client_rows(production, folder, has_node=has_node)
        if has_node:
            failures = tuple(sign_on.failed_checks(servers, NODE_HOME, folder))
            yield Row("oidc-provider, sign-on", sign_on.CHECK_COUNT, failures, "production")
        if not is_fixed:
            try:
                yield from proxy_rows(servers, folder, PROXIES_HOME)
            except ProxyMissingError as error:
                print(f"the proxies were NOT CHECKED: {error}", file=sys.stderr, flush=True)
            yield from _example_rows(app_with_short_tokens)
        yield from fuzz(development, examples, folder, is_fixed=is_fixed)
        yield _log_row(development, production, app_with_short_tokens)


def _proxy_rows(folder: Path) -> Iterator[Row]:
    with embedded_servers(folder / "servers") as servers:
        yield from proxy_rows(servers, folder, PROXIES_HOME)


def _schema_rows(*, has_node: bool) -> Iterator[Row]:
    coordinates = [name for name, _ in descriptions(executable_schema)]
    missing = tuple(undescribed(executable_schema))
    yield Row("everything is described", len(coordinates), missing)
    base = os.environ.get("BASE")
    changes = schema.compare_schemas(schema.committed_schema(base), schema.current_schema())
    against = f"against {base or schema.SCHEMA_FILE.name}"
    note = "; ".join([against, *(f"dangerous: {text}" for text in changes.dangerous)])
    yield Row("no breaking change", len(executable_schema.type_map), changes.breaking, note)
    if has_node:
        result = node_scripts.run_script(NODE_HOME, "lint.js", {"SCHEMA": str(schema.SCHEMA_FILE)})
        yield Row("graphql-eslint, rules", len(result["rules"]), tuple(result["failures"]))


def _production_rows(app: ConformanceApp) -> Iterator[Row]:
    yield Row(
        "graphql-cop's probes",
        len(graphql_cop.PROBES),
        tuple(graphql_cop.findings(app.url)),
        "production",
    )
    if checkout := os.environ.get("GRAPHQL_COP"):
        count, found = 1, [""]
        try:
            count, found = graphql_cop.real_findings(Path(checkout), app.url)
        except (OSError, ValueError, subprocess.TimeoutExpired) as error:
            found = [str(error)]
        yield Row("graphql-cop itself", count, tuple(found), "production")


def _audit_row(app: ConformanceApp) -> Row:
    return format_audits(node_scripts.run_script(NODE_HOME, "audits.js", {"URL": app.url}))


def _introspection_row(app: ConformanceApp) -> Row:
    environment = {"URL": app.url, "SCHEMA": str(schema.SCHEMA_FILE)}
    result = node_scripts.run_script(NODE_HOME, "introspection.js", environment)
    name = "graphql-js, introspection with all options"
    return Row(name, 1, tuple(result["failures"]), "development")


def format_audits(result: Mapping[str, Any]) -> Row:
    """Return the row of the audits' result, which has the keys `total` and `failures`."""
    failures = list(result["failures"])
    if result["total"] != AUDIT_COUNT:
        failures.append(f"there are {result['total']} audits instead of {AUDIT_COUNT}")
    return Row("graphql-http, audits", AUDIT_COUNT, tuple(failures), "development")


def _client_rows(app: ConformanceApp, folder: Path, *, has_node: bool) -> Iterator[Row]:
    for kind in CLIENT_LIBRARIES:
        if not has_node and "Python" not in kind.name:
            continue
        log = folder / "client.log"
        try:
            failures = asyncio.run(failed_checks(kind, app, NODE_HOME, log))
        except (httpx.TransportError, OSError) as error:
            failures = [f"{type(error).__name__} {error}"]
        yield Row(kind.name, len(CHECKS), tuple(failures), "production")


def _example_rows(app: ConformanceApp) -> Iterator[Row]:
    """Yield the rows of the programs in examples/."""
    failures = tuple(typescript.failed_checks(TYPESCRIPT_HOME))
    yield Row("examples, TypeScript types", typescript.CHECK_COUNT, failures)
    all_programs = (*typescript.programs(TYPESCRIPT_HOME), programs.PYTHON_PROGRAM)
    for program, failed in zip(
        all_programs, asyncio.run(programs.failed_parts(all_programs, app)), strict=True
    ):
        yield Row(program.name, programs.PART_COUNT, tuple(failed), "lossy, short tokens")


def _log_row(*apps: ConformanceApp) -> Row:
    """Return the row of errors and tracebacks in the logs of the apps."""
    failures = [
        f"{app.log_file.stem}: {line}"
        for app in apps
        for line in app.log_file.read_text(errors="replace").splitlines()
        if "Traceback" in line or " ERROR " in line
    ]
    return Row("logs without errors", max(len(apps), len(failures)), tuple(failures[:20]))


if __name__ == "__main__":
    sys.exit(main())
