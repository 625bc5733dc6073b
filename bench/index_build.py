"""Measures starts of the app while an index is missing: `python -m bench.index_build --slots N`.

The slots lie in an embedded MongoDB. After the index of lists was dropped, the app is started. The
output has the time to the first response, the time of bookable slots by id in the meantime, and the
time after which the index exists.
"""

import argparse
import asyncio
import os
import socket
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median

import httpx
from pymongo import MongoClient

from bench.app_process import graphql_url, launch
from bench.machine import machine_summary
from slotlock.devserver.embedded import embedded_servers
from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.slot import Slot, SlotKind, SlotStatus
from slotlock.domain.booking.slot_state import SlotState
from slotlock.infrastructure.mongo.client import Document, connect
from slotlock.infrastructure.mongo.indexes.index import find_missing
from slotlock.infrastructure.mongo.repositories import INDEXES, repositories_on
from slotlock.infrastructure.mongo.slots.documents import to_document

BATCH_SIZE = 5_000
NOW = datetime(2031, 5, 1, 12, tzinfo=UTC)


def slot_documents(count: int) -> Iterator[Document]:
    """Yield the documents of this many empty slots."""
    for number in range(count):
        start = NOW + timedelta(minutes=number % 100_000)
        slot = Slot(
            SlotId(f"{number:024x}"),
            f"Lesson {number % 1_000} with Ada Lovelace",
            start,
            start + timedelta(minutes=30),
            "UTC",
            3,
            "Room 1",
            SlotKind.COURSE,
            SlotStatus.PUBLISHED,
        )
        yield to_document(SlotState(slot, 1, NOW, 0, (), ()))


async def _wait_for_index(url: str) -> None:
    client, database = connect(url)
    try:
        while await find_missing(database, INDEXES):
            await asyncio.sleep(0.2)
    finally:
        await client.close()


async def _build_all(url: str) -> None:
    client, database = connect(url)
    try:
        await repositories_on(database).indexes.build_missing()
    finally:
        await client.close()


async def _measure(url: str, port: int, started_at: float) -> None:
    """Print when the app serves, how fast it is, and when the index exists."""
    index = asyncio.create_task(_wait_for_index(url))
    query = {"query": '{ slot(id: "' + "0" * 24 + '") { title } }'}
    latencies: list[float] = []
    async with httpx.AsyncClient(timeout=30) as http:
        while True:
            with suppress(httpx.ConnectError):
                if (await http.get(f"http://127.0.0.1:{port}/readyz")).status_code == 200:
                    break
            await asyncio.sleep(0.05)
        print(f"ready after {time.monotonic() - started_at:.1f} s", flush=True)
        while not index.done():
            sent_at = time.monotonic()
            (await http.post(graphql_url(port), json=query)).raise_for_status()
            latencies.append(1000 * (time.monotonic() - sent_at))
            await asyncio.sleep(0.05)
    await index
    if latencies:
        slowest = max(latencies)
        print(f"{len(latencies)} reads: median {median(latencies):.1f} ms, max {slowest:.1f} ms")
    print(f"the index exists after {time.monotonic() - started_at:.1f} s", flush=True)


def main() -> None:
    """Fill a database, drop an index, start the app and print what it takes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--slots", type=int, default=600_000)
    count: int = parser.parse_args().slots
    with tempfile.TemporaryDirectory() as folder, embedded_servers(Path(folder)) as servers:
        url = servers.mongo_url.replace("/?", "/bench_indexes?", 1)
        with MongoClient[Document](url) as client:
            slots, batch = client.get_default_database()["slots"], []
            for document in slot_documents(count):
                batch.append(document)
                if len(batch) == BATCH_SIZE:
                    slots.insert_many(batch, ordered=False)
                    batch = []
            if batch:
                slots.insert_many(batch, ordered=False)
        print(f"{count:,} slots; {machine_summary()}", flush=True)
        started_at = time.monotonic()
        asyncio.run(_build_all(url))
        print(f"all indexes built in {time.monotonic() - started_at:.1f} s", flush=True)
        with MongoClient[Document](url) as client:
            client.get_default_database()["slots"].drop_index("list")
        environment = {
            "SLOTLOCK_MONGO_URL": url,
            "SLOTLOCK_REDIS_URL": servers.redis_url,
            "SLOTLOCK_SECRET_KEY": os.urandom(32).hex(),
        }
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        started_at = time.monotonic()
        app = launch("serve", environment, port, Path(folder) / "app.log")
        try:
            asyncio.run(_measure(url, port, started_at))
        finally:
            app.terminate()
            app.wait()
            lines = (Path(folder) / "app.log").read_text().splitlines()
            print(*(line for line in lines if "index" in line), sep="\n")


if __name__ == "__main__":
    main()
