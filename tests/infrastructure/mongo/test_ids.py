"""New ids are ObjectIds: unique in all processes, and later ones sort after earlier ones."""

import multiprocessing
from datetime import UTC, datetime, timedelta

from bson import ObjectId

from slotlock.infrastructure.mongo.ids import new_booking_id


def ids_of_a_forked_process() -> list[str]:
    with multiprocessing.get_context("fork").Pool(1) as pool:
        return pool.apply(new_ids)


def new_ids() -> list[str]:
    return [new_booking_id() for _ in range(100)]


def test_an_id_is_an_object_id_of_now() -> None:
    before = datetime.now(UTC) - timedelta(seconds=1)

    created_at = ObjectId(new_booking_id()).generation_time

    assert before <= created_at <= datetime.now(UTC)


def test_no_two_ids_are_equal() -> None:
    ids = {new_booking_id() for _ in range(100_000)}

    assert len(ids) == 100_000
    assert {len(each) for each in ids} == {24}


def test_a_forked_process_has_ids_of_its_own() -> None:
    parts = {each[8:18] for each in new_ids()}

    assert len(parts) == 1
    assert parts.isdisjoint(each[8:18] for each in ids_of_a_forked_process())
