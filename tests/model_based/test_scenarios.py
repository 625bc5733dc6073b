"""Bugs that the stateful test once found, and proof that the model detects missing guards."""

from datetime import datetime
from typing import Any

import pytest
from bson import ObjectId

from slotlock.domain.booking.booking import Booking, WaitlistEntry
from slotlock.domain.booking.rules import promotion
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.booking.user_contexts import UserContexts
from slotlock.infrastructure.mongo.idempotency.records import IdempotencyRecords
from slotlock.infrastructure.mongo.slots import booking_documents, slot_document_updates, write_set
from slotlock.services.commands import idempotency
from tests.support.model.checker import SlotShape
from tests.support.model.scenario import ModelScenario
from tests.support.model.service_pair import ServicePair
from tests.support.model.stored_state import StoredState


@pytest.fixture
def scenario(pair: ServicePair) -> ModelScenario:
    """Return a model checker with an empty state."""
    return ModelScenario(pair)


def test_an_expired_hold_is_not_moved_to_its_own_slot(scenario: ModelScenario) -> None:
    slot = scenario.add_slot(SlotShape(hold_minutes=5))
    hold = scenario.book(0, slot, hold=True)
    scenario.advance_clock(5)
    outcome = scenario.perform("move", 0, slot, booking=hold, target_slot_id=slot)
    assert outcome[0] == "HoldExpired"


def test_a_hold_that_expires_during_a_move_is_reported_as_expired(
    scenario: ModelScenario,
) -> None:
    slot, other = scenario.add_slot(SlotShape(hold_minutes=5)), scenario.add_slot(SlotShape())
    hold = scenario.book(0, slot, hold=True)
    move = scenario.operation("move", 0, slot, booking=hold, target_slot_id=other)
    scenario.run_with_lost_lock(move, 5, scenario.operation("edit", 5, slot, number=3))


def test_a_late_confirmation_leaves_one_booking_per_choice_group(
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


def test_a_user_who_waits_in_two_slots_of_a_choice_group_is_promoted_in_one(
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


def test_a_promotion_counts_for_the_choice_limit_of_a_claim_in_the_same_command(
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


def test_a_booking_in_a_cancelled_slot_does_not_use_up_the_choice(scenario: ModelScenario) -> None:
    one, other = (scenario.add_slot(SlotShape(choice_group="one")) for _ in range(2))
    scenario.book(0, one)
    scenario.perform("cancel_slot", 5, one)
    scenario.book(0, other)


def test_control_the_model_detects_a_late_write_without_a_version_check(
    scenario: ModelScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        slot_document_updates, "version_filter", lambda before: {"_id": ObjectId(before.id)}
    )
    slot = scenario.add_slot(SlotShape(capacity=1))
    with pytest.raises(AssertionError, match=r"no order explains"):
        scenario.run_with_lost_lock(
            scenario.operation("book", 0, slot), 0, scenario.operation("book", 1, slot)
        )
    with pytest.raises(AssertionError, match="above capacity"):
        StoredState(scenario.pair, scenario.tokens_by_id).assert_consistent(scenario.now)


def test_control_the_model_detects_a_missing_promotion(
    scenario: ModelScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(promotion, "_accepts_bookings", lambda *_: False)
    slot = scenario.add_slot(SlotShape(capacity=1))
    booking = scenario.book(0, slot)
    scenario.perform("join", 1, slot)
    with pytest.raises(AssertionError):
        scenario.perform("cancel", 0, slot, booking=booking)
    with pytest.raises(AssertionError, match="free place although users wait"):
        StoredState(scenario.pair, scenario.tokens_by_id).assert_consistent(scenario.now)


def test_control_the_model_detects_a_promotion_in_the_wrong_order(
    scenario: ModelScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    def promote_last(
        slot: SlotState, users: UserContexts, entry: WaitlistEntry, now: datetime
    ) -> SlotState:
        return original_promote(slot, users, slot.waitlist[slot.loaded_waitlist - 1], now)

    original_promote = promotion._promote
    monkeypatch.setattr(promotion, "_promote", promote_last)
    slot = scenario.add_slot(SlotShape(capacity=1))
    booking = scenario.book(0, slot)
    scenario.perform("join", 1, slot)
    scenario.advance_clock(1)
    scenario.perform("join", 2, slot)
    with pytest.raises(AssertionError, match="overtaken"):
        scenario.perform("cancel", 0, slot, booking=booking)


def test_control_the_model_detects_a_forgotten_idempotency_key(
    scenario: ModelScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def find_no_replay(*_: object) -> None:
        return None

    async def find_no_records(_: object, record_ids: list[str]) -> list[None]:
        return [None for _ in record_ids]

    monkeypatch.setattr(idempotency, "find_replay", find_no_replay)
    monkeypatch.setattr(IdempotencyRecords, "find_each", find_no_records)
    slot = scenario.add_slot(SlotShape(capacity=2))
    operation = scenario.operation("book", 0, slot, key="a key")
    scenario.run(operation)
    with pytest.raises(AssertionError, match="returned"):
        scenario.run(operation, service_index=1)


def test_control_the_model_detects_a_missing_history_entry(
    scenario: ModelScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    def to_document_without_last_entry(booking: Booking) -> dict[str, Any]:
        document = original_to_document(booking)
        return {**document, "history": document["history"][:-1]}

    original_to_document = booking_documents.ended_booking_to_document
    monkeypatch.setattr(write_set, "ended_booking_to_document", to_document_without_last_entry)
    slot = scenario.add_slot(SlotShape())
    booking = scenario.book(0, slot)
    with pytest.raises(AssertionError, match="confirmed"):
        scenario.perform("cancel", 0, slot, booking=booking)
