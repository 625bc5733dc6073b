"""Campaign limits hold under random operations in two processes, in any order and at once."""

import asyncio
import os
import random
from collections import Counter
from collections.abc import Coroutine
from datetime import datetime, timedelta
from itertools import combinations, count
from typing import Any

import pytest
from bson import ObjectId

from slotlock.domain.booking.booking import BookingId, SlotId
from slotlock.domain.booking.decision import BookingChangeRequest
from slotlock.domain.booking.rules.booking_changes import cancel, confirm
from slotlock.domain.booking.slot import SlotKind
from slotlock.domain.campaigns.campaign import CampaignDraft, CampaignPatch, CampaignSaved
from slotlock.domain.campaigns.terms import CampaignId, GroupLimit
from slotlock.domain.schedule.meetings import Meeting, first_overlap
from slotlock.domain.schedule.timetables import Timetable, Weekday, WeeklyMeeting
from slotlock.domain.slots.slot_outcomes import SlotSaved
from slotlock.domain.users.user import Caller, UserId
from slotlock.infrastructure.mongo.slots import write_set
from slotlock.infrastructure.mongo.slots.slot_documents import to_slot_state
from slotlock.services.booking import book, waitlist
from slotlock.services.booking.booking_changes import change_booking
from slotlock.services.booking.move import move
from slotlock.services.campaigns import campaigns
from slotlock.services.container import Services
from slotlock.services.slots import editing
from slotlock.services.workers import hold_sweeper
from tests.support.clients.client import Json
from tests.support.domain.builders import build_draft
from tests.support.domain.invariants import assert_valid_slot
from tests.support.model.operations import MORNING
from tests.support.model.service_pair import ServicePair
from tests.support.model.stored_state import booking_history

Operation = Coroutine[Any, Any, Any]

STEPS, SEEDS = 120, 2 + int(os.environ.get("TEST_CAMPAIGN", "0"))
CLASSES = (("5a", "grade:5"), ("5a", "grade:5"), ("5a", "grade:6"), ("5b", "grade:5"), ("5b",))
ORGANIZER = UserId("e" * 24)
HOUR = timedelta(hours=1)
EVERY_DAY = tuple(WeeklyMeeting(day, MORNING.time(), (MORNING + HOUR).time()) for day in Weekday)


class Rush:
    """Two campaigns with four slots each, some of which overlap, and random operations on them."""

    def __init__(self, pair: ServicePair, seed: int) -> None:
        pair.reset()
        self.pair, self.random = pair, random.Random(seed)
        self.outcomes: Counter[str] = Counter()
        for number, groups in enumerate(CLASSES):
            self.set_groups(number, groups)
        self.campaigns = [
            self.campaign(max_bookings=2, forbid_overlap=True, group_limits=(GroupLimit("5*", 1),)),
            self.campaign(
                max_bookings=3, forbid_overlap=True, eligible_groups=(("grade:5", "grade:6"),)
            ),
        ]
        self.slots = [
            self.slot(number, campaign_id) for campaign_id in self.campaigns for number in range(4)
        ]

    def run(self, operation: Operation) -> Any:
        """Run one operation and return its outcome."""
        return self.pair.runner.run(operation)

    def set_groups(self, number: int, groups: tuple[str, ...]) -> None:
        """Give one of the users these groups."""
        user = {"_id": ObjectId(self.pair.callers[number].user_id)}
        self.pair.database["users"].update_one(user, {"$set": {"groups": list(groups)}})

    def campaign(self, **rules: Any) -> CampaignId:
        """Create a campaign that is open for days."""
        closes_at = MORNING + timedelta(days=9)
        draft = CampaignDraft("A campaign", MORNING, closes_at, published=True, **rules)
        made = self.run(campaigns.create(self.pair.services[0], draft, ORGANIZER))
        assert isinstance(made, CampaignSaved)
        return made.campaign.id

    def slot(self, number: int, campaign_id: CampaignId) -> SlotId:
        """Create a slot; the first is a course that meets every day, the others overlap in part."""
        first = (MORNING + timedelta(days=10)).date()
        start = MORNING + timedelta(days=10) + number * HOUR / 2
        course = Timetable(first, first + timedelta(days=3), EVERY_DAY)
        draft = build_draft(
            title="A slot",
            start=start if number else None,
            end=start + HOUR * 0.75 if number else None,
            time_zone="UTC",
            capacity=(3, 2, 1, 2)[number],
            location=None,
            kind=SlotKind.COURSE,
            published=True,
            waitlist_offer_minutes=10 if number == 2 else None,
            timetable=None if number else course,
        )
        stored = self.run(editing.create(self.pair.services[0], draft, ORGANIZER, campaign_id))
        assert isinstance(stored.outcome, SlotSaved)
        return stored.outcome.slot_id

    def step(self) -> None:
        """Run some operations at once, often several of one user, or move time, edit or sweep."""
        choice = self.random.random()
        if choice < 0.06:
            self.pair.clock.advance(timedelta(minutes=self.random.choice((1, 6, 12))))
        elif choice < 0.1:
            self.run(hold_sweeper.sweep(self.pair.services[0]))
        elif choice < 0.14:
            self.set_groups(self.random.randrange(5), self.random.choice(CLASSES))
        elif choice < 0.22:
            changes = CampaignPatch(published=self.random.random() < 0.7)
            self.run(
                campaigns.edit(
                    self.pair.services[1], self.random.choice(self.campaigns), changes, ORGANIZER
                )
            )
        else:
            self.together(self.random.choice((1, 2, 2, 4)))

    def together(self, size: int) -> None:
        """Run some operations at once, alternating between both services."""
        one = self.random.choice(self.pair.callers[:5])
        users = [
            self.random.choice((one, one, self.random.choice(self.pair.callers[:5])))
            for _ in range(size)
        ]
        if self.random.random() < 0.2:
            self.pair.delete_locks()
        operations = [
            self.random_operation(self.pair.services[n % 2], user) for n, user in enumerate(users)
        ]

        async def all_of_them() -> list[Any]:
            return await asyncio.gather(*operations)

        self.outcomes.update(type(result.outcome).__name__ for result in self.run(all_of_them()))

    def random_operation(self, services: Services, user: Caller) -> Operation:
        """Return a random operation of a user."""
        slot_id, other = self.random.sample(self.slots, 2)
        wait_s = self.random.choice((0.0, 5.0))
        options = book.BookingOptions(self.random.random() < 0.3, wait_s)
        live = self.live_of(user)
        verb = self.random.random()
        if live and verb < 0.35:
            here, booking_id = self.random.choice(live)
            command = BookingChangeRequest(here, booking_id, user, wait_s)
            if verb < 0.15:
                return change_booking(services, cancel, command)
            if verb < 0.3:
                return move(services, command, slot_id)
            return change_booking(services, confirm, command)
        if verb < 0.5:
            return waitlist.join(services, slot_id, user.user_id, wait_s)
        if verb < 0.55:
            return waitlist.leave(services, slot_id, user.user_id, wait_s)
        if verb < 0.65:
            claims = [(slot_id, user.user_id), (other, user.user_id)]
            return book.book_slots(services, user, claims, options)
        return book.book_slot(services, user, slot_id, user.user_id, options)

    def live_of(self, user: Caller) -> list[tuple[SlotId, BookingId]]:
        """Return the live bookings of a user."""
        found = self.pair.database["slots"].find({"bookings.user": ObjectId(user.user_id)})
        return [
            (SlotId(str(slot["_id"])), BookingId(str(one["id"])))
            for slot in found
            for one in slot["bookings"]
            if str(one["user"]) == user.user_id
        ]

    def check(self) -> None:
        """Assert what must hold after every step."""
        now = self.pair.clock.now
        slots = list(self.pair.database["slots"].find())
        for slot in slots:
            assert_limits_of(slot, now)
        for user in self.pair.callers:
            others = [
                slot
                for slot in slots
                for one in slot["bookings"]
                if str(one["user"]) == user.user_id and one.get("heldUntil", now + HOUR) > now
            ]
            assert_limits_on(others)


def assert_limits_of(slot: Json, now: datetime) -> None:
    """Assert capacity, group limits, eligibility and opening times of a slot."""
    terms = slot["campaign"]
    assert_valid_slot(to_slot_state({**slot, "waitlist": []}))
    users = [one["user"] for one in (*slot["bookings"], *slot["waitlist"])]
    assert len(set(users)) == len(users), f"twice: {slot}"
    counts = Counter(group for one in slot["bookings"] for group in one.get("groups", ()))
    for limit in terms["groupLimits"]:
        prefix = limit["group"].removesuffix("*")
        over = [g for g, n in counts.items() if g.startswith(prefix) and n > limit["limit"]]
        assert not over, f"too many of {over}: {slot}"
    for one in slot["bookings"]:
        assert all(
            set(groups) & set(one.get("groups", ())) for groups in terms["eligibleGroups"]
        ), one
        assert terms["opensAt"] <= booking_history(one)[0].at < terms["closesAt"], one


def assert_limits_on(slots: list[Json]) -> None:
    """Assert that a user has no more bookings than allowed, and none that overlap."""
    counts = Counter(slot["campaign"]["id"] for slot in slots)
    for slot in slots:
        assert counts[slot["campaign"]["id"]] <= slot["campaign"]["maxBookings"], (
            f"too many: {slots}"
        )
    for one, other in combinations(slots, 2):
        assert first_overlap(times(one), times(other)) is None, f"overlap: {one} and {other}"


def times(slot: Json) -> list[Meeting]:
    """Return the meetings of a slot."""
    meetings = slot.get("meetings") or [slot]
    return [Meeting(meeting["start"], meeting["end"]) for meeting in meetings]


def play(rush: Rush, steps: int, *, operations_only: bool = False) -> None:
    """Run this many steps, or only operations, and check everything after each."""
    for _ in range(steps):
        if operations_only:
            rush.together(6)
        else:
            rush.step()
        rush.check()


@pytest.mark.timeout(7200 if "TEST_CAMPAIGN" in os.environ else 120)
def test_campaign_limits_hold_under_random_operations(pair: ServicePair) -> None:
    needed = {"Booked", "LimitReached", "TimeConflict", "GroupFull", "NotEligible", "SlotNotFound"}
    needed |= {"BookingMoved", "WaitlistJoined", "AllBooked", "NoneBooked", "BookingConfirmed"}
    received: Counter[str] = Counter()
    for seed in count():
        if seed >= SEEDS and needed <= received.keys():
            break
        rush = Rush(pair, seed)
        play(rush, STEPS, operations_only=seed == 0)
        received += rush.outcomes


def test_control_without_user_versions_a_user_exceeds_the_limit(
    pair: ServicePair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(write_set, "user_version_updates", lambda *_: iter(()))
    with pytest.raises(AssertionError, match=r"too many: |overlap: "):
        play(Rush(pair, 9), 2000, operations_only=True)
