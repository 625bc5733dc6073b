"""When the next hold of a user may begin, and what is stored for it."""

from bson import ObjectId

from tests.support.apps.processes import AppProcess, Pair
from tests.support.clients.client import Json
from tests.support.clients.fixtures import Two
from tests.support.stores.empty_database import stored_database

MEMBER_COUNT = 1
HOLD = """mutation($slot: ID!) { bookSlot(input: {slotId: $slot, hold: true, waitMs: 5000}) {
  __typename ... on HoldCooldown { code until slot { id holdCooldownMinutes } }
} }"""


def stored_slot(app: AppProcess, slot_id: str) -> Json:
    """Return the document of a slot."""
    slots = stored_database(app.environment["SLOTLOCK_MONGO_URL"])["slots"]
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
    await organizer.update_slot(slot_id, holdCooldownMinutes=0)
    assert "endedHolds" not in stored_slot(two_apps[0], slot_id)
