"""The checker reports users who are signed out, keys with two effects and limits exceeded."""

import pytest

from bench.faults.history import Json
from tests.support.bench.fault_scene import ANN, AT, BEN, SLOT, Scene, booking_id, live, shown

OTHER_SLOT = "6" * 24
CREATED: Json = {"title": "Slot of k", "idempotencyKey": "k"}
LIMITED: Json = {"campaign": {"id": "c" * 24, "maxBookings": 1}, "capacity": 3}
SESSION: Json = {"__typename": "Session", "accessToken": "new", "refreshToken": "next"}
INVALID: Json = {"__typename": "InvalidSession"}


def created(slot: str) -> Json:
    """Return the response with a new slot."""
    return {"__typename": "Slot", "id": f"slot_{slot}"}


def test_a_user_who_retries_and_stays_signed_in_is_accepted(scene: Scene) -> None:
    scene.act("refresh", ANN, None, error="OUTCOME_UNKNOWN", token="first")
    scene.act("refresh", ANN, SESSION, token="first")
    assert scene.kinds() == set()


@pytest.mark.parametrize(
    ("later_s", "kinds"), [(0, {"signed out"}), (60, set())], ids=["soon", "too late"]
)
def test_a_user_who_retries_in_time_and_is_signed_out_is_reported(
    scene: Scene, later_s: float, kinds: set[str]
) -> None:
    scene.act("refresh", ANN, None, error="OUTCOME_UNKNOWN", token="first")
    scene.now += later_s
    scene.act("refresh", ANN, INVALID, token="first")
    assert scene.kinds() == kinds


def test_a_token_that_an_app_refuses_is_reported(scene: Scene) -> None:
    scene.act("viewer", ANN, None, error="UNAUTHENTICATED")
    assert scene.kinds() == {"token refused"}


def test_a_slot_that_is_created_once_for_a_key_is_accepted(scene: Scene) -> None:
    scene.act("createSlot", ANN, None, error="TIMEOUT", **CREATED)
    scene.version(slot=OTHER_SLOT, title="Slot of k")
    scene.act("createSlot", ANN, created(OTHER_SLOT), **CREATED)
    assert scene.kinds() == set()


def test_two_responses_with_different_slots_for_a_key_are_reported(scene: Scene) -> None:
    for slot in (OTHER_SLOT, "7" * 24):
        scene.version(slot=slot, title="Slot of k")
        scene.act("createSlot", ANN, created(slot), **CREATED)
    assert scene.kinds() == {"key with two outcomes"}


def test_a_refused_slot_that_is_written_later_is_reported(scene: Scene) -> None:
    scene.refused(ANN, "Locked", "createSlot", **CREATED)
    scene.version(slot=OTHER_SLOT, title="Slot of k")
    assert scene.kinds() == {"refused, but written"}


def book_in_both(scene: Scene, user: str) -> None:
    """Let Ann have a booking in one slot of a campaign, and a user in another."""
    scene.version(live(1, ANN), **LIMITED)
    scene.booked(1, ANN)
    scene.version(live(2, user), slot=OTHER_SLOT, **LIMITED)
    outcome = {"__typename": "Booked", "booking": shown(2, OTHER_SLOT)}
    scene.act("book", user, outcome, slotId=f"slot_{OTHER_SLOT}")


@pytest.mark.parametrize(
    ("second", "kinds"), [(ANN, {"limit exceeded"}), (BEN, set())], ids=["same user", "others"]
)
def test_a_user_with_more_bookings_than_the_limit_is_reported(
    scene: Scene, second: str, kinds: set[str]
) -> None:
    book_in_both(scene, second)
    assert scene.kinds() == kinds


def test_a_booking_that_moves_in_one_transaction_exceeds_no_limit(scene: Scene) -> None:
    scene.version(live(1, ANN), **LIMITED)
    scene.booked(1, ANN)
    since = scene.now
    moved = {"at": AT, "by": ANN, "action": "moved", "status": "confirmed"}
    booking = {**live(2, ANN), "movedFrom": {"id": booking_id(1)}, "history": [moved]}
    scene.version(booking, slot=OTHER_SLOT, **LIMITED)
    scene.version(slot=SLOT, **LIMITED)
    scene.lines[-1]["cluster_time"] = scene.lines[-2]["cluster_time"]
    scene.ended(1, ANN, "moved", moved_to=2)
    response = {"__typename": "BookingMoved", "booking": shown(2, OTHER_SLOT)}
    given: Json = {"slotId": f"slot_{OTHER_SLOT}", "bookingId": shown(1)["id"]}
    scene.act("move", ANN, response, since, **given)
    assert scene.kinds() == set()
