"""The cases: databases with more and more slots, rosters or users, and apps with more processes."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial

from bson import ObjectId
from pymongo import MongoClient

from bench.comparison.targets.slots import (
    BATCH_SIZE,
    SLOTLOCK_SHAPE,
    Document,
    DocumentShape,
    SlotRange,
    TargetSlots,
    slotlock_document,
)
from slotlock.domain.campaigns.terms import CampaignId, CampaignTerms
from slotlock.domain.users.user import Role
from slotlock.infrastructure.batching import chunked
from slotlock.infrastructure.mongo.document_parts import terms_to_document
from slotlock.infrastructure.mongo.users.user_documents import to_new_document

BOOK, READ, LIST = "spread", "one", "list"
# Enough for a run that books every slot several times.
PLACES = 20
ROSTER_SLOTS = 1_000
# The roster of a case grows by the bookings of a run.
ROSTER_PLACES_LEFT = 5_000
CAMPAIGN_SLOTS = 20_000
# The slots of a campaign that its users have booked; no request is for them.
FULL_SLOTS_FIRST = 1_000_000
FULL_SLOT_PLACES = 100
CAMPAIGN_ID = CampaignId("c" * 24)


@dataclass(frozen=True, slots=True)
class Case:
    """A database and an app; `slots` are those that requests are for.

    `size` is what grows: within a group, the cases differ in nothing else.
    """

    group: str
    size: int
    database_name: str
    slots: SlotRange
    shape: DocumentShape
    workloads: tuple[str, ...]
    processes: int = 2
    campaign_users: int = 0

    @property
    def name(self) -> str:
        """The name in the table, and that of the log."""
        return f"{self.group} {self.size:,}"


def slot_cases(counts: tuple[int, ...]) -> list[Case]:
    """Return cases with so many slots."""
    return [
        Case(
            "slots",
            count,
            f"growth_slots_{count}",
            SlotRange(0, count, PLACES),
            SLOTLOCK_SHAPE,
            (BOOK, READ, LIST),
        )
        for count in counts
    ]


def process_cases(counts: tuple[int, ...], slots: int) -> list[Case]:
    """Return cases with so many processes on the same slots."""
    return [
        Case(
            "processes",
            count,
            "growth_processes",
            SlotRange(0, slots, PLACES),
            SLOTLOCK_SHAPE,
            (BOOK, READ, LIST),
            processes=count,
        )
        for count in counts
    ]


def roster_cases(rosters: tuple[int, ...]) -> list[Case]:
    """Return cases with so many bookings in each slot."""
    return [
        Case(
            "roster",
            roster,
            f"growth_roster_{roster}",
            SlotRange(0, ROSTER_SLOTS, roster + ROSTER_PLACES_LEFT),
            roster_shape(roster),
            (BOOK, READ),
        )
        for roster in rosters
    ]


def campaign_cases(user_counts: tuple[int, ...]) -> list[Case]:
    """Return cases with so many users who booked in the same campaign."""
    return [
        Case(
            "campaign users",
            count,
            f"growth_campaign_{count}",
            SlotRange(0, CAMPAIGN_SLOTS, PLACES),
            campaign_shape(),
            (BOOK, READ),
            campaign_users=count,
        )
        for count in user_counts
    ]


def roster_shape(roster: int) -> DocumentShape:
    """Return the shape of slots that have so many bookings when they are free."""
    return replace(
        SLOTLOCK_SHAPE,
        document=partial(_roster_document, roster),
        free=[
            {
                "$set": {
                    "remaining": {"$subtract": ["$capacity", roster]},
                    "version": 1,
                    "bookings": {"$slice": ["$bookings", roster]},
                }
            }
        ],
        booked={f"bookings.{roster}": {"$exists": True}},
        booking_count={"$subtract": [{"$size": "$bookings"}, roster]},
    )


def campaign_shape() -> DocumentShape:
    """Return the shape of the slots of a campaign that limits the bookings of each user."""
    first_full = ObjectId(f"{FULL_SLOTS_FIRST:024x}")
    return replace(
        SLOTLOCK_SHAPE,
        document=_campaign_document,
        booked={**SLOTLOCK_SHAPE.booked, "_id": {"$lt": first_full}},
    )


def seed(case: Case, client: MongoClient[Document], first_day: datetime) -> TargetSlots:
    """Fill the database of a case, unless another case has done so, and return its slots."""
    slots = TargetSlots(client, case.database_name, case.shape, first_day)
    if client[case.database_name]["slots"].find_one() is None:
        slots.seed(case.slots)
        if case.campaign_users:
            _seed_campaign_users(case, client, first_day)
    return slots


def _seed_campaign_users(case: Case, client: MongoClient[Document], first_day: datetime) -> None:
    database = client[case.database_name]
    numbers = range(case.campaign_users)
    for batch in chunked(numbers, BATCH_SIZE):
        database["users"].insert_many([_user_document(number) for number in batch])
    database["slots"].insert_many(_full_slots(case.campaign_users, first_day))


def _full_slots(users: int, first_day: datetime) -> Iterator[Document]:
    for index, start in enumerate(range(0, users, FULL_SLOT_PLACES)):
        booked = range(start, min(start + FULL_SLOT_PLACES, users))
        document = _campaign_document(FULL_SLOTS_FIRST + index, first_day, len(booked))
        bookings = [_booking(number, first_day) for number in booked]
        yield {**document, "bookings": bookings, "remaining": 0}


def _roster_document(roster: int, number: int, first_day: datetime, capacity: int) -> Document:
    bookings = [_booking(number * roster + index, first_day) for index in range(roster)]
    document = slotlock_document(number, first_day, capacity)
    return {**document, "bookings": bookings, "remaining": capacity - roster}


def _campaign_document(number: int, first_day: datetime, capacity: int) -> Document:
    terms = CampaignTerms(
        CAMPAIGN_ID,
        version=1,
        published=True,
        opens_at=datetime(2020, 1, 1, tzinfo=UTC),
        closes_at=datetime(3000, 1, 1, tzinfo=UTC),
        max_bookings=10_000,
    )
    return {
        **slotlock_document(number, first_day, capacity),
        "campaign": terms_to_document(terms),
    }


def _booking(number: int, at: datetime) -> Document:
    """Return the booking of a user of its own."""
    return {"id": ObjectId(), "user": ObjectId(f"{number:024x}"), "at": at}


def _user_document(number: int) -> Document:
    email = f"user-{number}@slotlock.test"
    document = to_new_document("Somebody", email, Role.MEMBER, None, datetime.now(UTC))
    return {**document, "_id": ObjectId(f"{number:024x}")}
