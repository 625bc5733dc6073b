"""The states of a draw, and the acts that lead from one to the next."""

from dataclasses import replace
from datetime import datetime

import pytest

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.slot import SlotStatus
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.booking.user_contexts import UserContext
from slotlock.domain.campaigns.terms import CampaignId, GroupLimit
from slotlock.domain.draws.basis import DrawId, DrawMethod
from slotlock.domain.draws.draw import (
    Draw,
    DrawAct,
    DrawSettings,
    DrawState,
    WrongDrawState,
    cancel,
    close,
    configure,
    open_draw,
    publish,
    reopened,
    supersede,
    with_record,
    with_root,
    with_seed,
)
from slotlock.domain.draws.drawing import WishOutcome, WishResult
from slotlock.domain.draws.wish_closing import (
    ClosedWishes,
    Wishes,
    close_wishes,
    lacking_slots,
    promised_places,
)
from slotlock.domain.shared.validation import InvalidInput
from slotlock.domain.users.user import UserId
from tests.support.domain.builders import HOUR, NOW, book_users, build_slot, with_facts
from tests.support.domain.campaign_builders import (
    build_campaign_slot,
    build_terms,
    contexts,
    user_in_groups,
    user_with_booking,
)

OLGA, SEED = UserId("olga"), "a seed"
SETTINGS = DrawSettings(DrawMethod.ROUNDS, NOW + HOUR)
COLLECTING = open_draw(DrawId("d"), CampaignId("c"), SETTINGS, OLGA, NOW, SEED)


def draw_in(state: DrawState) -> Draw:
    """Return a draw in this state."""
    draw: object = COLLECTING
    if state is not DrawState.COLLECTING:
        draw = close(COLLECTING, OLGA, NOW)
        assert isinstance(draw, Draw)
        draw = with_root(draw, "root", 1, NOW)
    if state in (DrawState.DRAWN, DrawState.PUBLISHED):
        assert isinstance(draw, Draw)
        draw = with_seed(draw, OLGA, NOW, None)
    if state is DrawState.PUBLISHED:
        assert isinstance(draw, Draw)
        draw = publish(draw, OLGA, NOW)
    if state is DrawState.SUPERSEDED:
        assert isinstance(draw, Draw)
        draw = supersede(draw, "a reason", OLGA, NOW)
    assert isinstance(draw, Draw)
    if state is DrawState.CANCELLED:
        draw = replace(draw, acts=(*draw.acts, DrawAct(NOW, state, by=OLGA)))
    assert draw.state is state
    return draw


@pytest.mark.parametrize("state", DrawState)
def test_each_act_is_possible_in_its_states_and_repeating_it_changes_nothing(
    state: DrawState,
) -> None:
    draw = draw_in(state)
    acts = {
        "configure": configure(draw, replace(SETTINGS, shows_demand=True), OLGA, NOW),
        "close": close(draw, OLGA, NOW),
        "draw": with_seed(draw, OLGA, NOW, None),
        "publish": publish(draw, OLGA, NOW),
        "supersede": supersede(draw, "a reason", OLGA, NOW),
        "cancel": cancel(draw, "a reason", OLGA, NOW),
    }
    possible = {
        DrawState.COLLECTING: {"configure", "close", "cancel"},
        DrawState.CLOSED: {"close", "draw", "supersede", "cancel"},
        DrawState.DRAWN: {"draw", "publish", "supersede", "cancel"},
        DrawState.PUBLISHED: {"publish"},
        DrawState.SUPERSEDED: set(),
        DrawState.CANCELLED: set(),
    }
    assert {name for name, after in acts.items() if isinstance(after, Draw)} == possible[state]
    same = {name for name, after in acts.items() if after == draw}
    repeated = {DrawState.CLOSED: "close", DrawState.DRAWN: "draw", DrawState.PUBLISHED: "publish"}
    assert same == ({repeated[state]} if state in repeated else set())


def test_a_seed_is_never_replaced_and_every_act_is_recorded() -> None:
    drawn = draw_in(DrawState.DRAWN)
    other = replace(drawn, server_seed="another seed")
    assert with_seed(other, OLGA, NOW, None) == WrongDrawState(DrawState.DRAWN)
    assert isinstance(with_seed(draw_in(DrawState.CLOSED), OLGA, NOW, SEED), InvalidInput)
    superseded = supersede(drawn, "too few places", OLGA, NOW)
    assert isinstance(superseded, Draw)
    assert [act.state for act in superseded.acts] == [
        *(DrawState.COLLECTING, DrawState.CLOSED, DrawState.DRAWN, DrawState.SUPERSEDED)
    ]
    assert superseded.acts[-1].reason == "too few places"
    ended = (superseded, draw_in(DrawState.PUBLISHED))
    assert [with_record(each, "hash").is_written for each in ended] == [False, True]
    assert isinstance(supersede(drawn, " ", OLGA, NOW), InvalidInput)


def test_a_draw_that_replaces_another_one_collects_wishes_for_a_day_before_what_is_left_opens() -> (
    None
):
    for opens_at, later in ((NOW + HOUR, None), (NOW + 25 * HOUR, NOW + 25 * HOUR), (None, None)):
        again = reopened(replace(SETTINGS, leftovers_open_at=opens_at), NOW)
        assert (again.wishes_until, again.leftovers_open_at) == (NOW + 24 * HOUR, later)


def test_users_enter_wishes_until_the_draw_closes_or_the_time_is_over() -> None:
    assert COLLECTING.accepts_wishes_at(NOW)
    assert not COLLECTING.accepts_wishes_at(SETTINGS.wishes_until)
    assert not draw_in(DrawState.CLOSED).accepts_wishes_at(NOW)


TERMS = build_terms(
    max_bookings=1, eligible_groups=(("5a", "5b"),), group_limits=(GroupLimit("5*", 2),)
)


def wishes_of(name: str, *slot_ids: SlotId) -> Wishes:
    """Return the wishes of a user."""
    return Wishes((UserId(name),), slot_ids, "salt", UserId(name), NOW)


def closed_on(*states: SlotState, **users: UserContext) -> ClosedWishes:
    """Return the basis for the wishes of these users for all slots."""
    slot_ids = tuple(state.id for state in states)
    wishes = [wishes_of(name, *slot_ids) for name in users]
    known = contexts(*users.values())
    return close_wishes(COLLECTING, TERMS, states, known, wishes, (), "salt", NOW)


def test_closing_says_who_may_book_and_has_the_groups_and_bookings_that_count() -> None:
    other = with_facts(build_campaign_slot(5), id="other", choice_group="one")
    elsewhere, (booking,) = book_users(other, "ben")
    slot = with_facts(build_slot(3), terms=TERMS, choice_group="one")
    ben = user_with_booking("ben", elsewhere, booking, "5b", "choir")
    closed = closed_on(slot, ada=UserContext(UserId("ada"), ("6c",)), ben=ben)
    entries = closed.basis.entries
    members = {closed.users[each.pseudonym]: each for entry in entries for each in entry.members}
    reasons = {each for blocked in closed.blocked.values() for each in blocked}
    assert reasons == {
        WishOutcome(slot.id, WishResult.NOT_ELIGIBLE),
        WishOutcome(slot.id, WishResult.LIMIT, conflict=elsewhere.id),
    }
    assert [members[UserId(each)].blocked for each in ("ada", "ben")] == [(slot.id,)] * 2
    assert set(closed.ruled_out.values()) == {"NOT_ELIGIBLE"}
    assert members[UserId("ben")].groups == ("g1",)
    assert closed.groups == {"g1": "5b"}
    assert (members[UserId("ben")].had, [each.id for each in closed.basis.slots]) == (1, [slot.id])


def test_codes_of_groups_follow_from_a_secret_and_not_from_the_names() -> None:
    slot = with_facts(build_slot(3), terms=TERMS)
    users = contexts(user_in_groups("ada", "5a"), user_in_groups("ben", "5b"))
    wishes = [wishes_of(name, slot.id) for name in ("ada", "ben")]
    first = set()
    for salt in map(str, range(20)):
        closed = close_wishes(COLLECTING, TERMS, [slot], users, wishes, (), salt, NOW)
        assert set(closed.groups.values()) == {"5a", "5b"}
        first.add(closed.groups["g1"])
    assert first == {"5a", "5b"}


def test_a_slot_that_starts_before_the_announced_seed_gets_no_users_by_lot() -> None:
    slot = with_facts(build_slot(3), terms=TERMS)
    users, wishes = contexts(user_in_groups("ada", "5a")), [wishes_of("ada", slot.id)]
    for seed_at, ids in ((slot.slot.start, []), (slot.slot.start - HOUR / 2, [slot.id])):
        settings = replace(SETTINGS, seed_source="the lottery", seed_at=seed_at)
        draw = replace(COLLECTING, settings=settings)
        closed = close_wishes(draw, TERMS, [slot], users, wishes, (), "salt", NOW)
        assert [each.id for each in closed.basis.slots] == ids


def test_only_a_slot_with_fewer_free_places_than_it_had_stops_a_draw() -> None:
    users = contexts(user_in_groups("cem", "5a"), user_in_groups("ben", "5b"))
    slot, _ = book_users(with_facts(build_slot(3), terms=TERMS), "cem", users=users)
    needed = promised_places(closed_on(slot, ada=UserContext(UserId("ada"), ("5a",))).basis)
    assert needed == {slot.id: 2}
    start = slot.slot.start

    def lacking(now: datetime, *states: SlotState, is_drawn: bool) -> bool:
        found = lacking_slots(needed, states, now, is_drawn=is_drawn)
        assert found in ((), (slot.id,))
        return bool(found)

    fuller, _ = book_users(slot, "ben", users=users)
    emptier = slot.without_bookings(*slot.bookings)
    moved = with_facts(slot, start=start + HOUR, group_limits=(), capacity=4)
    other_terms = with_facts(slot, terms=replace(TERMS, max_bookings=2, group_limits=()))
    smaller = with_facts(slot, capacity=2)
    draft = with_facts(slot, status=SlotStatus.DRAFT)
    hidden = with_facts(slot, terms=replace(TERMS, published=False))
    cancelled = with_facts(slot, status=SlotStatus.CANCELLED)
    for is_drawn in (False, True):
        for same in (slot, emptier, moved, other_terms):
            assert not lacking(NOW, same, is_drawn=is_drawn)
        for worse in (fuller, smaller, draft, hidden):
            assert lacking(NOW, worse, is_drawn=is_drawn)
        # A slot that is over stops no draw whose seed is fixed.
        assert lacking(NOW, is_drawn=is_drawn) is not is_drawn
        assert lacking(NOW, cancelled, is_drawn=is_drawn) is not is_drawn
        assert lacking(start, slot, is_drawn=is_drawn) is not is_drawn
