"""The checker accepts correct histories, and reports what no corruption of one shows."""

import pytest

from bench.faults.checker.effects import key_hash
from bench.faults.checker.search import Step, find_order
from bench.faults.history import Json
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


def test_a_correct_history_is_accepted(scene: Scene) -> None:
    scene.version(live(1, ANN))
    scene.booked(1, ANN, idempotencyKey="k")
    scene.booked(1, ANN, idempotencyKey="k")
    scene.refused(BEN, "SlotFull")
    scene.refused(BEN, "Locked")
    scene.version(live(1, ANN), waitlist=(waiting(2, BEN),))
    entry = {"id": f"waitlistEntry_{SLOT}{booking_id(2)}"}
    scene.act("join", BEN, {"__typename": "WaitlistJoined", "entry": entry})
    scene.version(offered(2, BEN))
    scene.cancelled(1, ANN)
    scene.refused(ANN, "BookingNotFound", "confirm", bookingId=shown(1)["id"])
    assert scene.check().violations == []


def test_an_unknown_outcome_may_have_happened_or_not(scene: Scene) -> None:
    scene.act("book", ANN, None, error="TIMEOUT")
    scene.act("book", BEN, None, error="OUTCOME_UNKNOWN")
    scene.version(live(1, ANN))
    assert scene.kinds() == set()


def test_a_refusal_between_two_commands_of_one_write_is_accepted(scene: Scene) -> None:
    scene.version(live(1, ANN))
    scene.booked(1, ANN)
    since = scene.now
    scene.now += 1
    # One write: Ann cancels, Cleo cannot wait because a place is free, Ben books.
    scene.version(live(2, BEN))
    scene.cancelled(1, ANN, since)
    scene.booked(2, BEN, since=since)
    scene.refused(CLEO, "SlotNotFull", "join", since=since)
    assert scene.check().violations == []


@pytest.mark.parametrize(
    ("shows_it", "kinds"), [(True, set()), (False, {"lost change"})], ids=["shown", "control"]
)
def test_a_hold_that_one_write_confirms_and_cancels_was_confirmed_if_the_cancellation_shows_it(
    scene: Scene, shows_it: bool, kinds: set[str]
) -> None:
    hold = held(1, ANN, scene.now + 300)
    scene.version(hold)
    scene.booked(1, ANN, hold=True)
    since = scene.now
    scene.now += 1
    scene.version()
    confirmed = {"at": AT, "by": ANN, "action": "confirmed", "status": "confirmed"}
    scene.ended(1, ANN, "cancelled", before=[*hold["history"], confirmed])
    actions = ("HELD", "CONFIRMED") if shows_it else ("HELD",)
    booking = {**shown(1), "history": [{"action": action} for action in actions]}
    for operation, outcome in (("confirm", "BookingConfirmed"), ("cancel", "BookingCancelled")):
        given: Json = {"bookingId": booking["id"]}
        scene.act(operation, ANN, {"__typename": outcome, "booking": booking}, since, **given)
    assert scene.kinds() == kinds


@pytest.mark.parametrize("refusal", ["Locked", "SlotFull"])
def test_a_refused_command_that_is_written_later_is_reported(scene: Scene, refusal: str) -> None:
    scene.version(live(1, ANN))
    scene.booked(1, ANN)
    scene.refused(BEN, refusal)
    scene.version(live(1, ANN), live(2, BEN), capacity=2)
    assert scene.kinds() == {"refused, but written"}


@pytest.mark.parametrize(
    ("lasts_s", "kinds"),
    [(-1.0, set()), (2.0, {"hold expired early", "decided in the future"})],
    ids=["over", "early"],
)
def test_a_hold_that_ends_early_is_reported_whatever_the_writer_says(
    scene: Scene, lasts_s: float, kinds: set[str]
) -> None:
    until = scene.now + 3 + lasts_s
    scene.version(held(1, ANN, until))
    scene.booked(1, ANN, hold=True)
    scene.version(changedAt=time_of(until))  # by the clock of the writer, the hold is over
    scene.ended(1, ANN, "expired")
    assert scene.kinds() == kinds


@pytest.mark.parametrize(
    ("refusal", "operation", "lasts_s", "is_explained"),
    [
        ("HoldExpired", "confirm", -1.0, True),
        ("HoldExpired", "confirm", 60.0, False),  # the clock of the process was ahead
        ("SlotNotFull", "join", -1.0, True),
        ("SlotNotFull", "join", 60.0, False),
        ("SlotFull", "book", 60.0, True),
        ("SlotFull", "book", -60.0, False),  # it was behind
    ],
)
def test_a_refusal_by_a_wrong_clock_is_reported(
    scene: Scene, refusal: str, operation: str, lasts_s: float, is_explained: bool
) -> None:
    scene.version(held(1, ANN, scene.now + 3 + lasts_s))
    scene.booked(1, ANN, hold=True)
    user, given = (ANN, {"bookingId": shown(1)["id"]}) if operation == "confirm" else (BEN, {})
    scene.refused(user, refusal, operation, **given)
    found = scene.kinds() - {"hold not expired"}
    assert found == (set() if is_explained else {"unexplained refusal"})


@pytest.mark.parametrize(("early_s", "reported"), [(0, set()), (1, {"written without a command"})])
def test_only_the_start_of_a_slot_ends_its_waiting_list_without_a_command(
    scene: Scene, early_s: int, reported: set[str]
) -> None:
    starts_at = scene.now + 60
    start = time_of(starts_at)
    scene.version(live(1, ANN), start=start)
    scene.booked(1, ANN)
    scene.version(live(1, ANN), waitlist=(waiting(2, BEN),), start=start)
    entry = {"id": f"waitlistEntry_{SLOT}{booking_id(2)}"}
    scene.act("join", BEN, {"__typename": "WaitlistJoined", "entry": entry})
    scene.now = starts_at + 1
    scene.version(live(1, ANN), start=start)
    scene.left(2, BEN, starts_at - early_s)
    assert scene.kinds() == reported


def test_overtaking_in_the_waiting_list_is_reported(scene: Scene) -> None:
    scene.version(live(1, ANN))
    scene.booked(1, ANN)
    for user, number in ((BEN, 2), (CLEO, 3)):
        entry = {"id": f"waitlistEntry_{SLOT}{booking_id(number)}"}
        entries = (waiting(2, BEN), waiting(3, CLEO))[: number - 1]
        scene.version(live(1, ANN), waitlist=entries)
        scene.act("join", user, {"__typename": "WaitlistJoined", "entry": entry})
    scene.version(offered(3, CLEO), waitlist=(waiting(2, BEN),))
    scene.cancelled(1, ANN)
    assert scene.kinds() == {"overtaking in the waiting list"}


def _ticket(status: str, outcome: Json | None, user: str = ANN, key: str = "d" * 32) -> Json:
    id_ = f"ticket_{SLOT}{user}{key}{'e' * 16}00000000000"
    return {"__typename": "Ticket", "id": id_, "status": status, "outcome": outcome}


def test_two_outcomes_of_a_ticket_are_reported(scene: Scene) -> None:
    scene.version(live(1, ANN))
    queued, full = _ticket("QUEUED", None), _ticket("ANSWERED", {"__typename": "SlotFull"})
    booked = _ticket("ANSWERED", {"__typename": "Booked", "booking": shown(1)})
    scene.act("request", ANN, queued)
    scene.act("ticket", ANN, booked, ticket=queued["id"])
    scene.act("ticket", ANN, full, ticket=queued["id"])
    assert scene.kinds() == {"ticket with two outcomes"}


@pytest.mark.parametrize("is_booked", [False, True])
def test_the_request_of_a_lost_ticket_may_have_been_refused_but_not_booked(
    scene: Scene, is_booked: bool
) -> None:
    scene.version(live(1, ANN if is_booked else BEN))
    if not is_booked:
        scene.booked(1, BEN)
    queued, lost = (_ticket(each, None, key=key_hash("k")) for each in ("QUEUED", "LOST"))
    scene.stored(ANN, key_hash("k"), {"__typename": "RequestLost"})
    scene.act("request", ANN, queued, idempotencyKey="k")
    booked: Json = {"__typename": "Booked", "booking": shown(1)}
    scene.act(
        "request", ANN, booked if is_booked else {"__typename": "SlotFull"}, idempotencyKey="k"
    )
    scene.act("ticket", ANN, lost, scene.now, ticket=queued["id"])
    assert ("ticket with two outcomes" in scene.kinds()) == is_booked


@pytest.mark.parametrize(
    ("first_status", "kinds"),
    [("QUEUED", {"overtaking in the queue"}), ("ANSWERED", set())],  # at once, without the queue
)
def test_overtaking_in_the_queue_is_reported(
    scene: Scene, first_status: str, kinds: set[str]
) -> None:
    anns, bens = (_ticket("QUEUED", None, user) for user in (ANN, BEN))
    scene.act("request", ANN, anns)
    booked = [{"__typename": "Booked", "booking": shown(number)} for number in (1, 2)]
    since = scene.now
    if first_status == "QUEUED":
        scene.act("request", BEN, bens)
    scene.version(live(2, BEN), capacity=2)
    name = "ticket" if first_status == "QUEUED" else "request"
    scene.act(name, BEN, _ticket("ANSWERED", booked[1], BEN), since, ticket=bens["id"])
    scene.version(live(2, BEN), live(1, ANN), capacity=2)
    scene.act("ticket", ANN, _ticket("ANSWERED", booked[0]), ticket=anns["id"])
    assert scene.kinds() == kinds


def test_an_order_against_real_time_is_reported(scene: Scene) -> None:
    # Ben asked after Ann was informed that she has the only place, so none was free.
    scene.version(live(1, ANN))
    since = scene.now
    scene.booked(1, ANN)
    scene.refused(BEN, "SlotNotFull", "join", since=since + 1.5)
    assert scene.kinds() == {"unexplained refusal"}


def test_the_search_finds_an_order_that_real_time_allows() -> None:
    def read(expected: int, since: float, until: float) -> Step[int]:
        return Step(f"read {expected}", lambda s: s if s == expected else None, since, until)

    write: Step[int] = Step("write 1", lambda _: 1, 0, 10)
    assert find_order([write, read(0, 1, 2), read(1, 3, 4)], 0) == ["read 0", "write 1", "read 1"]
    assert find_order([write, read(1, 1, 2), read(0, 3, 4)], 0) is None


def test_a_step_of_unknown_outcome_may_be_left_out() -> None:
    lost: Step[int] = Step("write 1", lambda _: 1, 0, is_optional=True)
    for value in (0, 1):
        seen: Step[int] = Step("read", lambda s, value=value: s if s == value else None, 1, 2)  # type: ignore[misc]
        assert find_order([lost, seen], 0) is not None
