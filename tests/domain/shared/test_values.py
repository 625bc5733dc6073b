"""Values of the domain: they cannot be changed, and are equal if their attributes are."""

from dataclasses import replace
from pathlib import Path

import mypy.api

from slotlock.domain.booking.booking import BookingId, BookingRef, SlotId

CHANGES_A_VALUE = """
from slotlock.domain.booking.booking import BookingRef

def change(ref: BookingRef) -> None:
    ref.slot_id = ref.slot_id
"""


def test_the_type_checker_rejects_a_change_of_a_value(tmp_path: Path) -> None:
    module = tmp_path / "change.py"
    module.write_text(CHANGES_A_VALUE)

    report, errors, status = mypy.api.run(["--cache-dir", str(tmp_path / "cache"), str(module)])

    assert (status, errors) == (1, "")
    assert 'Property "slot_id" defined in "BookingRef" is read-only' in report


def test_values_with_equal_attributes_are_equal_and_have_the_same_hash() -> None:
    ref = BookingRef(SlotId("slot"), BookingId("booking"))

    assert ref == replace(ref)
    assert hash(ref) == hash(replace(ref))
    assert ref != replace(ref, slot_id=SlotId("another"))


def test_a_value_has_no_attributes_but_its_own() -> None:
    assert not hasattr(BookingRef(SlotId("slot"), BookingId("booking")), "__dict__")
