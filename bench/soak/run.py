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

from bench.soak import acts, chaos, report, verdict
from bench.soak.apps import App, Worker
from bench.soak.following import ask_all_once_more
from bench.soak.ledger import Json, Ledger
from bench.soak.records import Record
from bench.soak.scene import SECRET, set_scene
from bench.soak.sending import RESENDERS, resend, resolve
from bench.soak.servers import Server
from bench.soak.tickets import check_line
from bench.soak.truth import Truth
from bench.soak.watch import Watcher, watch
from bench.soak.world import World
from slotlock.api.binaries import MONGOD, VALKEY

APPS = 3
SLOT_WATCHERS = 3
PERSONAL_WATCHERS = 4
SENT_ONCE_MORE = 300
LOCKS_GONE_AFTER_S = 15.0
QUIET_AFTER_S = 5.0


async def soak(seed: int, minutes: float, folder: Path) -> int:
    """0 when everything held, 1 when something did not."""
    async with _stage(seed, minutes * 60, folder) as world:
        await set_scene(world)
        watchers = _watchers(world)
        records = await _play(world, watchers, Truth(world))
        for app in (*world.apps, world.worker):
            if (code := await app.stop()) != 0:
                world.ledger.violation("bad exit", f"{app.name} ended with {code} at the end")
            verdict.check_log(world, app.name, app.log_file)
        verdict.check_memory(world)
        print(report.table(world, records, watchers), flush=True)
        print(report.verdict(world), flush=True)
        return 1 if world.ledger.violations else 0


@asynccontextmanager
async def _stage(seed: int, seconds: float, folder: Path) -> AsyncIterator[World]:
    mongod, valkey = Server(MONGOD, folder / "mongo"), Server(VALKEY, folder / "valkey")
    mongo_url = mongod.url.replace("/?", "/soak?", 1)
    environment = {
        "SLOTLOCK_MONGO_URL": mongo_url,
        "SLOTLOCK_REDIS_URL": valkey.url,
        "SLOTLOCK_SECRET_KEY": SECRET,
        "SLOTLOCK_RATE_LIMITS": "off",  # all requests come from one address
    }
    running = [App(index, environment, folder / f"app{index}.log") for index in range(APPS)]
    worker = Worker(APPS, environment, folder / "worker.log")
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
                *(seed, seconds, Ledger(), mongod, valkey, mongo_url),
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
    people = world.rng("watchers").sample(world.people, SLOT_WATCHERS + PERSONAL_WATCHERS)
    return [
        Watcher(
            f"watcher {place} ({'slots' if place < SLOT_WATCHERS else 'news'})",
            person,
            slots=place < SLOT_WATCHERS,
        )
        for place, person in enumerate(people)
    ]


async def _play(world: World, watchers: list[Watcher], truth: Truth) -> list[Record]:
    quiet = asyncio.Event()
    watching = [asyncio.create_task(watch(world, each, quiet)) for each in watchers]
    resending = [asyncio.create_task(resend(world, number)) for number in range(RESENDERS)]
    playing = [asyncio.create_task(acts.live(world, person)) for person in world.people]
    playing += [asyncio.create_task(chaos.cause(world)), asyncio.create_task(truth.look_for_ever())]
    told = asyncio.create_task(_tell(world))
    await asyncio.wait(playing, timeout=world.seconds, return_when=asyncio.FIRST_EXCEPTION)
    world.closing.set()
    await asyncio.gather(*playing)
    for task in (told, *resending):
        task.cancel()
    await asyncio.gather(told, *resending, return_exceptions=True)
    await asyncio.gather(*world.following)
    await _send_once_more(world)
    await ask_all_once_more(world)
    ended = time.monotonic()
    await asyncio.to_thread(chaos.shift_holds, world, random.Random(0), 1.0)
    await asyncio.sleep(QUIET_AFTER_S)
    slots = await truth.look()
    records = await verdict.check_records(world, slots, truth.untimely)
    await asyncio.sleep(max(LOCKS_GONE_AFTER_S - (time.monotonic() - ended), 0))
    await verdict.check_locks(world)
    check_line(world.ledger, await verdict.look_at_line(world))
    quiet.set()
    await asyncio.gather(*watching)
    verdict.check_watchers(world, watchers, await truth.look(), records)
    return records


async def _send_once_more(world: World) -> None:
    # After every crash and restart, the answers under old keys are still the same.
    rng = world.rng("once more")
    granted = [act for act in world.ledger.acts if act.key and act.grant]
    for act in rng.sample(granted, min(len(granted), SENT_ONCE_MORE)):
        await resolve(world, act, rng)


async def _tell(world: World) -> None:
    begin = time.monotonic()
    while True:
        await asyncio.sleep(30)
        sent = sum(world.ledger.outcomes.values())
        gone, broken = time.monotonic() - begin, sum(world.ledger.violations.values())
        print(f"... {gone:.0f} s, {sent} requests, {broken} violations", flush=True)


def keep(folder: Path, where: Path) -> None:
    """Keep the logs of a run that failed."""
    where.mkdir(parents=True, exist_ok=True)
    for log in folder.glob("*.log"):
        shutil.copy(log, where)
