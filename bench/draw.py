"""`make bench-draw`: the time from the end of the wishes to the last booking of a draw.

It prints how long each step takes in one process, on new servers, and for how long at most the step
let no other request of the process run.
"""

import argparse
import asyncio
import time
from collections.abc import Awaitable
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from random import Random
from typing import Any, TypeVar

from bson import ObjectId

from bench.comparison.servers import running_servers
from bench.machine import machine_summary
from slotlock.api.backend import open_backend
from slotlock.api.settings.settings import Settings
from slotlock.cli.draws.compare import SKEW, rank_slots
from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.slot import SlotKind, SlotSettings
from slotlock.domain.campaigns.campaign import CampaignDraft, CampaignSaved
from slotlock.domain.campaigns.terms import CampaignId
from slotlock.domain.draws.basis import DrawMethod
from slotlock.domain.draws.draw import Draw, DrawSettings
from slotlock.domain.slots.slot_patch import SlotDraft
from slotlock.domain.users.user import Caller, Role, UserId
from slotlock.infrastructure.mongo.users.user_documents import to_new_document
from slotlock.services.campaigns import campaigns
from slotlock.services.container import Services
from slotlock.services.draws import draws, public_records
from slotlock.services.draws.publication import finish_publication
from slotlock.services.slots import editing

Result = TypeVar("Result")
WISHES, MAX_BOOKINGS, BATCH_SIZE = 12, 3, 5_000
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
WATCH_INTERVAL_S = 0.01


def main() -> int:
    """Return 0 if all steps up to the last booking took at most 60 s, else 1."""
    parser = argparse.ArgumentParser(prog="python -m bench.draw", description=__doc__)
    parser.add_argument("--users", type=int, default=20_000, metavar="N", help="default 20000")
    parser.add_argument("--slots", type=int, default=500, metavar="N", help="default 500")
    parser.add_argument("--places", type=int, default=30, metavar="N", help="default 30")
    args = parser.parse_args()
    print(machine_summary())
    with running_servers() as servers:
        settings = Settings(
            mongo_url=servers.embedded.mongo_url, redis_url=servers.embedded.redis_url
        )
        return asyncio.run(_measure(settings, args))


async def _measure(settings: Settings, args: argparse.Namespace) -> int:
    async with open_backend(settings) as backend:
        services = backend.services
        organizer = Caller(UserId(str(ObjectId())), Role.ORGANIZER, "session", services.now())
        draw = await _seed(services, backend.database, organizer, args)
        times: dict[str, float] = {}

        async def timed(name: str, step: Awaitable[Result]) -> Result:
            watch, started = LoopWatch(), time.perf_counter()
            result = await step
            times[name] = time.perf_counter() - started
            pause_ms = watch.stop() * 1000
            print(f"{name:24} {times[name]:6.1f} s {pause_ms:6.0f} ms", flush=True)
            return result

        where = draw.campaign_id
        print(f"{'step':24} {'time':>8} {'pause':>9}")
        await timed("close the wishes", draws.close_wishes(services, organizer, where))
        await timed("store the basis", draws.store_basis(services, draw.id))
        await timed("preview", draws.preview_draw(services, where))
        await timed("fix the seed", draws.run_draw(services, organizer, where, None))
        published = await timed("publish", draws.publish_draw(services, organizer, where))
        if not isinstance(published, Draw):
            raise TypeError(published)
        await timed("draw, book and open", finish_publication(services, published))
        booked = [each async for each in backend.database["slots"].find({}, {"bookings.id": 1})]
        total_s = sum(times.values()) - times["preview"]
        print(f"{sum(len(each['bookings']) for each in booked)} bookings in {total_s:.1f} s")
        written = await services.draws.find(published.id) or published
        record = await timed("record", public_records.draw_record(services, written, organizer))
        print(f"the record has {len(record or '') / 1e6:.0f} MB")
        sent = await timed("record as it is sent", _size(services, written))
        print(f"{sent / 1e6:.0f} MB are sent")
        return 0 if total_s <= 60 else 1


async def _size(services: Services, draw: Draw) -> int:
    name = draw.record_hash or ""
    return sum([len(part) async for part in services.draw_texts.read(draw.id, name)])


class LoopWatch:
    """Measures for how long at most the event loop runs nothing else."""

    def __init__(self) -> None:
        self._longest_s, self._task = 0.0, asyncio.create_task(self._watch())

    async def _watch(self) -> None:
        while True:
            due = time.perf_counter() + WATCH_INTERVAL_S
            await asyncio.sleep(WATCH_INTERVAL_S)
            self._longest_s = max(self._longest_s, time.perf_counter() - due)

    def stop(self) -> float:
        """Return the longest pause in seconds."""
        self._task.cancel()
        return self._longest_s


async def _seed(
    services: Services, database: Any, organizer: Caller, args: argparse.Namespace
) -> Draw:
    """Insert users, a campaign with slots, and the wishes of all users."""
    now = datetime.now(UTC).replace(microsecond=0)
    draft = CampaignDraft(
        "Sports",
        now,
        now + 60 * DAY,
        published=True,
        max_bookings=MAX_BOOKINGS,
        forbid_overlap=True,
    )
    saved = await campaigns.create(services, draft, organizer.user_id)
    if not isinstance(saved, CampaignSaved):
        raise TypeError(saved)
    campaign_id = saved.campaign.id
    slot_ids = await _insert_slots(services, campaign_id, organizer, now, args)
    until = DrawSettings(DrawMethod.ROUNDS, now + DAY)
    draw = await draws.configure_draw(services, organizer, campaign_id, until)
    if not isinstance(draw, Draw):
        raise TypeError(draw)
    users = [
        to_new_document(f"User {n}", f"{n}@school.test", Role.MEMBER, "hash", now)
        for n in range(args.users)
    ]
    random, weights = Random(1), list(accumulate((n + 1) ** -SKEW for n in range(len(slot_ids))))
    wishes = [
        {
            "draw": ObjectId(draw.id),
            "campaign": ObjectId(campaign_id),
            "users": [user["_id"]],
            "slots": [
                ObjectId(each)
                for each in rank_slots(random, slot_ids, weights, min(WISHES, len(slot_ids)))
            ],
            "salt": f"{n:032x}",
            "by": user["_id"],
            "at": now,
        }
        for n, user in enumerate(users)
    ]
    for name, documents in (("users", users), ("draw_wishes", wishes)):
        for start in range(0, len(documents), BATCH_SIZE):
            await database[name].insert_many(documents[start : start + BATCH_SIZE])
    return draw


async def _insert_slots(
    services: Services,
    campaign_id: CampaignId,
    organizer: Caller,
    now: datetime,
    args: argparse.Namespace,
) -> list[SlotId]:
    ids: list[SlotId] = []
    for n in range(args.slots):
        start = now + 30 * DAY + n % 25 * HOUR
        settings = SlotSettings(f"Course {n}", "UTC", args.places, None, SlotKind.COURSE)
        draft = SlotDraft(settings, start, start + HOUR, published=True)
        created = await editing.create(services, draft, organizer.user_id, campaign_id)
        ids += created.slots
    return ids


if __name__ == "__main__":
    raise SystemExit(main())
