"""`python -m bench.faults.controls`: run a campaign without each guard; all must find violations.

A control repeats with other seeds until it finds a violation, because a few faults in a short time
need not hit the moment that a missing guard spoils.
"""

import argparse
import json
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass

from bench.app_process import PROJECT
from bench.faults.__main__ import HISTORIES

ELECTION_TIMEOUT_MS = 3_000


@dataclass(frozen=True, slots=True)
class Control:
    """A guard to remove, and the faults under which its absence shows."""

    guard: str
    redis_kind: str
    faults: tuple[str, ...]


CONTROL_PLANS = (
    # Without Redis, only the version orders the writes of two apps.
    Control("version-guard", "alone", ("Redis killed", "Redis loses all keys")),
    # A server that lost its keys counts from 1 again.
    Control("fence", "alone", ("Redis loses all keys", "replaced by an empty one")),
    # A write that only the primary has is undone by an election.
    Control("majority", "alone", ("killed during lag", "primary with an app")),
    # A response is lost, and the client repeats the request with its key.
    Control("idempotency", "alone", ("app killed", "app without MongoDB")),
    # A process whose clock is ahead ends the holds of all users early.
    Control("limit", "alone", ("Redis killed", "app frozen")),
    # The response of a refresh is lost, and the client sends the token again.
    Control("refresh", "alone", ("app killed", "app without MongoDB", "primary killed")),
    # Processes die between the record and the mail.
    Control("mail-record", "alone", ("all processes killed",)),
    # Users book before another process has the lease of the reader that died.
    Control("mail-checkpoint", "alone", ("all processes killed",)),
    # All processes send, and find the same mails.
    Control("mail-lease", "alone", ("mail leaves: primary", "answers 4xx")),
    # During a fault of MongoDB, an app may read who was a guardian before.
    Control("guardian", "alone", ("Redis killed",)),
    Control("clock", "alone", ("clock skewed by 60 s", "clock stepped")),
)


def run_control(control: Control, minutes: float, attempts: int, seed: int) -> str | None:
    """Return the violations by kind that a campaign without the guard found, or None."""
    for attempt_seed in range(seed, seed + attempts):
        folder = HISTORIES / f"{attempt_seed}-{control.redis_kind}-{control.guard}"
        report = folder / "report.json"
        report.unlink(missing_ok=True)
        started_at = time.monotonic()
        command = [sys.executable, "-m", "bench.faults", "--control", control.guard]
        command += ["--seed", str(attempt_seed), "--redis", control.redis_kind]
        command += ["--minutes", str(minutes), "--only", *control.faults]
        command += ["--election-timeout-ms", str(ELECTION_TIMEOUT_MS)]
        done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
        took = f"seed {attempt_seed}, {time.monotonic() - started_at:.0f} s"
        if done.returncode == 1 and report.exists():
            violations = json.loads(report.read_text())["violations"]
            kinds = Counter(violation.partition(":")[0] for violation in violations)
            return f"{took}: {', '.join(kinds)}"
        print(f"{control.guard}: {took}: no violation (code {done.returncode})", flush=True)
        print(done.stderr[-1_000:], file=sys.stderr, flush=True)
    return None


def main() -> int:
    """Return 0 if the campaign found a violation without each guard, else 1."""
    parser = argparse.ArgumentParser(prog="python -m bench.faults.controls", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.5, metavar="M", help="default 1.5")
    parser.add_argument("--attempts", type=int, default=4, metavar="N", help="default 4")
    parser.add_argument("--seed", type=int, default=1, help="default 1")
    guards = [control.guard for control in CONTROL_PLANS]
    parser.add_argument("--only", choices=guards, default=None, help="run one control")
    args = parser.parse_args()
    failed = 0
    for control in CONTROL_PLANS:
        if args.only not in (None, control.guard):
            continue
        found = run_control(control, args.minutes, args.attempts, args.seed)
        print(f"{control.guard}: {found or 'NO VIOLATION'}", flush=True)
        failed += found is None
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
