"""The checker reports users who are signed out, keys with two effects and limits exceeded."""

import pytest

from bench.faults.history import BOOK_ALL, GUARDIANS, Json
from tests.support.bench.fault_scene import (
    ANN,
    AT,
    BEN,
    CLEO,
    SLOT,
    Scene,
    booking_id,
    live,
    shown,
)

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


def set_guardians(scene: Scene, *guardians: str, error: str | None = None) -> None:
    """Let an organizer replace the guardians of Ben; with an error, there is no response."""
    outcome: Json | None = None if error else {"__typename": "UserUpdated"}
    ids = [f"user_{each}" for each in guardians]
    scene.act(GUARDIANS, "d" * 24, outcome, error=error, userId=f"user_{BEN}", guardianIds=ids)


def live_by(by: str, made_as: str | None = "guardian", number: int = 1) -> Json:
    """Return a booking of Ben that somebody made."""
    entry = {"at": AT, "by": by, "action": "booked", "status": "confirmed"}
    booking = {**live(number, BEN), "history": [entry]}
    return {**booking, "madeAs": made_as} if made_as else booking


def book_for_ben(scene: Scene, by: str, since: float | None = None) -> None:
    """Let a guardian book for Ben."""
    scene.version(live_by(by))
    outcome = {"__typename": "Booked", "booking": shown(1)}
    scene.act("book", by, outcome, since, userId=f"user_{BEN}")


@pytest.mark.parametrize(
    ("by", "made_as", "kinds"),
    [
        (ANN, "guardian", set()),
        (BEN, None, set()),
        ("d" * 24, "organizer", set()),
        (ANN, None, {"made as somebody else"}),
        (ANN, "leader", {"made as somebody else"}),
        (BEN, "guardian", {"made as somebody else"}),
    ],
)
def test_a_booking_that_is_not_made_as_what_its_booker_is_is_reported(
    scene: Scene, by: str, made_as: str | None, kinds: set[str]
) -> None:
    set_guardians(scene, ANN)
    scene.version(live_by(by, made_as))
    scene.booked(1, by, userId=f"user_{BEN}")
    assert scene.kinds() == kinds


def test_a_booking_by_a_former_guardian_is_reported(scene: Scene) -> None:
    set_guardians(scene, ANN, CLEO)
    set_guardians(scene, CLEO)
    book_for_ben(scene, ANN)
    set_guardians(scene, CLEO, ANN)
    assert scene.kinds() == {"booked by a former guardian"}


def test_a_guardian_counts_as_of_the_start_of_a_request(scene: Scene) -> None:
    set_guardians(scene, ANN)
    since = scene.now
    set_guardians(scene, CLEO)
    book_for_ben(scene, ANN, since)
    assert scene.kinds() == set()


@pytest.mark.parametrize(
    ("later_s", "kinds"), [(0, set()), (60, {"booked by a former guardian"})], ids=["soon", "late"]
)
def test_a_change_of_guardians_without_a_response_may_be_written_later(
    scene: Scene, later_s: float, kinds: set[str]
) -> None:
    set_guardians(scene, ANN, error="TIMEOUT")
    set_guardians(scene, CLEO)
    scene.now += later_s
    book_for_ben(scene, ANN)
    assert scene.kinds() == kinds


def test_an_old_primary_may_know_a_former_guardian(scene: Scene) -> None:
    set_guardians(scene, ANN)
    set_guardians(scene, CLEO)
    fault = "mongod primary frozen"
    scene.history.write_fault(fault, "", scene.now - 1, scene.now + 5, scene.now + 5)
    book_for_ben(scene, ANN)
    assert scene.kinds() == set()


def test_two_guardians_who_book_one_child_twice_are_reported(scene: Scene) -> None:
    set_guardians(scene, ANN, CLEO)
    scene.version(*(live_by(by, number=number) for number, by in ((1, ANN), (2, CLEO))), capacity=2)
    for number, by in ((1, ANN), (2, CLEO)):
        scene.booked(number, by, userId=f"user_{BEN}")
    assert "user twice in a slot" in scene.kinds()


def test_one_place_for_a_guardian_and_a_child_together_is_reported(scene: Scene) -> None:
    set_guardians(scene, ANN)
    scene.version(live_by(ANN), capacity=2)
    bookings = [{**shown(1), "user": {"id": f"user_{BEN}"}}]
    claims = [{"slotId": f"slot_{SLOT}", "userId": f"user_{each}"} for each in (ANN, BEN)]
    outcome: Json = {"__typename": "AllBooked", "bookings": bookings}
    scene.act(BOOK_ALL, ANN, outcome, claims=claims)
    assert "some claims only" in scene.kinds()


@pytest.mark.parametrize(
    ("user", "kinds"),
    [(BEN, set()), (CLEO, {"unexplained refusal"})],
    ids=["child", "somebody else"],
)
def test_a_guardian_who_moves_a_booking_is_refused_for_the_child(
    scene: Scene, user: str, kinds: set[str]
) -> None:
    set_guardians(scene, ANN)
    book_for_ben(scene, ANN)
    scene.version(live(2, user), slot=OTHER_SLOT)
    scene.act(
        "book",
        user,
        {"__typename": "Booked", "booking": shown(2, OTHER_SLOT)},
        slotId=f"slot_{OTHER_SLOT}",
    )
    given: Json = {"slotId": f"slot_{OTHER_SLOT}", "bookingId": shown(1)["id"]}
    scene.act("move", ANN, {"__typename": "AlreadyBooked"}, **given)
    assert scene.kinds() == kinds
