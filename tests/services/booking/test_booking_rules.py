"""The arguments of a rule belong to the request of an idempotency key."""

import hashlib
from datetime import datetime

import orjson
import pytest

from slotlock.domain.booking.booking import BookingId, SlotId
from slotlock.domain.booking.booking_outcomes import BookingConfirmed, CancelOutcome, ConfirmOutcome
from slotlock.domain.booking.booking_refusals import KeyReused, NotConfirmed
from slotlock.domain.booking.decision import (
    BookingChangeRequest,
    Decision,
    accept,
    booking_rule,
)
from slotlock.domain.booking.rules.booking_changes import (
    cancel,
    confirm,
    expired_refusal,
    extend,
)
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.booking.user_contexts import UserContexts
from slotlock.services.booking.booking_changes import change_booking
from slotlock.services.idempotency_key import IdempotencyKey
from tests.support.stores.late_store import ADA, LateStore, store

__all__ = ["store"]


@booking_rule("greet", if_ended=expired_refusal)
def greet(
    state: SlotState,
    _users: UserContexts,
    _request: BookingChangeRequest,
    _now: datetime,
    *,
    words: str | None = None,
) -> Decision[ConfirmOutcome]:
    """Accept without a change."""
    (booking,) = state.bookings
    return accept(BookingConfirmed(state.id, booking))


async def test_a_key_belongs_to_the_arguments_of_its_change(store: LateStore) -> None:
    slot_id = await store.insert_slot()
    booking = await store.new_booking(slot_id)

    async def send(key: str, words: str | None) -> object:
        request = BookingChangeRequest(slot_id, booking.id, ADA, key=key)
        return (await change_booking(store.services, greet, request, words=words)).outcome

    first = await send("1", "Hello")
    assert isinstance(first, BookingConfirmed)
    assert await send("1", "Hello") == first
    assert isinstance(await send("1", "Bye"), KeyReused)
    assert isinstance(await send("1", None), KeyReused)
    assert await send("2", None) == first
    assert isinstance(await send("2", "Bye"), KeyReused)


def test_a_change_without_arguments_has_the_hash_of_earlier_versions() -> None:
    request = BookingChangeRequest(SlotId("s"), BookingId("b"), ADA, key="k")
    key = IdempotencyKey.for_change(request, "cancel")
    assert key is not None
    assert key.request_hash == hashlib.sha256(orjson.dumps(["cancel", "b"])).hexdigest()


def test_a_rule_must_have_the_outcome_for_an_ended_booking() -> None:
    def decide(
        _state: SlotState,
        _users: UserContexts,
        _request: BookingChangeRequest,
        _now: datetime,
    ) -> Decision[CancelOutcome]:
        raise NotImplementedError

    def not_confirmed(_booking: object) -> NotConfirmed:
        raise NotImplementedError

    with pytest.raises(TypeError, match="other outcomes"):
        booking_rule("cancel", if_ended=not_confirmed)(decide)


def test_confirming_and_extending_give_a_place_and_cancelling_gives_none() -> None:
    assert [each.gives_place for each in (confirm, extend, cancel)] == [True, True, False]
