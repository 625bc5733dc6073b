"""Clients see each refusal as the type of the same name, with its own code."""

import pytest

from slotlock.domain.booking import refusals
from slotlock.graphql.booking.refusals.present import BookingCommandRefusal, present_booking_refusal
from slotlock.graphql.core.result_view import ResultView
from tests.support.domain.campaign_builders import build_campaign_slot

SLOT = build_campaign_slot()


@pytest.mark.parametrize(
    "refusal",
    [
        refusals.SlotFull(SLOT.id),
        refusals.SlotCancelled(SLOT.id),
        refusals.NotEligible(SLOT.id),
        refusals.QueueOnly(SLOT.id),
        refusals.SlotNotFull(SLOT.id),
        refusals.NotWaiting(SLOT.id),
    ],
    ids=lambda refusal: type(refusal).__name__,
)
def test_a_refusal_with_a_slot_is_shown_as_the_type_of_its_name(
    refusal: BookingCommandRefusal,
) -> None:
    shown = present_booking_refusal(refusal, ResultView(None, {SLOT.id: SLOT}))
    name = type(refusal).__name__
    assert type(shown).__name__ == name
    assert shown.code.name.title().replace("_", "") == name
