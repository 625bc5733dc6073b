"""The play of the stateful test by hand: what it found stays found, and a guard off is noticed."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest
from bson import ObjectId

from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.booking import promotion
from slotlock.domain.booking.booking import Booking, WaitlistEntry
from slotlock.domain.booking.slot import Slot
from slotlock.infrastructure.mongo.slots import booking_documents, documents, writer
from slotlock.services.commands import idempotency
from tests.support.model.checker import SlotShape
from tests.support.model.scenario import ModelScenario
from tests.support.model.service_pair import ServicePair, open_service_pair
from tests.support.model.stored_state import StoredState


@pytest.fixture(scope="module")
def pair(servers: EmbeddedServers) -> Iterator[ServicePair]:
    """Two desks on a database of their own."""
    with open_service_pair(servers, "scenes") as opened:
        yield opened


@pytest.fixture
def scenario(pair: ServicePair) -> ModelScenario:
    """A play from the beginning."""
    return ModelScenario(pair)


def test_a_hold_that_ran_out_cannot_be_moved_to_its_own_slot(scenario: ModelScenario) -> None:
    slot = scenario.add_slot(SlotShape(hold_minutes=5))
    hold = scenario.book(0, slot, hold=True)
    scenario.advance_clock(5)
    answer = scenario.perform("move", 0, slot, booking=hold, target_slot_id=slot)
    assert answer[0] == "HoldExpired"


def test_a_hold_moved_into_a_slot_that_began_lives_on(scenario: ModelScenario) -> None:
    slot, begun = (
        scenario.add_slot(SlotShape(hold_minutes=40)),
        scenario.add_slot(SlotShape(starts_in_minutes=30)),
    )
    scenario.advance_clock(31)
    hold = scenario.book(0, slot, hold=True)
    assert (
        scenario.perform("move", 5, slot, booking=hold, target_slot_id=begun)[0] == "BookingMoved"
    )


def test_moving_a_hold_does_not_let_it_last_longer_than_an_hour(scenario: ModelScenario) -> None:
    slot, other = (
        scenario.add_slot(SlotShape(hold_minutes=40)),
        scenario.add_slot(SlotShape(hold_minutes=40)),
    )
    hold = scenario.book(0, slot, hold=True)
    scenario.advance_clock(30)
    move = scenario.operation("move", 0, slot, booking=hold, target_slot_id=other)
    scenario.run(move)
    scenario.perform("extend", 0, other, booking=move.token)


def test_a_hold_that_ran_out_while_it_was_moved_is_not_said_to_be_unknown(
    scenario: ModelScenario,
) -> None:
    slot, other = scenario.add_slot(SlotShape(hold_minutes=5)), scenario.add_slot(SlotShape())
    hold = scenario.book(0, slot, hold=True)
    move = scenario.operation("move", 0, slot, booking=hold, target_slot_id=other)
    scenario.run_with_lost_lock(move, 5, scenario.operation("edit", 5, slot, number=3))


def test_whom_an_organiser_booked_is_not_given_a_second_place_from_the_line(
    scenario: ModelScenario,
) -> None:
    slot = scenario.add_slot(SlotShape(capacity=2, starts_in_minutes=30))
    first, _ = scenario.book(0, slot), scenario.book(1, slot)
    scenario.perform("join", 2, slot)
    scenario.advance_clock(30)
    scenario.perform("cancel", 5, slot, booking=first)
    scenario.book(5, slot, user_index=2)
    scenario.perform("postpone", 5, slot, number=240)
    scenario.perform("edit", 5, slot, number=3)


def test_confirming_too_late_does_not_leave_somebody_with_two_of_a_choice(
    scenario: ModelScenario,
) -> None:
    one, other = (
        scenario.add_slot(SlotShape(hold_minutes=5, choice_group="one")) for _ in range(2)
    )
    hold = scenario.book(0, one, hold=True)
    scenario.advance_clock(4)
    scenario.run_with_lost_lock(
        scenario.operation("confirm", 0, one, booking=hold), 2, scenario.operation("book", 0, other)
    )


def test_who_waits_for_two_of_a_choice_gets_one_when_both_become_free(
    scenario: ModelScenario,
) -> None:
    one, other = (
        scenario.add_slot(SlotShape(hold_minutes=5, choice_group="one")) for _ in range(2)
    )
    free = scenario.add_slot(SlotShape())
    hold = scenario.book(0, one, hold=True)
    scenario.book(1, other, hold=True)
    scenario.perform("join", 2, one)
    scenario.perform("join", 2, other)
    scenario.advance_clock(5)
    claims = (
        (one, scenario.user_ids[3]),
        (other, scenario.user_ids[4]),
        (free, scenario.user_ids[5]),
    )
    scenario.perform("book_all", 5, claims=claims)
    assert hold


def test_who_gets_a_place_from_the_line_has_chosen_before_their_claim_is_heard(
    scenario: ModelScenario,
) -> None:
    one, other = (
        scenario.add_slot(SlotShape(capacity=2, hold_minutes=5, choice_group="one"))
        for _ in range(2)
    )
    scenario.run(team := scenario.operation("team_create", 0))
    scenario.perform("team_invite", 0, booking=team.token, user_index=1)
    scenario.perform("team_accept", 1, booking=team.token)
    scenario.book(2, one, hold=True)
    scenario.book(3, one, hold=True)
    scenario.perform("join", 1, one)
    scenario.advance_clock(5)
    claims = ((one, scenario.user_ids[0]), (other, scenario.user_ids[1]))
    assert scenario.perform("book_all", 0, claims=claims)[0] == "NoneBooked"


def test_who_was_given_a_hold_beyond_the_limit_can_confirm_it(scenario: ModelScenario) -> None:
    one, other = (
        scenario.add_slot(SlotShape(hold_minutes=5, choice_group="one")) for _ in range(2)
    )
    scenario.book(0, one)
    gift = scenario.book(5, other, user_index=0, hold=True)
    assert scenario.perform("confirm", 0, other, booking=gift)[0] == "BookingConfirmed"


def test_who_was_given_a_place_beyond_the_limit_can_still_confirm_their_own(
    scenario: ModelScenario,
) -> None:
    one, other = (
        scenario.add_slot(SlotShape(hold_minutes=5, choice_group="one")) for _ in range(2)
    )
    hold = scenario.book(0, one, hold=True)
    scenario.book(5, other, user_index=0)
    assert scenario.perform("confirm", 0, one, booking=hold)[0] == "BookingConfirmed"


def test_control_without_the_version_a_late_write_is_noticed(
    scenario: ModelScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents, "version_filter", lambda before: {"_id": ObjectId(before.id)})
    slot = scenario.add_slot(SlotShape(capacity=1))
    with pytest.raises(AssertionError, match=r"no order explains"):
        scenario.run_with_lost_lock(
            scenario.operation("book", 0, slot), 0, scenario.operation("book", 1, slot)
        )
    with pytest.raises(AssertionError, match="above capacity"):
        StoredState(scenario.pair, scenario.tokens_by_id).assert_consistent(scenario.now)


def test_control_a_place_that_goes_to_nobody_in_line_is_noticed(
    scenario: ModelScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(promotion, "_accepts_bookings", lambda *_: False)
    slot = scenario.add_slot(SlotShape(capacity=1))
    booking = scenario.book(0, slot)
    scenario.perform("join", 1, slot)
    with pytest.raises(AssertionError):
        scenario.perform("cancel", 0, slot, booking=booking)
    with pytest.raises(AssertionError, match="free beside waiting"):
        StoredState(scenario.pair, scenario.tokens_by_id).assert_consistent(scenario.now)


def test_control_a_line_that_serves_the_last_first_is_noticed(
    scenario: ModelScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    def last_first(slot: Slot, waiting: WaitlistEntry, now: datetime) -> Slot:
        return served(slot, slot.waitlist[slot.loaded_waitlist - 1], now)

    served = promotion._promote
    monkeypatch.setattr(promotion, "_promote", last_first)
    slot = scenario.add_slot(SlotShape(capacity=1))
    booking = scenario.book(0, slot)
    scenario.perform("join", 1, slot)
    scenario.perform("join", 2, slot)
    with pytest.raises(AssertionError, match="places"):
        scenario.perform("cancel", 0, slot, booking=booking)


def test_control_a_key_that_is_forgotten_is_noticed(
    scenario: ModelScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def nothing(*_: object) -> None:
        return None

    monkeypatch.setattr(idempotency, "find_replay", nothing)
    slot = scenario.add_slot(SlotShape(capacity=2))
    act = scenario.operation("book", 0, slot, key="a key")
    scenario.run(act)
    with pytest.raises(AssertionError, match="answered"):
        scenario.run(act, service_index=1)


def test_control_an_act_that_leaves_no_record_is_noticed(
    scenario: ModelScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    def without_its_end(booking: Booking) -> dict[str, Any]:
        document = complete(booking)
        return {**document, "history": document["history"][:-1]}

    complete = booking_documents.ended_booking_to_document
    monkeypatch.setattr(writer, "ended_booking_to_document", without_its_end)
    slot = scenario.add_slot(SlotShape())
    booking = scenario.book(0, slot)
    with pytest.raises(AssertionError, match="confirmed"):
        scenario.perform("cancel", 0, slot, booking=booking)
