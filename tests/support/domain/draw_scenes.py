"""Random campaigns before a draw: slots, users with earlier bookings everywhere, and wishes."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import TypeVar

from slotlock.domain.booking.booking import BookingAction, BookingStatus, HistoryEntry, SlotId
from slotlock.domain.booking.slot import SlotStatus
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.booking.user_contexts import OtherBooking, UserContext, UserContexts
from slotlock.domain.campaigns.terms import CampaignId, CampaignTerms, GroupLimit, NoShowLimit
from slotlock.domain.draws.basis import DrawId, DrawMethod
from slotlock.domain.draws.draw import Draw, DrawSettings, close, open_draw
from slotlock.domain.draws.wish_closing import ClosedWishes, Wishes, close_wishes
from slotlock.domain.schedule.meetings import Meeting
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.users.user import UserId
from tests.support.domain.builders import HOUR, NOW, book_place, booking_request, build_slot
from tests.support.domain.campaign_builders import build_terms, contexts

Value = TypeVar("Value")

GROUPS = ("5a", "5b", "choir")
LIMITS = (GroupLimit("5*", 2), GroupLimit("5a", 1), GroupLimit("choir", 1))
SECRET_LIMIT = GroupLimit("secret group", 1)
ORGANIZER = UserId("olga")
EXPIRED = HistoryEntry(
    NOW - HOUR, ORGANIZER, BookingAction.HELD, BookingStatus.HELD, NOW - HOUR / 2
)
NO_SHOW = HistoryEntry(NOW, ORGANIZER, BookingAction.NO_SHOW, BookingStatus.CONFIRMED)


@value_object
class DrawScene:
    """A campaign with these slots, users with bookings there and elsewhere, and their wishes."""

    terms: CampaignTerms
    states: tuple[SlotState, ...]
    elsewhere: tuple[SlotState, ...]
    users: UserContexts
    wishes: tuple[Wishes, ...]

    def close(self) -> ClosedWishes:
        """Return the basis of the draw."""
        settings = DrawSettings(DrawMethod.ROUNDS, NOW)
        draw = open_draw(DrawId("draw"), self.terms.campaign_id, settings, ORGANIZER, NOW, "seed")
        closed = close(draw, None, NOW)
        assert isinstance(closed, Draw)
        return close_wishes(
            closed, self.terms, self.states, self.users, self.wishes, (), "salt", NOW
        )

    @property
    def hidden(self) -> tuple[SlotState, ...]:
        """The slots of which nothing may be public: others than those that can be wished for."""
        return (*self.elsewhere, *(state for state in self.states if not is_open(state)))


def is_open(state: SlotState) -> bool:
    """Return whether wishes for a slot count."""
    return state.slot.status is SlotStatus.PUBLISHED and state.slot.start > NOW


def build_scene(random: Random) -> DrawScene:
    """Return a small campaign and users of whom many have bookings that count."""
    terms = build_terms(
        max_bookings=random.choice((None, None, 1, 2, 3)),
        forbid_overlap=random.random() < 0.6,
        group_limits=_some(random, LIMITS, 0.3),
        eligible_groups=random.choice(((), (), (("5a", "5b"),))),
        no_show_limit=random.choice((None, None, NoShowLimit(1, 9))),
    )
    elsewhere_terms = build_terms(
        campaign_id=CampaignId("hidden campaign"),
        published=False,
        forbid_overlap=random.random() < 0.8,
        max_bookings=1,
    )
    slots = [_build_slot(random, f"open-{n}", terms, 0) for n in range(random.randint(1, 6))]
    slots += [
        replace(each, slot=replace(each.slot, status=random.choice(list(SlotStatus)[::2])))
        for each in (_build_slot(random, f"draft-{n}", terms, 11) for n in range(2))
    ]
    slots.insert(0, _started(_build_slot(random, "started", terms, 13)))
    elsewhere = [_build_slot(random, f"else-{n}", elsewhere_terms, 17) for n in range(4)]
    names = [UserId(f"user-{n}") for n in range(random.randint(1, 8))]
    users = {name: UserContext(name, _some(random, GROUPS, 0.4)) for name in names}
    booked = [_with_bookings(random, state, users) for state in (*slots, *elsewhere)]
    wishes, left = [], list(names)
    while left:
        size = random.choice((1, 1, 1, 2, 3))
        team, left = left[:size], left[size:]
        ranked = random.sample([state.id for state in slots], random.randint(0, len(slots)))
        wishes.append(Wishes(tuple(team), tuple(ranked), f"salt {team[0]}", team[0], NOW))
    count = len(slots)
    known = contexts(*users.values())
    return DrawScene(terms, tuple(booked[:count]), tuple(booked[count:]), known, tuple(wishes))


def _build_slot(random: Random, name: str, terms: CampaignTerms, minute: int) -> SlotState:
    """Return a slot with meetings that begin and end at this minute of half an hour."""
    starts = [
        NOW + timedelta(days=day, minutes=30 * random.randint(1, 5) + minute)
        for day in random.choice(((1,), (1,), (2,), (1, 2)))
    ]
    meetings = tuple(Meeting(each, each + random.choice((1, 1, 2)) * HOUR / 2) for each in starts)
    choices = (None, None, "week", "language", f"choice of {name}")
    is_elsewhere = terms.campaign_id == "hidden campaign"
    return build_slot(
        random.randint(1, 3),
        id=SlotId(f"id-of-{name}"),
        title=f"title of {name}",
        start=meetings[0].start,
        end=meetings[-1].end,
        meetings=meetings,
        terms=terms,
        choice_group=random.choice(choices),
        group_limits=(SECRET_LIMIT,) if is_elsewhere else _some(random, LIMITS, 0.2),
        only_for_groups=random.choice(((), (), (), ("5*",), ("5b", "choir"))),
    )


def _started(state: SlotState) -> SlotState:
    meetings = (Meeting(NOW - HOUR, NOW + HOUR),)
    return replace(
        state,
        slot=replace(state.slot, start=NOW - HOUR, end=NOW + HOUR, meetings=meetings),
    )


def _with_bookings(random: Random, state: SlotState, users: dict[UserId, UserContext]) -> SlotState:
    """Book places for some users as an organizer does, whatever the limits are."""
    published = replace(state, slot=replace(state.slot, status=SlotStatus.PUBLISHED))
    count = random.choice((0, 0, 1, 1, 2))
    for name in random.sample(list(users), min(count, len(users), state.slot.capacity)):
        request = booking_request(name, organizer=ORGANIZER)
        after, booking = book_place(published, request, users=contexts(*users.values()))
        if random.random() < 0.1:
            booking = replace(booking, history=(EXPIRED,))  # a reader of slots leaves it out
        else:
            published = after
        if state.slot.start < NOW and booking.history != (EXPIRED,) and random.random() < 0.5:
            booking = replace(booking, history=(*booking.history, NO_SHOW))
        known = users[name]
        other = OtherBooking(booking, state.slot)
        users[name] = replace(known, bookings=(*known.bookings, other))
    return replace(published, slot=state.slot)


def _some(random: Random, values: Sequence[Value], share: float) -> tuple[Value, ...]:
    return tuple(each for each in values if random.random() < share)
