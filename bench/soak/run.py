"""One soak run, from the start of the servers to the last check."""

import asyncio
import random
import shutil
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC
from pathlib import Path

import httpx
from pymongo import MongoClient
from redis import Redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from bench.soak import report
from bench.soak.checks import final_checks
from bench.soak.checks.booking_records import BookingRecord
from bench.soak.checks.database_checker import DatabaseChecker
from bench.soak.checks.ticket_history import check_queue_is_empty
from bench.soak.clients import operations
from bench.soak.clients.sending import RESENDERS, resend_until_final, run_resender
from bench.soak.clients.ticket_following import recheck_all_tickets
from bench.soak.clients.watchers import Watcher, run_watcher
from bench.soak.processes import chaos
from bench.soak.processes.apps import SoakApp, SoakWorker
from bench.soak.processes.servers import SoakServer
from bench.soak.run_log import Json, RunLog
from bench.soak.setup import SECRET, set_up
from bench.soak.world import World
from slotlock.devserver.binaries import MONGOD, VALKEY

APP_COUNT = 3
SLOT_WATCHERS = 3
BOOKING_WATCHERS = 4
RESEND_SAMPLE_SIZE = 300
LOCK_EXPIRY_S = 15.0
QUIET_S = 5.0  # for promotions and events after the last hold has ended


async def soak(seed: int, minutes: float, folder: Path) -> int:
    """Run for so many minutes; return 0 if every promise held, else 1."""
    async with _open_world(seed, minutes * 60, folder) as world:
        await set_up(world)
        watchers = _watchers(world)
        records = await _run_tasks(world, watchers, DatabaseChecker(world))
        for app in (*world.apps, world.worker):
            if (code := await app.stop()) != 0:
                world.run_log.record_violation(
                    "bad exit", f"{app.name} ended with {code} at the end"
                )
            final_checks.check_log(world, app.name, app.log_file)
        final_checks.check_memory(world)
        print(report.table(world, records, watchers), flush=True)
        print(report.verdict(world), flush=True)
        return 1 if world.run_log.violations else 0


@asynccontextmanager
async def _open_world(seed: int, seconds: float, folder: Path) -> AsyncIterator[World]:
    mongod, valkey = SoakServer(MONGOD, folder / "mongo"), SoakServer(VALKEY, folder / "valkey")
    mongo_url = mongod.url.replace("/?", "/soak?", 1)
    environment = {
        "SLOTLOCK_MONGO_URL": mongo_url,
        "SLOTLOCK_REDIS_URL": valkey.url,
        "SLOTLOCK_SECRET_KEY": SECRET,
        "SLOTLOCK_RATE_LIMITS": "off",  # all requests come from one address
    }
    apps = [SoakApp(index, environment, folder / f"app{index}.log") for index in range(APP_COUNT)]
    worker = SoakWorker(APP_COUNT, environment, folder / "worker.log")
    limits = httpx.Limits(max_connections=600, max_keepalive_connections=200)
    mongo: MongoClient[Json] = MongoClient(
        mongo_url, tz_aware=True, tzinfo=UTC, serverSelectionTimeoutMS=1000, timeoutMS=8000
    )
    redis = Redis.from_url(valkey.url, socket_timeout=1, retry=Retry(NoBackoff(), 0))
    try:
        await asyncio.gather(mongod.start(), valkey.start())
        await asyncio.gather(*(app.start() for app in (*apps, worker)))
        async with httpx.AsyncClient(timeout=60, limits=limits, trust_env=False) as http:
            yield World(
                *(seed, seconds, RunLog(), mongod, valkey, mongo_url),
                *(apps, http, mongo, redis, worker),
            )
    finally:
        for app in (*apps, worker):
            app.kill()
        valkey.kill()
        mongod.kill()
        mongo.close()
        redis.close()


def _watchers(world: World) -> list[Watcher]:
    users = world.rng("watchers").sample(world.users, SLOT_WATCHERS + BOOKING_WATCHERS)
    return [
        Watcher(
            f"watcher {index} ({'slots' if index < SLOT_WATCHERS else 'bookings'})",
            user,
            watches_slots=index < SLOT_WATCHERS,
        )
        for index, user in enumerate(users)
    ]


async def _run_tasks(
    world: World, watchers: list[Watcher], checker: DatabaseChecker
) -> list[BookingRecord]:
    stop_watching = asyncio.Event()
    watch_tasks = [
        asyncio.create_task(run_watcher(world, watcher, stop_watching)) for watcher in watchers
    ]
    background_tasks = [
        asyncio.create_task(_print_progress(world)),
        *(asyncio.create_task(run_resender(world, number)) for number in range(RESENDERS)),
    ]
    main_tasks = [
        *(asyncio.create_task(operations.run_user(world, user)) for user in world.users),
        asyncio.create_task(chaos.run_chaos(world)),
        asyncio.create_task(checker.check_repeatedly()),
    ]
    await asyncio.wait(main_tasks, timeout=world.seconds, return_when=asyncio.FIRST_EXCEPTION)
    world.closing.set()
    await asyncio.gather(*main_tasks)
    for task in background_tasks:
        task.cancel()
    await asyncio.gather(*background_tasks, return_exceptions=True)
    await asyncio.gather(*world.follow_tasks)
    await _resend_sample(world)
    await recheck_all_tickets(world)
    ended_at = time.monotonic()
    await asyncio.to_thread(chaos.end_holds_now, world, random.Random(0), 1.0)
    await asyncio.sleep(QUIET_S)
    slots = await checker.check_snapshot()
    records = await final_checks.check_records(world, slots, checker.misordered_pairs)
    await asyncio.sleep(max(LOCK_EXPIRY_S - (time.monotonic() - ended_at), 0))
    await final_checks.check_locks(world)
    check_queue_is_empty(world.run_log, await final_checks.count_queue_keys(world))
    stop_watching.set()
    await asyncio.gather(*watch_tasks)
    final_checks.check_watchers(world, watchers, await checker.check_snapshot(), records)
    return records


async def _resend_sample(world: World) -> None:
    # After all crashes and restarts, an old key still has the same outcome.
    rng = world.rng("once more")
    successful = [
        operation
        for operation in world.run_log.operations
        if operation.idempotency_key and operation.first_success
    ]
    for operation in rng.sample(successful, min(len(successful), RESEND_SAMPLE_SIZE)):
        await resend_until_final(world, operation, rng)


async def _print_progress(world: World) -> None:
    started_at = time.monotonic()
    while True:
        await asyncio.sleep(30)
        sent = sum(world.run_log.outcomes.values())
        violations = sum(world.run_log.violations.values())
        elapsed_s = time.monotonic() - started_at
        print(f"... {elapsed_s:.0f} s, {sent} requests, {violations} violations", flush=True)


def save_logs(folder: Path, target: Path) -> None:
    """Copy the logs of a failed run to a folder."""
    target.mkdir(parents=True, exist_ok=True)
    for log in folder.glob("*.log"):
        shutil.copy(log, target)
