"""Runs schemathesis for each caller, and the fuzzing of subscriptions."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.app_process import PROJECT
from conformance.apps import ConformanceApp
from conformance.fuzz.config import config
from conformance.fuzz.seeds import create_seeds
from conformance.fuzz.subscriptions import fuzz_subscriptions
from conformance.fuzz.users import admin_token, member_tokens
from conformance.schema import SCHEMA_FILE
from conformance.table import Row
from slotlock.graphql.schema.schema import executable_schema

SEEDED_USERS, SPARE_USERS = 5, 20
SIGN_OUT_MUTATIONS = ("logout", "endSession", "endOtherSessions", "changePassword")
OPTIONS = (
    *("--workers", "1", "--phases", "fuzzing", "--mode", "all", "--checks", "NoServerError"),
    *("--continue-on-failure", "--no-shrink", "--no-color"),
    *("--generation-database", "none", "--request-timeout", "60"),
)
FIXED_OPTIONS = ("--seed", "1")
EXPECTED_EXIT_CODES = (0, 1)


@dataclass(frozen=True, slots=True)
class Fuzzer:
    """A started run of schemathesis and its output files."""

    caller: str
    examples: int
    process: subprocess.Popen[bytes]
    report: Path
    log: Path


def fuzz(app: ConformanceApp, examples: int, folder: Path, *, is_fixed: bool = False) -> list[Row]:
    """Fuzz with and without a signed-in user at the same time; return a row for each run."""
    admin = admin_token(app)
    member_tokens(app, SEEDED_USERS)
    seeds = create_seeds(app, admin)
    settings = config(executable_schema, seeds)
    # Registered after the users whose ids are seeds, because the admin bans those.
    spare_tokens = member_tokens(app, SPARE_USERS)
    user_ids = [seeds.caller_id, seeds.ids["users"][0]]
    plans: dict[str, dict[str, Any]] = {
        "signed in": {"token": admin, "spare_tokens": spare_tokens, "user_ids": user_ids},
        "not signed in": {"token": None, "spare_tokens": [], "user_ids": user_ids},
    }
    fuzzers: list[Fuzzer] = []
    try:
        for caller, plan in plans.items():
            home = _prepare_folder(folder, caller, settings)
            fuzzers.append(_start(app, examples, caller, plan, home, is_fixed=is_fixed))
        subscriptions = fuzz_subscriptions(app, examples, admin, is_fixed=is_fixed)
        return [*(_row(fuzzer) for fuzzer in fuzzers), subscriptions]
    finally:
        for fuzzer in fuzzers:
            fuzzer.process.kill()


def _prepare_folder(folder: Path, caller: str, settings: str) -> Path:
    home = folder / f"fuzz {caller}"
    home.mkdir()
    (home / "schemathesis.toml").write_text(settings)
    return home


def _start(
    app: ConformanceApp,
    examples: int,
    caller: str,
    plan: dict[str, Any],
    home: Path,
    *,
    is_fixed: bool,
) -> Fuzzer:
    operations = [f"Mutation.{name}" for name in SIGN_OUT_MUTATIONS]
    content = {**plan, "sign_out_operations": operations}
    (home / "plan.json").write_text(json.dumps(content))
    command = [sys.executable, "-m", "schemathesis.cli", "run", str(SCHEMA_FILE), "--url", app.url]
    with (home / "log").open("wb") as log:
        process = subprocess.Popen(
            [*command, "--max-examples", str(examples), *OPTIONS, *FIXED_OPTIONS * is_fixed],
            cwd=home,
            env={
                **os.environ,
                "PYTHONPATH": str(PROJECT),
                "SCHEMATHESIS_HOOKS": "conformance.fuzz.hooks",
                "FUZZ_PLAN": str(home / "plan.json"),
                "FUZZ_REPORT": str(home / "report.json"),
            },
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    return Fuzzer(caller, examples, process, home / "report.json", home / "log")


def _row(fuzzer: Fuzzer) -> Row:
    code = fuzzer.process.wait()
    name = f"schemathesis, {fuzzer.caller}"
    report: dict[str, Any] = {"sent": {}, "executed": {}, "failures": {}}
    with suppress(OSError, ValueError):
        report = json.loads(fuzzer.report.read_text())
    sent, failed = report["sent"], report["failures"]
    fields = set(_root_fields())
    failures = [f"{field}: {_format_problems(problems)}" for field, problems in failed.items()]
    failures += [f"{field}: never requested" for field in sorted(fields - set(sent))]
    failures += _unreported_problems(fuzzer, code, failures)
    note = (
        f"{fuzzer.examples} examples per field, {sum(sent.values()):,} requests,"
        f" {sum(report['executed'].values()):,} executed"
    )
    return Row(name, max(len(fields), len(failures)), tuple(failures), note)


def _root_fields() -> Iterator[str]:
    for root in (executable_schema.query_type, executable_schema.mutation_type):
        yield from (f"{root.name}.{field}" for field in root.fields) if root else ()


def _format_problems(problems: dict[str, str]) -> str:
    return "; ".join(
        f"{problem} for {' '.join(sent.split())}" for problem, sent in problems.items()
    )


def _unreported_problems(fuzzer: Fuzzer, code: int, failures: Sequence[str]) -> list[str]:
    """Return failures of schemathesis itself, such as a broken connection or a crash."""
    if code == 0 or (code in EXPECTED_EXIT_CODES and failures):
        return []
    lines = fuzzer.log.read_text(errors="replace").strip().splitlines()[-15:]
    return [f"schemathesis ended with {code}: {' | '.join(line for line in lines if line)}"]
