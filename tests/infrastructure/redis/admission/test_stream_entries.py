"""Entries of the admission queue: exactly the fields of a request are read as one."""

from datetime import UTC, datetime

import pytest

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.redis.admission.admission_queue import QueuedBooking
from slotlock.infrastructure.redis.admission.partitions import decode_fields, to_stream_entry

SLOT, USER, BY = "a" * 24, "b" * 24, "c" * 24
REQUEST = QueuedBooking(SlotId(SLOT), UserId(USER), UserId(BY), True, "d" * 32, "e" * 64)


def test_the_fields_of_a_request_are_read_as_that_request() -> None:
    entry = to_stream_entry("1-0", {**REQUEST.fields, "ms": "1700000000123"})
    assert entry.request == REQUEST
    assert entry.requested_at == datetime(2023, 11, 14, 22, 13, 20, 123_000, UTC)


@pytest.mark.parametrize("name", ["slot", "user", "by", "key", "request_hash"])
@pytest.mark.parametrize(
    "value", ["", " ", f"{USER} ", f" {USER}", "B" * 24, "b" * 31 + "٣", "g" * 32]
)
def test_fields_with_another_value_are_no_request(name: str, value: str) -> None:
    assert to_stream_entry("1-0", {**REQUEST.fields, name: value}).request is None


def test_a_space_cannot_move_a_value_to_the_next_field() -> None:
    moved = {**REQUEST.fields, "slot": f"{SLOT} {USER}", "user": ""}
    assert to_stream_entry("1-0", moved).request is None
    joined = {**REQUEST.fields, "slot": f"{SLOT} {USER} {BY}"}
    del joined["user"], joined["by"]
    assert to_stream_entry("1-0", joined).request is None


@pytest.mark.parametrize(("ms", "expected"), [("", 5), ("x", 5), ("7", 7), ("9" * 15, 5)])
def test_an_entry_without_a_valid_time_has_that_of_its_id(ms: str, expected: int) -> None:
    entry = to_stream_entry("5-1", {"ms": ms})
    assert entry.requested_at == datetime(1970, 1, 1, 0, 0, 0, expected * 1000, UTC)


def test_fields_that_are_no_text_are_decoded_with_replacements() -> None:
    assert decode_fields({b"slot": b"\xff", b"key": b"k"}) == {"slot": "�", "key": "k"}
    assert decode_fields(None) == {}
