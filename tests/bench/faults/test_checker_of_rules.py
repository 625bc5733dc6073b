"""The checker reports broken rules across slots, wrong histories, and keys with other outcomes."""

from collections.abc import Callable
from typing import Any

import pytest

from bench.faults.checker.effects import key_hash
from bench.faults.history import HOLDS_END, Json
from tests.support.bench.fault_scene import (
    ANN,
    AT,
    BEN,
    CLEO,
    SLOT,
    Scene,
    booking_id,
    held,
    live,
    offered,
    shown,
    time_of,
    waiting,
)

OTHER_SLOT, CAMPAIGN = "6" * 24, "c" * 24
TERMS: Json = {"id": CAMPAIGN, "published": True, "opensAt": AT, "closesAt": time_of(1e6)}


def with_history(number: int, user: str, *entries: tuple[str, str], **fields: object) -> Json:
    """Return a booking with these actions and statuses."""
    history = [{"at": AT, "by": user, "action": a, "status": s, **fields} for a, s in entries]
    return {"id": booking_id(number), "user": user, "history": history}


def book_in(scene: Scene, slot: str, booking: Json, user: str, **fields: Any) -> None:
    """Let a user book in a slot that has these fields."""
    scene.version(booking, slot=slot, capacity=3, **fields)
    number = int(booking["id"], 16)
    outcome = {"__typename": "Booked", "booking": shown(number, slot)}
    scene.act("book", user, outcome, slotId=f"slot_{slot}")


@pytest.mark.parametrize(
    "history",
    [
        [("confirmed", "confirmed")],
        [("booked", "confirmed"), ("extended", "held")],
        [("booked", "confirmed"), ("cancelled", "cancelled")],
        [("held", "held")],  # without an end
        [("promoted", "confirmed")],  # without a time in the waiting list
        [("moved", "confirmed")],  # without the booking that it was
    ],
)
def test_an_impossible_history_is_reported(scene: Scene, history: list[tuple[str, str]]) -> None:
    book_in(scene, SLOT, with_history(1, ANN, *history), ANN)
    assert "wrong history" in scene.kinds()


def test_a_history_without_what_a_client_was_shown_is_reported(scene: Scene) -> None:
    scene.version(live(1, ANN))
    booking = {**shown(1), "history": [{"action": "HELD"}, {"action": "CONFIRMED"}]}
    scene.act("book", ANN, {"__typename": "Booked", "booking": booking})
    assert scene.kinds() == {"wrong history"}


def test_a_booking_in_two_slots_is_reported(scene: Scene) -> None:
    for slot in (SLOT, OTHER_SLOT):
        book_in(scene, slot, live(1, ANN), ANN)
    assert "live twice" in scene.kinds()


@pytest.mark.parametrize(
    ("fields", "other", "is_broken"),
    [
        ({"choiceGroup": "bed"}, live(2, ANN), True),
        ({"choiceGroup": "bed"}, live(2, BEN), False),
        ({"campaign": {**TERMS, "forbidOverlap": True}}, live(2, ANN), True),
        ({"campaign": {**TERMS, "maxBookings": 1}}, live(2, ANN), True),
        ({"campaign": TERMS}, live(2, ANN), False),
    ],
)
@pytest.mark.parametrize("overridden", [(), ("one_of_choice", "time_conflict", "max_bookings")])
def test_a_rule_across_slots_that_nobody_overrode_is_checked(
    scene: Scene, fields: Json, other: Json, is_broken: bool, overridden: tuple[str, ...]
) -> None:
    if overridden:
        history = ("booked", "confirmed")
        other = with_history(2, other["user"], history, overriddenLimits=overridden)
    book_in(scene, SLOT, live(1, ANN), ANN, **fields)
    book_in(scene, OTHER_SLOT, other, other["user"], **fields)
    assert scene.kinds() == ({"limit exceeded"} if is_broken and not overridden else set())


@pytest.mark.parametrize(
    ("held_s", "start_s", "rival", "kinds"),
    [
        (300, 1e6, {}, set()),  # as long as a hold that begins now
        (60, 60, {}, set()),  # until the slot starts
        (60, 1e6, {}, {"unexplained refusal"}),
        (60, 1e6, {"campaign": {**TERMS, "forbidOverlap": True}}, set()),
    ],
)
def test_a_hold_that_is_not_extended_is_at_its_end_or_ruled_out(
    scene: Scene, held_s: float, start_s: float, rival: Json, kinds: set[str]
) -> None:
    if rival:
        book_in(scene, OTHER_SLOT, live(2, ANN), ANN, **rival)
    scene.version(held(1, ANN, scene.now + held_s), start=time_of(scene.now + start_s), **rival)
    scene.booked(1, ANN)
    scene.refused(ANN, "HoldLimitReached", "extend", bookingId=shown(1)["id"])
    assert scene.kinds() - {"limit exceeded"} == kinds


@pytest.mark.parametrize(("limit", "kinds"), [(2, set()), (1, {"limit exceeded"})])
def test_a_group_with_too_many_places_in_a_slot_is_reported(
    scene: Scene, limit: int, kinds: set[str]
) -> None:
    terms = {**TERMS, "groupLimits": [{"group": "class:*", "limit": limit}]}
    ann, ben = ({**live(n, user), "groups": ["class:a"]} for n, user in ((1, ANN), (2, BEN)))
    book_in(scene, SLOT, ann, ANN, campaign=terms)
    scene.version(ann, ben, capacity=3, campaign=terms)
    scene.booked(2, BEN)
    assert scene.kinds() == kinds


@pytest.mark.parametrize(
    ("is_published", "client", "kinds"),
    [
        (True, "user 1", set()),
        (False, "user 1", {"booked while unpublished"}),
        (False, "organizer 1", set()),
    ],
)
def test_a_booking_by_a_member_while_a_campaign_is_not_published_is_reported(
    scene: Scene, is_published: bool, client: str, kinds: set[str]
) -> None:
    done: Json = {"__typename": "Campaign"}
    scene.version(campaign=TERMS)
    scene.act("unpublish", CLEO, done, client="organizer 0", id=f"campaign_{CAMPAIGN}")
    if is_published:
        scene.act("publish", CLEO, done, scene.now, id=f"campaign_{CAMPAIGN}")
    scene.version(live(1, ANN), campaign=TERMS)
    scene.act("book", ANN, {"__typename": "Booked", "booking": shown(1)}, client=client)
    scene.act("publish", CLEO, done, scene.now, id=f"campaign_{CAMPAIGN}")
    assert scene.kinds() == kinds


@pytest.mark.parametrize("is_published", [True, False])
def test_an_answered_ticket_reads_as_hidden_only_while_its_slot_is_hidden(
    scene: Scene, is_published: bool
) -> None:
    ticket = f"ticket_{SLOT}{BEN}{'d' * 32}{'e' * 16}00000000000"
    terms = {**TERMS, "published": is_published}
    scene.version(live(1, ANN), campaign=TERMS)
    scene.booked(1, ANN)
    for name in ("SlotFull", "SlotNotFound"):
        answered = {"__typename": "Ticket", "id": ticket, "status": "ANSWERED"}
        operation = "request" if name == "SlotFull" else "ticket"
        response = {**answered, "outcome": {"__typename": name}}
        scene.act(operation, BEN, response, scene.now, ticket=ticket)
        scene.version(live(1, ANN), campaign=terms)
        scene.now += 6
    assert scene.kinds() == ({"unexplained refusal"} if is_published else set())


def test_a_ticket_that_is_queued_after_its_outcome_is_reported(scene: Scene) -> None:
    ticket = f"ticket_{SLOT}{ANN}{'d' * 32}{'e' * 16}00000000000"
    for status, outcome in (("ANSWERED", {"__typename": "SlotCancelled"}), ("QUEUED", None)):
        response = {"__typename": "Ticket", "id": ticket, "status": status, "outcome": outcome}
        scene.act("request", ANN, response, scene.now)
    assert "ticket taken back" in scene.kinds()


@pytest.mark.parametrize(
    ("stored", "kinds"),
    [
        ({"__typename": "Booked", "booking": shown(1)}, set()),
        ({"__typename": "Booked", "booking": shown(2)}, {"outcome differs from its record"}),
        ({"__typename": "SlotFull"}, {"outcome differs from its record"}),
    ],
)
def test_an_outcome_that_differs_from_the_stored_one_is_reported(
    scene: Scene, stored: Json, kinds: set[str]
) -> None:
    scene.version(live(1, ANN))
    scene.stored(ANN, key_hash("k"), stored)
    scene.booked(1, ANN, idempotencyKey="k")
    assert scene.kinds() == kinds


def test_a_booking_for_two_keys_is_reported(scene: Scene) -> None:
    scene.version(live(1, ANN))
    for key in ("k", "l"):
        scene.booked(1, ANN, idempotencyKey=key)
    assert "booking of two keys" in scene.kinds()


CLAIMS = [{"slotId": f"slot_{SLOT}", "userId": f"user_{user}"} for user in (ANN, BEN)]


@pytest.mark.parametrize(
    ("second", "kinds"), [([live(2, BEN)], set()), ([], {"some claims only"})], ids=["all", "some"]
)
def test_a_request_for_several_places_that_books_some_is_reported(
    scene: Scene, second: list[Json], kinds: set[str]
) -> None:
    bookings = [with_history(1, ANN, ("booked", "confirmed"))]
    bookings += [with_history(2, BEN, ("booked", "confirmed")) for _ in second]
    for booking in bookings:
        booking["history"][0]["by"] = ANN
    scene.act("bookAll", ANN, None, error="TIMEOUT", claims=CLAIMS)
    scene.version(*bookings, capacity=3)
    assert scene.kinds() == kinds


def test_a_response_with_fewer_bookings_than_claims_is_reported(scene: Scene) -> None:
    scene.version(live(1, ANN))
    booking = {**shown(1), "slot": {"id": f"slot_{SLOT}"}, "user": {"id": f"user_{ANN}"}}
    outcome = {"__typename": "AllBooked", "bookings": [booking]}
    scene.act("bookAll", ANN, outcome, claims=CLAIMS)
    assert "some claims only" in scene.kinds()


def test_what_nobody_cleaned_up_is_reported(scene: Scene) -> None:
    scene.version(held(1, ANN, scene.now + 1))
    scene.booked(1, ANN, hold=True)
    scene.version(held(1, ANN, scene.now + 1), waitlist=(waiting(2, BEN),), capacity=2)
    entry = {"id": f"waitlistEntry_{SLOT}{booking_id(2)}"}
    scene.act("join", BEN, {"__typename": "WaitlistJoined", "entry": entry})
    scene.now += 10
    scene.version(held(1, ANN, scene.now - 10), waitlist=(waiting(2, BEN),), capacity=2)
    scene.refused(CLEO, "SlotFull")
    assert {"free and waiting", "hold not expired"} <= scene.kinds()


def test_a_waiting_list_that_is_not_in_the_order_of_its_times_is_reported(scene: Scene) -> None:
    late, early = (
        {**waiting(n, user), "since": time_of(10 - n)} for n, user in ((1, ANN), (2, BEN))
    )
    scene.version(waitlist=(late, early))
    assert "waiting list out of order" in scene.kinds()


@pytest.mark.parametrize(("fault", "is_explained"), [(HOLDS_END, True), ("Redis killed", False)])
def test_only_a_fault_may_end_a_hold_before_its_time(
    scene: Scene, fault: str, is_explained: bool
) -> None:
    scene.version(held(1, ANN, scene.now + 60))
    scene.booked(1, ANN, hold=True)
    scene.history.write_fault(fault, "", scene.now - 1, scene.now + 5, scene.now + 5)
    scene.version(held(1, ANN, scene.now + 1))
    scene.version()
    scene.ended(1, ANN, "expired")
    assert ("written without a command" not in scene.kinds()) == is_explained


Corrupt = Callable[[Scene], None]


@pytest.mark.parametrize(
    ("add", "kind"),
    [
        (lambda scene: scene.refused(ANN, "SlotFull", "reuse"), "key reused"),
        (lambda scene: scene.act("unanswered", ANN, None), "no final response"),
        (lambda scene: scene.history.write_problems([("lock left", "x")]), "lock left"),
    ],
)
def test_what_the_campaign_saw_itself_is_reported(scene: Scene, add: Corrupt, kind: str) -> None:
    add(scene)
    assert kind in scene.kinds()


EVENT: Json = {"kind": "booking", "booking": booking_id(2), "action": "PROMOTED"}
STATE: Json = {"kind": "availability", "slot": SLOT, "version": 1}


@pytest.mark.parametrize(
    "lines",
    [
        [{**EVENT, "by": None, "length": 2}, {**EVENT, "by": None, "length": 1}],
        [{**EVENT, "by": ANN, "length": 1}],
        [{**STATE, "remaining": 1, "isBooked": True}],
    ],
    ids=["shorter history", "own action", "contradiction"],
)
def test_a_message_that_contradicts_itself_or_an_earlier_one_is_reported(
    scene: Scene, lines: list[Json]
) -> None:
    scene.version(offered(2, ANN))
    session = {"watcher": "w", "session": 1, "at": scene.now}
    scene.history.write_watched({**session, "kind": "begin", "user": ANN})
    for line in lines:
        scene.history.write_watched({**session, **line})
    scene.history.write_watched({**session, "kind": "end"})
    assert "wrong message to a subscriber" in scene.kinds()


def test_a_refusal_that_shows_what_the_same_request_did_is_reported(scene: Scene) -> None:
    scene.version(live(1, ANN))
    since = scene.now
    scene.booked(1, ANN, since=since, idempotencyKey="k")
    refused = {"__typename": "AlreadyBooked", "booking": shown(1)}
    scene.act("book", ANN, refused, since, idempotencyKey="k")
    assert scene.kinds() == {"key with two outcomes"}
