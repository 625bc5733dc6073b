"""Changes by others and by time reach a user over a WebSocket in any process."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from itertools import pairwise

import httpx
import pytest
from bson import ObjectId
from redis import Redis

from slotlock.devserver.embedded import EmbeddedServers
from tests.support.apps.processes import Pair
from tests.support.clients.booking_client import BookingClient, create_booking_clients, expire_holds
from tests.support.clients.booking_events import BookingEventStream, watch_bookings
from tests.support.clients.client import Json, hours_from_now
from tests.support.scenarios.led_course import CREATE_LED


class Observer:
    """Ada changes bookings in one process and subscribes in the other; Ben does the opposite."""

    def __init__(
        self, apps: Pair, ada: BookingClient, ben: BookingClient, organizer: BookingClient
    ) -> None:
        self.ada, self.ben, self.organizer = ada, ben, organizer
        self._apps = apps

    @asynccontextmanager
    async def watching(self, user: BookingClient) -> AsyncIterator[BookingEventStream]:
        """Open a subscription in the process where the user changes nothing, once it runs."""
        (app,) = (app for app in self._apps if app.url != user.url)
        async with watch_bookings(app, user, self.organizer) as stream:
            yield stream


@pytest.fixture
def observer(two_apps: Pair, http: httpx.AsyncClient) -> Observer:
    """Return clients for Ada at one process, Ben at the other, and an organizer."""
    (ada, ben), organizer = create_booking_clients(http, 2, *two_apps)
    return Observer(two_apps, ada, ben, organizer)


async def booked(user: BookingClient, slot_id: str) -> str:
    """Return the id of a user's new booking."""
    return str((await user.book_slot(slot_id))["booking"]["id"])


async def test_a_promotion_publishes_a_booking_event(observer: Observer) -> None:
    slot_id = await observer.organizer.add_slot()
    booking_id = await booked(observer.ada, slot_id)
    await observer.ben.join(slot_id)
    async with observer.watching(observer.ben) as watcher:
        await observer.ada.cancel_booking(booking_id)
        event = await watcher.next_event()
    assert (event["action"], event["by"]) == ("PROMOTED", None)
    assert event["booking"] == (await observer.ben.fetch_slot(slot_id))["myBooking"]
    assert event["at"] == event["booking"]["history"][0]["at"]


async def test_an_offer_its_expiry_and_the_next_offer_publish_events(
    observer: Observer, mongo_url: str
) -> None:
    slot_id = await observer.organizer.add_slot(waitlistOfferMinutes=30)
    booking_id = await booked(observer.organizer, slot_id)
    await observer.ada.join(slot_id)
    await observer.ben.join(slot_id)
    async with observer.watching(observer.ada) as adas, observer.watching(observer.ben) as bens:
        await observer.organizer.cancel_booking(booking_id)
        assert await adas.next_event_summary() == ("OFFERED", None, slot_id, "HELD")
        expire_holds(mongo_url, slot_id)
        assert await adas.next_event_summary() == ("EXPIRED", None, slot_id, "EXPIRED")
        assert await bens.next_event_summary() == ("OFFERED", None, slot_id, "HELD")


async def test_an_expired_hold_publishes_an_event(observer: Observer, mongo_url: str) -> None:
    slot_id = await observer.organizer.add_slot()
    hold = await observer.ada.hold(slot_id)
    async with observer.watching(observer.ada) as watcher:
        expire_holds(mongo_url, slot_id)
        event = await watcher.next_event()
    assert (event["action"], event["by"], event["booking"]["id"]) == ("EXPIRED", None, hold["id"])
    assert event["booking"] == await observer.ada.fetch_booking(hold["id"])


async def test_a_change_by_an_organizer_publishes_a_booking_event(observer: Observer) -> None:
    organizer, adas = observer.organizer, await observer.ada.fetch_user_id()
    by = await organizer.fetch_user_id()
    one, two, three = [await organizer.add_slot() for _ in range(3)]
    hold = await observer.ada.hold(one)
    async with observer.watching(observer.ada) as watcher:
        await organizer.confirm(hold["id"])
        assert await watcher.next_event_summary() == ("CONFIRMED", by, one, "CONFIRMED")
        moved = (await organizer.move(hold["id"], two))["booking"]
        event = await watcher.next_event()
        assert (event["action"], event["by"]["id"], event["booking"]) == ("MOVED", by, moved)
        assert event["booking"]["movedFrom"] == hold["id"]
        await organizer.cancel_booking(moved["id"])
        assert await watcher.next_event_summary() == ("CANCELLED", by, two, "CANCELLED")
        await organizer.book_slot(three, userId=adas)
        assert await watcher.next_event_summary() == ("BOOKED", by, three, "CONFIRMED")


async def test_another_device_gets_what_its_user_does_and_by_default_nothing_of_it(
    observer: Observer, two_apps: Pair
) -> None:
    ada, organizer = observer.ada, observer.organizer
    by = await ada.fetch_user_id()
    for app in two_apps:
        one, two, three = [await organizer.add_slot() for _ in range(3)]
        async with (
            watch_bookings(app, ada, organizer) as default,
            watch_bookings(app, ada, organizer, include_own=True) as device,
        ):
            hold = await ada.hold(one)
            assert await device.next_event_summary() == ("HELD", by, one, "HELD")
            await ada.confirm(hold["id"])
            assert await device.next_event_summary() == ("CONFIRMED", by, one, "CONFIRMED")
            moved = (await ada.move(hold["id"], two))["booking"]
            assert await device.next_event_summary() == ("MOVED", by, two, "CONFIRMED")
            await ada.cancel_booking(moved["id"])
            assert await device.next_event_summary() == ("CANCELLED", by, two, "CANCELLED")
            await organizer.book_slot(three, userId=by)
            seen = [await default.next_event_summary()]
            while seen[-1][2] != three:
                seen.append(await default.next_event_summary())
            assert by not in {event[1] for event in seen}


async def test_a_cancelled_slot_publishes_an_event_to_each_of_its_users(observer: Observer) -> None:
    slot_id, by = (
        await observer.organizer.add_slot(capacity=2),
        await observer.organizer.fetch_user_id(),
    )
    for user in (observer.ada, observer.ben):
        await user.book_slot(slot_id)
    async with observer.watching(observer.ada) as adas, observer.watching(observer.ben) as bens:
        await observer.organizer.cancel_slot(slot_id)
        for watcher in (adas, bens):
            assert await watcher.next_event_summary() == ("CANCELLED", by, slot_id, "CANCELLED")


async def test_a_new_time_or_place_of_a_booked_slot_publishes_the_old_and_the_new_values(
    observer: Observer,
) -> None:
    slot_id = await observer.organizer.add_slot(capacity=2, location="Hall", resource="Hall")
    for user in (observer.ada, observer.ben):
        await user.book_slot(slot_id)
    start, end = hours_from_now(30), hours_from_now(31)
    async with observer.watching(observer.ada) as adas, observer.watching(observer.ben) as bens:
        await observer.organizer.update_slot(slot_id, title="Not announced", capacity=3)
        await observer.organizer.update_slot(slot_id, startTime=start, endTime=end)
        await observer.organizer.update_slot(slot_id, location=None, resource="Gym")
        for watcher in (adas, bens):
            edits: dict[str, Json] = {}
            while len(edits) < 4:  # the second edit may be reported with the first
                event = await watcher.next_event()
                assert (event["action"], event["by"]) == ("SLOT_EDITED", None)
                assert event["booking"]["status"] == "CONFIRMED"
                assert event["booking"]["slot"]["id"] == slot_id
                edits |= {edit["field"]: edit for edit in event["edits"]}
            assert edits["location"] == {"field": "location", "before": "Hall", "after": None}
            assert (edits["resources"]["before"], edits["resources"]["after"]) == ("Hall", "Gym")
            for name, new in (("startTime", start), ("endTime", end)):
                assert datetime.fromisoformat(edits[name]["after"]) == datetime.fromisoformat(new)
                assert datetime.fromisoformat(edits[name]["before"]) != datetime.fromisoformat(new)


async def test_another_teacher_is_an_edit_of_the_staff_and_none_of_the_place(
    observer: Observer,
) -> None:
    organizer = observer.organizer
    staff = [await organizer.execute(CREATE_LED, name=f"{name} {ObjectId()}") for name in "AB"]
    room = await organizer.execute(CREATE_LED, name=f"Room {ObjectId()}", kind="ROOM")
    slot_id = await organizer.add_slot(resourceIds=[room["id"], staff[0]["id"]])
    await observer.ada.book_slot(slot_id)
    async with observer.watching(observer.ada) as watcher:
        await organizer.update_slot(slot_id, resourceIds=[room["id"], staff[1]["id"]])
        event = await watcher.next_event()
    before, after = (each["name"] for each in staff)
    assert event["edits"] == [{"field": "staff", "before": before, "after": after}]


async def test_an_edit_right_after_the_booking_publishes_an_event(observer: Observer) -> None:
    slot_id = await observer.organizer.add_slot(capacity=2, location="Hall")
    async with observer.watching(observer.ada) as adas:
        await observer.ada.book_slot(slot_id)
        await observer.organizer.update_slot(slot_id, location="Attic")
        await observer.organizer.update_slot(slot_id, location="Gym")
        edits = list[Json]()
        while not edits or edits[-1]["after"] != "Gym":  # in one event, or in more
            event = await adas.next_event()
            assert (event["action"], event["booking"]["slot"]["id"]) == ("SLOT_EDITED", slot_id)
            edits += event["edits"]
        assert edits[0]["before"] == "Hall"
        for earlier, later in pairwise(edits):
            assert earlier["after"] == later["before"]


async def test_an_entry_that_others_ended_publishes_an_event(observer: Observer) -> None:
    slot_id, own = [await observer.organizer.add_slot() for _ in range(2)]
    by = await observer.organizer.fetch_user_id()
    for each in (slot_id, own):
        await booked(observer.organizer, each)
        await observer.ada.join(each)
    async with observer.watching(observer.ada) as watcher:
        since = (await observer.ada.fetch_slot(slot_id))["myWaitlistEntry"]["since"]
        await observer.ada.leave(own)
        await observer.organizer.cancel_slot(slot_id)
        event = await watcher.next_event()
    assert (event["action"], event["by"]["id"], event["edits"]) == ("WAITLIST_LEFT", by, [])
    booking = event["booking"]
    assert (booking["slot"]["id"], booking["status"]) == (slot_id, "CANCELLED")
    assert (booking["waitedSince"], booking["endedAt"]) == (since, event["at"])


async def test_an_entry_made_moments_ago_publishes_its_end(observer: Observer) -> None:
    async with observer.watching(observer.ada) as watcher:
        for _ in range(5):
            slot_id, own = [await observer.organizer.add_slot() for _ in range(2)]
            for each in (slot_id, own):
                await booked(observer.organizer, each)
                await observer.ada.join(each)
            await observer.ada.leave(own)
            await observer.organizer.cancel_slot(slot_id)
            assert (await watcher.next_event_summary())[::2] == ("WAITLIST_LEFT", slot_id)


async def test_an_entry_that_cannot_be_promoted_moments_after_joining_publishes_an_event(
    observer: Observer,
) -> None:
    async with observer.watching(observer.ada) as watcher:
        for number in range(5):
            group = f"group {number}"
            slot_id, other = [
                await observer.organizer.add_slot(choiceGroup=group) for _ in range(2)
            ]
            booking_id = await booked(observer.ben, slot_id)
            await observer.ada.join(slot_id)
            await booked(observer.ada, other)
            await observer.ben.cancel_booking(booking_id)
            assert (await watcher.next_event_summary())[:3] == ("WAITLIST_LEFT", None, slot_id)


async def test_a_booking_made_by_a_teammate_publishes_an_event(observer: Observer) -> None:
    slot_ids = [await observer.organizer.add_slot(capacity=2) for _ in range(2)]
    await observer.ada.create_team_with(observer.ben)
    bens = await observer.ben.fetch_user_id()
    claims = [{"slotId": slot_id, "userId": bens} for slot_id in slot_ids]
    async with observer.watching(observer.ben) as watcher:
        await observer.ada.book_all(*claims)
        received = {(await watcher.next_event_summary())[:3] for _ in claims}
    assert received == {
        ("BOOKED", await observer.ada.fetch_user_id(), slot_id) for slot_id in slot_ids
    }


async def test_a_users_own_changes_publish_no_event_to_that_user(observer: Observer) -> None:
    one, two, three = [await observer.organizer.add_slot() for _ in range(3)]
    async with observer.watching(observer.ada) as watcher:
        hold = await observer.ada.hold(one)
        await observer.ada.extend(hold["id"])
        await observer.ada.confirm(hold["id"])
        moved = (await observer.ada.move(hold["id"], two))["booking"]
        await observer.ada.cancel_booking(moved["id"])
        await observer.ada.book_slot(one)
        await observer.organizer.book_slot(three, userId=await observer.ada.fetch_user_id())
        assert (await watcher.next_event_summary())[2] == three


async def test_users_receive_events_of_their_own_bookings_only(observer: Observer) -> None:
    slot_id, other_id = [await observer.organizer.add_slot(capacity=3) for _ in range(2)]
    async with observer.watching(observer.ada) as adas, observer.watching(observer.ben) as bens:
        await observer.organizer.book_slot(slot_id, userId=await observer.ben.fetch_user_id())
        assert (await bens.next_event_summary())[2] == slot_id
        await observer.organizer.book_slot(other_id, userId=await observer.ada.fetch_user_id())
        event = await adas.next_event()
        assert event["booking"]["slot"]["id"] == other_id
        assert event["booking"]["user"]["id"] == await observer.ada.fetch_user_id()


async def test_every_subscription_of_a_user_gets_events_and_ends_alone(observer: Observer) -> None:
    slot_id, other_id = [await observer.organizer.add_slot() for _ in range(2)]
    adas = await observer.ada.fetch_user_id()
    async with observer.watching(observer.ada) as first:
        async with observer.watching(observer.ada) as second:
            await observer.organizer.book_slot(slot_id, userId=adas)
            assert (await second.next_event_summary())[2] == slot_id
        while (await first.next_event_summary())[2] != slot_id:
            pass
        await observer.organizer.book_slot(other_id, userId=adas)
        assert (await first.next_event_summary())[2] == other_id


async def test_events_that_redis_lost_are_delivered_after_a_resync(
    observer: Observer, servers: EmbeddedServers
) -> None:
    slot_ids = [await observer.organizer.add_slot() for _ in range(5)]
    adas, by = await observer.ada.fetch_user_id(), await observer.organizer.fetch_user_id()
    with Redis.from_url(servers.redis_url) as redis:
        async with observer.watching(observer.ada) as watcher:
            for slot_id in slot_ids:
                # Subscribers reconnect after half a second and have missed the messages until then.
                redis.client_kill_filter(_type="pubsub")
                redis.flushall()
                await observer.organizer.book_slot(slot_id, userId=adas)
                assert await watcher.next_event_summary() == ("BOOKED", by, slot_id, "CONFIRMED")


async def test_a_booking_made_moments_ago_publishes_its_cancellation(observer: Observer) -> None:
    by = await observer.organizer.fetch_user_id()
    async with observer.watching(observer.ada) as watcher:
        for _ in range(5):
            slot_id = await observer.organizer.add_slot()
            booking_id = await booked(observer.ada, slot_id)
            await observer.organizer.cancel_booking(booking_id)
            assert await watcher.next_event_summary() == ("CANCELLED", by, slot_id, "CANCELLED")


async def test_a_booking_that_is_promoted_and_ended_at_once_publishes_both_events(
    observer: Observer,
) -> None:
    adas, by = await observer.ada.fetch_user_id(), await observer.organizer.fetch_user_id()
    async with observer.watching(observer.ada) as watcher:
        for _ in range(5):
            slot_id = await observer.organizer.add_slot()
            booking = (await observer.organizer.book_slot(slot_id, userId=adas))["booking"]
            await observer.organizer.cancel_booking(booking["id"])
            received = [(await watcher.next_event_summary())[:3] for _ in range(2)]
            assert received == [("BOOKED", by, slot_id), ("CANCELLED", by, slot_id)]


async def test_a_booking_in_a_started_slot_publishes_a_booking_event(observer: Observer) -> None:
    slot_id = await observer.organizer.add_slot(startTime=hours_from_now(-1))
    async with observer.watching(observer.ada) as watcher:
        await observer.organizer.book_slot(slot_id, userId=await observer.ada.fetch_user_id())
        event = await watcher.next_event()
    assert (event["action"], event["booking"]["overriddenLimits"]) == ("BOOKED", ["SLOT_STARTED"])
