"""The growth cases differ in what grows, and their runs leave the data of others alone."""

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from bson import ObjectId
from pymongo import MongoClient

from bench.comparison.cpu import CpuTime
from bench.comparison.load import Load
from bench.comparison.ratios import Spread
from bench.comparison.targets.slots import (
    SLOTLOCK_SHAPE,
    Document,
    SlotRange,
    Tally,
    TargetSlots,
    slotlock_document,
)
from bench.growth.cases import Case, campaign_cases, campaign_shape, roster_cases, seed
from bench.growth.report import cost, rate, ratio_to_smallest
from bench.growth.runs import GrowthRun
from bench.growth.updates import BATCH_SIZE, SLOTS, VARIANTS, seed_variant
from slotlock.devserver.embedded import EmbeddedServers
from slotlock.infrastructure.mongo.slots.slot_documents import to_slot_state

FIRST_DAY = datetime(2031, 5, 1, tzinfo=UTC)


@pytest.fixture
def client(servers: EmbeddedServers) -> Iterator[MongoClient[Document]]:
    """Yield a client of MongoDB."""
    with MongoClient[Document](servers.mongo_url, tz_aware=True) as opened:
        yield opened


def in_database(case: Case, client: MongoClient[Document], slots: int) -> Case:
    """Return the case with fewer slots in an empty database."""
    client.drop_database(case.database_name)
    return Case(
        case.group,
        case.size,
        case.database_name,
        SlotRange(0, slots, case.slots.capacity),
        case.shape,
        case.workloads,
        campaign_users=case.campaign_users,
    )


def book_once(client: MongoClient[Document], case: Case) -> None:
    """Book a place in the first slot."""
    booking = {"id": ObjectId(), "user": ObjectId(), "at": FIRST_DAY}
    client[case.database_name]["slots"].update_one(
        {"_id": ObjectId(f"{0:024x}")}, {"$push": {"bookings": booking}, "$inc": {"remaining": -1}}
    )


def test_the_roster_of_a_growth_case_is_not_counted_and_stays(
    client: MongoClient[Document],
) -> None:
    case = in_database(roster_cases((100,))[0], client, slots=3)
    slots = seed(case, client, FIRST_DAY)
    assert slots.tally() == Tally(0, 0, 0)
    book_once(client, case)
    assert slots.tally() == Tally(1, 1, 0)
    slots.free_all()
    assert slots.tally() == Tally(0, 0, 0)
    for document in client[case.database_name]["slots"].find():
        assert len(to_slot_state(document).bookings) == 100


def test_the_users_of_a_campaign_have_bookings_that_a_run_leaves_alone(
    client: MongoClient[Document],
) -> None:
    case = in_database(campaign_cases((250,))[0], client, slots=3)
    slots = seed(case, client, FIRST_DAY)
    assert slots.tally() == Tally(0, 0, 0)
    book_once(client, case)
    slots.free_all()
    documents = list(client[case.database_name]["slots"].find())
    states = [to_slot_state(document) for document in documents]
    assert sorted(state.booked_count for state in states) == [0, 0, 0, 50, 100, 100]
    users = {booking.user_id for state in states for booking in state.bookings}
    assert len(users) == 250
    assert client[case.database_name]["users"].count_documents({}) == 250
    assert all(state.slot.terms and state.slot.terms.published for state in states)


def test_the_slots_of_a_campaign_differ_from_others_in_the_campaign_only() -> None:
    document = campaign_shape().document(3, FIRST_DAY, 20)
    assert document.pop("campaign")["maxBookings"] == 10_000
    assert document == slotlock_document(3, FIRST_DAY, 20)


def growth_run(number: int, size: int, requests: int, app_s: float) -> GrowthRun:
    """Return a run with this CPU time of the app."""
    counts = Load(requests, 1_000_000, 1, 2, 3, {}, {}, {}, "", 0.0)
    return GrowthRun(number, "slots", size, "one", counts, CpuTime((app_s,), 0.2, 0.1), [])


def test_growth_is_the_cost_divided_by_that_of_the_smallest_case_in_the_same_round() -> None:
    runs = [growth_run(1, 10, 100, 0.7), growth_run(2, 10, 100, 1.7)]
    runs += [growth_run(2, 1000, 50, 1.7), growth_run(1, 1000, 100, 1.7)]
    assert runs[0].cost_us == pytest.approx(10_000)
    spread = ratio_to_smallest(runs, 1000, cost)
    assert (spread.low, spread.high) == pytest.approx((2, 2))
    assert ratio_to_smallest(runs, 1000, rate) == Spread(0.75, 0.5, 1)


def test_the_measured_updates_book_slots_again_and_again(client: MongoClient[Document]) -> None:
    variant = VARIANTS[1]
    client.drop_database("growth_updates")
    booked = seed_variant(variant, client["growth_updates"], FIRST_DAY)
    for _ in range(3):
        reply = client["growth_updates"].command("update", "slots", updates=booked.updates())
        assert reply["nModified"] == BATCH_SIZE
    tally = TargetSlots(client, "growth_updates", SLOTLOCK_SHAPE, FIRST_DAY).tally()
    assert tally == Tally(SLOTS * variant.roster + 3 * BATCH_SIZE, SLOTS, 0)
    indexes = {"_id_", *SLOTLOCK_SHAPE.indexes} - variant.dropped
    assert set(booked.slots.index_information()) == indexes
