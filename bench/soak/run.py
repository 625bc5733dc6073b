"""One long run from the first server's start to the last check."""

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
from bench.soak.setup import SECRET, create_scene
from bench.soak.world import World
from slotlock.devserver.binaries import MONGOD, VALKEY

APP_COUNT = 3
SLOT_WATCHERS = 3
BOOKING_WATCHERS = 4
RESEND_SAMPLE_SIZE = 300
LOCK_EXPIRY_S = 15.0
QUIET_S = 5.0


async def soak(seed: int, minutes: float, folder: Path) -> int:
    """0 when everything held, 1 when something did not."""
    async with _open_world(seed, minutes * 60, folder) as world:
        await create_scene(world)
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
    running = [
        SoakApp(index, environment, folder / f"app{index}.log") for index in range(APP_COUNT)
    ]
    worker = SoakWorker(APP_COUNT, environment, folder / "worker.log")
    limits = httpx.Limits(max_connections=600, max_keepalive_connections=200)
    mongo: MongoClient[Json] = MongoClient(
        mongo_url, tz_aware=True, tzinfo=UTC, serverSelectionTimeoutMS=1000, timeoutMS=8000
    )
    redis = Redis.from_url(valkey.url, socket_timeout=1, retry=Retry(NoBackoff(), 0))
    try:
        await asyncio.gather(mongod.start(), valkey.start())
        await asyncio.gather(*(app.start() for app in (*running, worker)))
        async with httpx.AsyncClient(timeout=60, limits=limits, trust_env=False) as http:
            yield World(
                *(seed, seconds, RunLog(), mongod, valkey, mongo_url),
                *(running, http, mongo, redis, worker),
            )
    finally:
        for app in (*running, worker):
            app.kill()
        valkey.kill()
        mongod.kill()
        mongo.close()
        redis.close()


def _watchers(world: World) -> list[Watcher]:
    people = world.rng("watchers").sample(world.users, SLOT_WATCHERS + BOOKING_WATCHERS)
    return [
        Watcher(
            f"watcher {place} ({'slots' if place < SLOT_WATCHERS else 'news'})",
            person,
            watches_slots=place < SLOT_WATCHERS,
        )
        for place, person in enumerate(people)
    ]


async def _run_tasks(
    world: World, watchers: list[Watcher], checker: DatabaseChecker
) -> list[BookingRecord]:
    quiet = asyncio.Event()
    watching = [asyncio.create_task(run_watcher(world, each, quiet)) for each in watchers]
    resending = [asyncio.create_task(run_resender(world, number)) for number in range(RESENDERS)]
    playing = [asyncio.create_task(operations.run_user(world, person)) for person in world.users]
    playing += [
        asyncio.create_task(chaos.run_chaos(world)),
        asyncio.create_task(checker.check_repeatedly()),
    ]
    told = asyncio.create_task(_print_progress(world))
    await asyncio.wait(playing, timeout=world.seconds, return_when=asyncio.FIRST_EXCEPTION)
    world.closing.set()
    await asyncio.gather(*playing)
    for task in (told, *resending):
        task.cancel()
    await asyncio.gather(told, *resending, return_exceptions=True)
    await asyncio.gather(*world.follow_tasks)
    await _resend_sample(world)
    await recheck_all_tickets(world)
    ended = time.monotonic()
    await asyncio.to_thread(chaos.end_holds_now, world, random.Random(0), 1.0)
    await asyncio.sleep(QUIET_S)
    slots = await checker.check_snapshot()
    records = await final_checks.check_records(world, slots, checker.misordered_pairs)
    await asyncio.sleep(max(LOCK_EXPIRY_S - (time.monotonic() - ended), 0))
    await final_checks.check_locks(world)
    check_queue_is_empty(world.run_log, await final_checks.count_queue_keys(world))
    quiet.set()
    await asyncio.gather(*watching)
    final_checks.check_watchers(world, watchers, await checker.check_snapshot(), records)
    return records


async def _resend_sample(world: World) -> None:
    # After every crash and restart, the answers under old keys are still the same.
    rng = world.rng("once more")
    granted = [act for act in world.run_log.operations if act.idempotency_key and act.first_success]
    for act in rng.sample(granted, min(len(granted), RESEND_SAMPLE_SIZE)):
        await resend_until_final(world, act, rng)


async def _print_progress(world: World) -> None:
    begin = time.monotonic()
    while True:
        await asyncio.sleep(30)
        sent = sum(world.run_log.outcomes.values())
        gone, broken = time.monotonic() - begin, sum(world.run_log.violations.values())
        print(f"... {gone:.0f} s, {sent} requests, {broken} violations", flush=True)


def save_logs(folder: Path, target: Path) -> None:
    """Keep the logs of a run that failed."""
    target.mkdir(parents=True, exist_ok=True)
    for log in folder.glob("*.log"):
        shutil.copy(log, target)
