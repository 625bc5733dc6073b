"""How long a hold may last, however often it is extended, and when the next one may begin."""

from contextlib import closing
from datetime import datetime, timedelta
from itertools import pairwise

from bson import ObjectId
from pymongo import MongoClient

from tests.support.apps.processes import AppProcess, Pair
from tests.support.clients.booking_client import backdate_bookings, expire_holds
from tests.support.clients.client import Json
from tests.support.clients.fixtures import Two

MEMBER_COUNT = 1
HOLD = """mutation($slot: ID!) { bookSlot(input: {slotId: $slot, hold: true, waitMs: 5000}) {
  __typename ... on HoldCooldown { code until slot { id holdCooldownMinutes } }
} }"""


def lasts(hold: Json) -> timedelta:
    """Return how long a hold lasts in all."""
    return datetime.fromisoformat(hold["heldUntil"]) - datetime.fromisoformat(hold["createdAt"])


async def test_an_extended_hold_lasts_as_long_as_one_that_begins_now(clients: Two) -> None:
    ada, organizer = clients
    slot_id = await organizer.add_slot(holdMinutes=1)
    hold = await ada.hold(slot_id)
    await organizer.update_slot(slot_id, holdMinutes=10)
    extended = await ada.extend(hold["id"])
    assert extended["__typename"] == "HoldExtended"
    booking = extended["booking"]
    assert lasts(booking) >= timedelta(minutes=10)
    assert [entry["action"] for entry in booking["history"]] == ["HELD", "EXTENDED"]
    assert await ada.fetch_booking(hold["id"]) == booking


async def test_no_extension_exceeds_one_hour(clients: Two, mongo_url: str) -> None:
    ada, organizer = clients
    slot_id = await organizer.add_slot(holdMinutes=5)
    hold = await ada.hold(slot_id)
    backdate_bookings(mongo_url, slot_id, minutes=54)
    extended = await ada.extend(hold["id"])
    assert extended["__typename"] == "HoldExtended"
    assert lasts(extended["booking"]) <= timedelta(minutes=60)
    backdate_bookings(mongo_url, slot_id, minutes=2)
    assert (await ada.extend(hold["id"]))["code"] == "HOLD_LIMIT_REACHED"


async def test_no_hold_is_extended_in_a_slot_that_was_cancelled(clients: Two) -> None:
    ada, organizer = clients
    slot_id = await organizer.add_slot()
    hold = await ada.hold(slot_id)
    await organizer.cancel_slot(slot_id)
    assert (await ada.extend(hold["id"]))["code"] == "SLOT_CANCELLED"
    assert (await ada.fetch_booking(hold["id"]))["status"] == "CANCELLED"


async def test_repeated_extensions_by_moments_add_no_history(clients: Two) -> None:
    ada, organizer = clients
    slot_id = await organizer.add_slot(holdMinutes=5)
    hold = await ada.hold(slot_id)
    version = (await ada.fetch_slot(slot_id))["version"]
    outcomes = [await ada.extend(hold["id"]) for _ in range(50)]
    assert {outcome["__typename"] for outcome in outcomes} == {"HoldExtended"}
    history = outcomes[-1]["booking"]["history"]
    # On a slow machine too, each entry adds at least half a minute.
    ends = [datetime.fromisoformat(entry["heldUntil"]) for entry in history]
    assert all(later - end >= timedelta(seconds=30) for end, later in pairwise(ends))
    assert (await ada.fetch_slot(slot_id))["version"] == version + len(history) - 1
    assert await ada.fetch_booking(hold["id"]) == outcomes[-1]["booking"]


def stored_slot(app: AppProcess, slot_id: str) -> Json:
    """Return the document of a slot."""
    with closing(MongoClient[Json](app.environment["SLOTLOCK_MONGO_URL"])) as client:
        slots = client.get_default_database()["slots"]
        found = slots.find_one({"_id": ObjectId(slot_id[-24:])})
    assert found is not None
    return found


async def test_a_hold_that_was_given_back_is_refused_and_a_booking_is_not(clients: Two) -> None:
    ada, organizer = clients
    slot_id = await organizer.add_slot(holdCooldownMinutes=60)
    await ada.cancel_booking((await ada.hold(slot_id))["id"])
    refusal = await ada.execute(HOLD, slot=slot_id)
    assert refusal.pop("until")
    assert refusal == {
        "__typename": "HoldCooldown",
        "code": "HOLD_COOLDOWN",
        "slot": {"id": slot_id, "holdCooldownMinutes": 60},
    }
    assert (await ada.book_slot(slot_id))["__typename"] == "Booked"


async def test_a_hold_that_expired_silently_is_refused_until_the_setting_is_off(
    clients: Two, two_apps: Pair
) -> None:
    ada, organizer = clients
    slot_id = await organizer.add_slot(capacity=20, holdCooldownMinutes=60)
    await ada.hold(slot_id)
    expire_holds(two_apps[0].environment["SLOTLOCK_MONGO_URL"], slot_id)
    claims = {"slotId": slot_id}
    assert (await ada.execute(HOLD, slot=slot_id))["__typename"] == "HoldCooldown"
    assert (await ada.book_all(claims, hold=True))["__typename"] == "ClaimsRefused"
    await organizer.update_slot(slot_id, holdCooldownMinutes=0)
    assert "endedHolds" not in stored_slot(two_apps[0], slot_id)
    assert (await ada.execute(HOLD, slot=slot_id))["__typename"] == "Booked"


async def test_only_a_slot_with_a_cooldown_records_one_ended_hold_a_user(
    clients: Two, two_apps: Pair
) -> None:
    ada, organizer = clients
    user_id = await ada.fetch_user_id()
    plain, slot_id = await organizer.add_slot(), await organizer.add_slot(holdCooldownMinutes=60)
    for each in (plain, slot_id, slot_id):
        hold = (await organizer.hold(each, userId=user_id))["id"]
        await ada.cancel_booking(hold)
    assert not {"endedHolds", "holdCooldownMinutes"} & stored_slot(two_apps[0], plain).keys()
    (ended,) = stored_slot(two_apps[0], slot_id)["endedHolds"]
    assert ended["user"] == ObjectId(user_id[-24:])
