"""The command of the campaign: `python -m bench.faults --minutes 10 --seed N`."""

import argparse
import json
import random
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import uvloop

from bench.app_process import PROJECT
from bench.faults import report
from bench.faults.controls.guards import CONTROLS
from bench.faults.injection.schedule import MIXES
from bench.faults.run import CampaignPlan, run_campaign
from bench.faults.topology.deployment import DeploymentPlan
from bench.faults.topology.disks import enter_private_mounts
from bench.faults.topology.redis_servers import KINDS
from bench.faults.topology.servers import CampaignError
from slotlock.devserver.binaries import ServerStartError

HISTORIES = PROJECT / ".bench" / "faults"


def main(arguments: Sequence[str] | None = None) -> int:
    """Return 0 without a violation, 1 with one, 2 if the campaign is impossible here."""
    parser = argparse.ArgumentParser(prog="python -m bench.faults", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, metavar="M", help="default 10")
    parser.add_argument("--seed", type=int, default=None, help="default random")
    parser.add_argument("--redis", choices=KINDS, default=None, help="default by the seed")
    parser.add_argument("--election-timeout-ms", type=int, default=10_000, help="default 10000")
    parser.add_argument(
        "--control", choices=tuple(CONTROLS), default=None, help="run without a guard"
    )
    parser.add_argument(
        "--only", nargs="+", default=(), metavar="TEXT", help="faults with one of these in the name"
    )
    parser.add_argument("--mix", choices=tuple(MIXES), default="all", help="default all faults")
    parser.add_argument("--users", type=int, default=60, metavar="N", help="default 60")
    args = parser.parse_args(arguments)
    seed = random.SystemRandom().randrange(10**6) if args.seed is None else args.seed
    redis_kind = args.redis or random.Random(f"{seed}:redis").choice(KINDS)
    mount_obstacle = enter_private_mounts()
    signal.signal(signal.SIGTERM, _exit_once)
    print(f"seed {seed}, {args.minutes:g} minutes, Redis {redis_kind}", flush=True)
    parts = (str(seed), redis_kind, args.control)
    history = HISTORIES / "-".join(filter(None, parts))
    deployment = DeploymentPlan(redis_kind, args.election_timeout_ms, args.control, mount_obstacle)
    only = tuple(args.only)
    plan = CampaignPlan(seed, args.minutes, deployment, only, args.mix, args.users, history)
    with tempfile.TemporaryDirectory(prefix="slotlock-faults-") as folder:
        try:
            result = uvloop.run(run_campaign(plan, Path(folder)))
        except (CampaignError, ServerStartError) as error:
            print(f"faults: {error}", file=sys.stderr)
            return 2
        except KeyboardInterrupt:
            return 130
    (history / "report.json").write_text(json.dumps(report.to_json(result), indent=2))
    print(report.table(result), flush=True)
    return 1 if result.violations else 0


def _exit_once(*_: object) -> None:
    """Raise an exception, so that the context managers stop the servers undisturbed."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.exit(143)


if __name__ == "__main__":
    sys.exit(main())
