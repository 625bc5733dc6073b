"""One campaign, from the start of the servers to the report."""

import asyncio
import shutil
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.app_process import PROJECT
from bench.faults import report
from bench.faults.availability import LoopWatch, WatchedHistory
from bench.faults.clients.plan import ClientPlan
from bench.faults.clients.run import run_clients
from bench.faults.clock import clock_offset_s
from bench.faults.fences import FenceRecorder
from bench.faults.history import CLOCK_OFFSET, FENCES, MAILS, MAILS_UNTIL, SLOT_VERSIONS, Json
from bench.faults.injection.injector import Injector
from bench.faults.injection.schedule import Schedule
from bench.faults.leftovers import find_leftovers, find_process_problems, finish_mails
from bench.faults.slot_versions import SlotVersions
from bench.faults.topology.deployment import Deployment, DeploymentPlan, open_deployment
from bench.faults.topology.servers import CampaignError
from bench.machine import machine_summary

PROGRESS_S = 30.0


@dataclass(frozen=True, slots=True)
class CampaignPlan:
    """What a campaign does, and where its history goes."""

    seed: int
    minutes: float
    deployment: DeploymentPlan
    only: tuple[str, ...]
    mix: str
    users: int
    history: Path


async def run_campaign(plan: CampaignPlan, folder: Path) -> report.Report:
    """Run the campaign and write its history; raises CampaignError if a server does not start."""
    try:
        plan.history.mkdir(parents=True, exist_ok=True)
        mails = plan.history / MAILS
        async with open_deployment(plan.deployment, folder, mails) as deployment:
            return await _run(plan, deployment)
    finally:
        await asyncio.to_thread(_save_logs, folder, plan.history)


def _save_logs(folder: Path, target: Path) -> None:
    for log in folder.glob("*.log"):
        shutil.copy(log, target)
    for log in folder.glob("*/log"):  # Redis and Sentinel
        shutil.copy(log, target / f"{log.parent.name}.log")


async def _run(plan: CampaignPlan, deployment: Deployment) -> report.Report:
    history = WatchedHistory(plan.history)
    versions = SlotVersions(deployment.members.url, plan.history / SLOT_VERSIONS)
    run: Json = {
        "seed": plan.seed,
        "minutes": plan.minutes,
        "control": plan.deployment.control,
        "settings": asdict(plan.deployment),
        CLOCK_OFFSET: clock_offset_s(),
    }
    watch = LoopWatch()
    fences = FenceRecorder(deployment.redis.nodes, plan.history / FENCES)
    try:
        await versions.prepare()
        schedule = Schedule(plan.seed, deployment.redis.kind, plan.only, plan.mix)
        client_plan = ClientPlan(plan.seed, deployment.members.url, deployment.secret, plan.users)
        injector = Injector(deployment, schedule, history, client_plan.on_fault)
        started_at = time.monotonic()
        await _run_tasks(plan, client_plan, deployment, history, injector, watch)
        seconds = time.monotonic() - started_at
        problems = await find_leftovers(deployment)
        run[MAILS_UNTIL] = await finish_mails(deployment)
        # Nothing is written after the last version.
        await asyncio.gather(*(process.stop() for process in deployment.processes))
        history.write_problems((*problems, *find_process_problems(deployment.processes)))
        await versions.finish()
        history.write_run(run)
    finally:
        await fences.close()
        await versions.close()
        history.close()
    return report.Report(
        seed=plan.seed,
        minutes=plan.minutes,
        redis=deployment.redis.kind,
        election_timeout_ms=deployment.members.election_timeout_ms,
        control=plan.deployment.control,
        machine=machine_summary(),
        requests=history.request_count,
        requests_per_s=history.request_count / seconds,
        slot_versions=versions.count,
        fences=fences.count,
        faults=len(injector.injected),
        violations=await asyncio.to_thread(_check, plan.history),
        longest_stall_s=round(watch.longest_stall_s, 1),
        rows=report.fault_rows(
            injector.injected, [history.acknowledged_at[app] for app in _urls(deployment)]
        ),
        skipped=injector.skipped,
        outcomes=dict(history.outcomes.most_common()),
    )


def _check(directory: Path) -> list[str]:
    # In a process of its own, as for a saved history: it needs more memory than the campaign.
    command = (sys.executable, "-m", "bench.faults.checker", str(directory))
    checked = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    (directory / "checked.txt").write_text(checked.stdout + checked.stderr)
    if checked.returncode == 0:
        return []
    prefix = "VIOLATION "
    found = [
        line.removeprefix(prefix) for line in checked.stdout.splitlines() if line.startswith(prefix)
    ]
    if not found:
        last_line = (checked.stderr.splitlines() or ["no output"])[-1]
        raise CampaignError(f"the checker failed: {last_line}")
    return found


def _urls(deployment: Deployment) -> list[str]:
    return [app.url for app in deployment.apps]


async def _run_tasks(
    plan: CampaignPlan,
    client_plan: ClientPlan,
    deployment: Deployment,
    history: WatchedHistory,
    injector: Injector,
    watch: LoopWatch,
) -> None:
    end_of_faults, stop = asyncio.Event(), asyncio.Event()
    clients = asyncio.create_task(run_clients(client_plan, _urls(deployment), history, stop))
    background = [
        asyncio.create_task(watch.run()),
        asyncio.create_task(_print_progress(history, injector)),
    ]
    faults = asyncio.create_task(_inject(client_plan.ready, injector, end_of_faults))
    try:
        # A task that ends early ends with an error, which ends the campaign.
        await asyncio.wait(
            [clients, faults], timeout=plan.minutes * 60, return_when=asyncio.FIRST_COMPLETED
        )
        end_of_faults.set()
        if not clients.done():
            await faults
        stop.set()
        await clients
    finally:
        tasks = (*background, faults, clients)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _inject(ready: asyncio.Event, injector: Injector, stop: asyncio.Event) -> None:
    await ready.wait()
    await injector.run(stop)


async def _print_progress(history: WatchedHistory, injector: Injector) -> None:
    started_at = time.monotonic()
    while True:
        await asyncio.sleep(PROGRESS_S)
        print(
            f"... {time.monotonic() - started_at:.0f} s, {history.request_count} requests, "
            f"{len(injector.injected)} faults",
            flush=True,
        )
