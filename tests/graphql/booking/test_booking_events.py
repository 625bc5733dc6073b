"""What others and the clock do to a user's bookings reaches them over a WebSocket, anywhere."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest
from redis import Redis

from slotlock.devserver.embedded import EmbeddedServers
from tests.support.apps.processes import AppProcess
from tests.support.clients.booking_client import (
    WATCH_MY_BOOKINGS,
    BookingClient,
    create_booking_clients,
    expire_holds,
)
from tests.support.clients.client import Json, WebSocketTestClient, hours_from_now, open_websocket

Pair = tuple[AppProcess, AppProcess]
Event = tuple[str, str | None, str, str]


class Watcher:
    """Somebody who watches their own bookings."""

    def __init__(self, opened: WebSocketTestClient, probes: set[str]) -> None:
        self._socket = opened
        self._probes = probes

    async def told(self) -> Json:
        """The next event that is not about a probe."""
        while True:
            event: Json = await self._socket.next_result()
            if event["booking"]["slot"]["id"] not in self._probes:
                return event

    async def told_in_short(self) -> Event:
        """What was done, by whom, to the booking in which slot, and how it is now."""
        event = await self.told()
        booking, by = event["booking"], event["by"] and event["by"]["id"]
        return event["action"], by, booking["slot"]["id"], booking["status"]


class Office:
    """Ada acts at one process and watches at the other; Ben the other way round."""

    def __init__(
        self, apps: Pair, ada: BookingClient, ben: BookingClient, organizer: BookingClient
    ) -> None:
        self.ada, self.ben, self.organizer = ada, ben, organizer
        self._apps = apps

    @asynccontextmanager
    async def watching(self, user: BookingClient) -> AsyncIterator[Watcher]:
        """A watch that has begun, at the process where the user does not act."""
        (app,) = (app for app in self._apps if app.url != user.url)
        async with open_websocket(app, user.token) as opened:
            await opened.subscribe("1", WATCH_MY_BOOKINGS)
            # Nothing says that a watch has begun, but that it tells of a probe.
            probes, user_id, begun = set[str](), await user.fetch_user_id(), False
            while not begun:
                probes.add(probe := await self.organizer.add_slot())
                await self.organizer.book_slot(probe, userId=user_id)
                try:
                    async with asyncio.timeout(3):
                        begun = (await opened.next_result())["booking"]["slot"]["id"] in probes
                except TimeoutError:
                    continue
            yield Watcher(opened, probes)


@pytest.fixture
async def office(two_apps: Pair, http: httpx.AsyncClient) -> Office:
    """Ada at one process, Ben at the other, and an organizer."""
    (ada, ben), organizer = await create_booking_clients(http, 2, *two_apps)
    return Office(two_apps, ada, ben, organizer)


@pytest.fixture
def mongo_url(two_apps: Pair) -> str:
    """The database of both processes."""
    return two_apps[0].environment["SLOTLOCK_MONGO_URL"]


async def booked(user: BookingClient, slot_id: str) -> str:
    """The id of a user's new booking."""
    return str((await user.book_slot(slot_id))["booking"]["id"])


async def test_a_promotion_publishes_a_booking_event(office: Office) -> None:
    slot_id = await office.organizer.add_slot()
    booking_id = await booked(office.ada, slot_id)
    await office.ben.join(slot_id)
    async with office.watching(office.ben) as watcher:
        await office.ada.cancel_booking(booking_id)
        event = await watcher.told()
    assert (event["action"], event["by"]) == ("PROMOTED", None)
    assert event["booking"] == (await office.ben.fetch_slot(slot_id))["myBooking"]
    assert event["at"] == event["booking"]["history"][0]["at"]


async def test_an_offer_its_expiry_and_the_next_offer_publish_events(
    office: Office, mongo_url: str
) -> None:
    slot_id = await office.organizer.add_slot(waitlistOfferMinutes=30)
    booking_id = await booked(office.organizer, slot_id)
    await office.ada.join(slot_id)
    await office.ben.join(slot_id)
    async with office.watching(office.ada) as adas, office.watching(office.ben) as bens:
        await office.organizer.cancel_booking(booking_id)
        assert await adas.told_in_short() == ("OFFERED", None, slot_id, "HELD")
        expire_holds(mongo_url, slot_id)
        assert await adas.told_in_short() == ("EXPIRED", None, slot_id, "EXPIRED")
        assert await bens.told_in_short() == ("OFFERED", None, slot_id, "HELD")


async def test_an_expired_hold_publishes_a_booking_event(office: Office, mongo_url: str) -> None:
    slot_id = await office.organizer.add_slot()
    hold = await office.ada.hold(slot_id)
    async with office.watching(office.ada) as watcher:
        expire_holds(mongo_url, slot_id)
        event = await watcher.told()
    assert (event["action"], event["by"], event["booking"]["id"]) == ("EXPIRED", None, hold["id"])
    assert event["booking"] == await office.ada.fetch_booking(hold["id"])


async def test_a_change_by_an_organizer_publishes_a_booking_event(office: Office) -> None:
    organizer, adas = office.organizer, await office.ada.fetch_user_id()
    by = await organizer.fetch_user_id()
    one, two, three = [await organizer.add_slot() for _ in range(3)]
    hold = await office.ada.hold(one)
    async with office.watching(office.ada) as watcher:
        await organizer.confirm(hold["id"])
        assert await watcher.told_in_short() == ("CONFIRMED", by, one, "CONFIRMED")
        moved = (await organizer.move(hold["id"], two))["booking"]
        event = await watcher.told()
        assert (event["action"], event["by"]["id"], event["booking"]) == ("MOVED", by, moved)
        assert event["booking"]["movedFrom"] == hold["id"]
        await organizer.cancel_booking(moved["id"])
        assert await watcher.told_in_short() == ("CANCELLED", by, two, "CANCELLED")
        await organizer.book_slot(three, userId=adas)
        assert await watcher.told_in_short() == ("BOOKED", by, three, "CONFIRMED")


async def test_a_cancelled_slot_publishes_an_event_to_each_of_its_users(office: Office) -> None:
    slot_id, by = (
        await office.organizer.add_slot(capacity=2),
        await office.organizer.fetch_user_id(),
    )
    for user in (office.ada, office.ben):
        await user.book_slot(slot_id)
    async with office.watching(office.ada) as adas, office.watching(office.ben) as bens:
        await office.organizer.cancel_slot(slot_id)
        for watcher in (adas, bens):
            assert await watcher.told_in_short() == ("CANCELLED", by, slot_id, "CANCELLED")


async def test_a_booking_made_by_a_teammate_publishes_an_event(office: Office) -> None:
    slot_ids = [await office.organizer.add_slot(capacity=2) for _ in range(2)]
    await office.ada.create_team_with(office.ben)
    bens = await office.ben.fetch_user_id()
    claims = [{"slotId": slot_id, "userId": bens} for slot_id in slot_ids]
    async with office.watching(office.ben) as watcher:
        await office.ada.book_all(*claims)
        told = {(await watcher.told_in_short())[:3] for _ in claims}
    assert told == {("BOOKED", await office.ada.fetch_user_id(), slot_id) for slot_id in slot_ids}


async def test_a_users_own_changes_publish_no_event_to_that_user(office: Office) -> None:
    one, two, three = [await office.organizer.add_slot() for _ in range(3)]
    async with office.watching(office.ada) as watcher:
        hold = await office.ada.hold(one)
        await office.ada.extend(hold["id"])
        await office.ada.confirm(hold["id"])
        moved = (await office.ada.move(hold["id"], two))["booking"]
        await office.ada.cancel_booking(moved["id"])
        await office.ada.book_slot(one)
        await office.organizer.book_slot(three, userId=await office.ada.fetch_user_id())
        assert (await watcher.told_in_short())[2] == three


async def test_users_receive_events_of_their_own_bookings_only(office: Office) -> None:
    slot_id, other_id = [await office.organizer.add_slot(capacity=3) for _ in range(2)]
    async with office.watching(office.ada) as adas, office.watching(office.ben) as bens:
        await office.organizer.book_slot(slot_id, userId=await office.ben.fetch_user_id())
        assert (await bens.told_in_short())[2] == slot_id
        await office.organizer.book_slot(other_id, userId=await office.ada.fetch_user_id())
        event = await adas.told()
        assert event["booking"]["slot"]["id"] == other_id
        assert event["booking"]["user"]["id"] == await office.ada.fetch_user_id()


async def test_every_subscription_of_a_user_gets_events_and_ends_alone(
    office: Office,
) -> None:
    slot_id, other_id = [await office.organizer.add_slot() for _ in range(2)]
    adas = await office.ada.fetch_user_id()
    async with office.watching(office.ada) as first:
        async with office.watching(office.ada) as second:
            await office.organizer.book_slot(slot_id, userId=adas)
            assert (await second.told_in_short())[2] == slot_id
        while (await first.told_in_short())[2] != slot_id:
            pass
        await office.organizer.book_slot(other_id, userId=adas)
        assert (await first.told_in_short())[2] == other_id


async def test_subscribing_to_my_bookings_requires_a_token(two_apps: Pair) -> None:
    async with open_websocket(two_apps[0]) as nobodys:
        await nobodys.subscribe("1", WATCH_MY_BOOKINGS)
        message = await nobodys.receive()
    assert message["type"] == "error"
    assert message["payload"][0]["extensions"]["code"] == "UNAUTHENTICATED"


async def test_events_that_redis_lost_are_delivered_after_a_resync(
    office: Office, servers: EmbeddedServers
) -> None:
    slot_ids = [await office.organizer.add_slot() for _ in range(5)]
    adas, by = await office.ada.fetch_user_id(), await office.organizer.fetch_user_id()
    with Redis.from_url(servers.redis_url) as redis:
        async with office.watching(office.ada) as watcher:
            for slot_id in slot_ids:
                # Who listens comes back after half a second, and has missed what was said then.
                redis.client_kill_filter(_type="pubsub")
                redis.flushall()
                await office.organizer.book_slot(slot_id, userId=adas)
                assert await watcher.told_in_short() == ("BOOKED", by, slot_id, "CONFIRMED")


async def test_a_booking_made_moments_ago_publishes_its_cancellation(
    office: Office,
) -> None:
    by = await office.organizer.fetch_user_id()
    async with office.watching(office.ada) as watcher:
        for _ in range(5):
            slot_id = await office.organizer.add_slot()
            booking_id = await booked(office.ada, slot_id)
            await office.organizer.cancel_booking(booking_id)
            assert await watcher.told_in_short() == ("CANCELLED", by, slot_id, "CANCELLED")


async def test_a_booking_that_is_promoted_and_ended_at_once_publishes_both_events(
    office: Office,
) -> None:
    adas, by = await office.ada.fetch_user_id(), await office.organizer.fetch_user_id()
    async with office.watching(office.ada) as watcher:
        for _ in range(5):
            slot_id = await office.organizer.add_slot()
            booking = (await office.organizer.book_slot(slot_id, userId=adas))["booking"]
            await office.organizer.cancel_booking(booking["id"])
            told = [(await watcher.told_in_short())[:3] for _ in range(2)]
            assert told == [("BOOKED", by, slot_id), ("CANCELLED", by, slot_id)]


async def test_a_booking_in_a_started_slot_publishes_a_booking_event(office: Office) -> None:
    slot_id = await office.organizer.add_slot(startTime=hours_from_now(-1))
    async with office.watching(office.ada) as watcher:
        await office.organizer.book_slot(slot_id, userId=await office.ada.fetch_user_id())
        event = await watcher.told()
    assert (event["action"], event["booking"]["overriddenLimits"]) == ("BOOKED", ["SLOT_STARTED"])
