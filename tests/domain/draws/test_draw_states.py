"""The states of a draw, and the acts that lead from one to the next."""

from dataclasses import replace
from datetime import timedelta

import pytest

from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.booking.user_contexts import UserContext
from slotlock.domain.campaigns.terms import CampaignId, GroupLimit
from slotlock.domain.draws.basis import DrawId, DrawMethod
from slotlock.domain.draws.closing import ClosedWishes, Wishes, changed_slots, close_wishes
from slotlock.domain.draws.draw import (
    Draw,
    DrawSettings,
    DrawState,
    WrongDrawState,
    close,
    configure,
    open_draw,
    publish,
    reopened,
    supersede,
    with_root,
    with_seed,
)
from slotlock.domain.draws.record import Seed
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

OLGA, SEED = UserId("olga"), Seed("a seed", "the test")
SETTINGS = DrawSettings(DrawMethod.ROUNDS, NOW + HOUR)
COLLECTING = open_draw(DrawId("d"), CampaignId("c"), SETTINGS, OLGA, NOW)


def draw_in(state: DrawState) -> Draw:
    """Return a draw in this state."""
    draw: object = COLLECTING
    if state is not DrawState.COLLECTING:
        draw = close(COLLECTING, OLGA, NOW)
        assert isinstance(draw, Draw)
        draw = with_root(draw, "root")
    if state in (DrawState.DRAWN, DrawState.PUBLISHED):
        assert isinstance(draw, Draw)
        draw = with_seed(draw, SEED, OLGA, NOW)
    if state is DrawState.PUBLISHED:
        assert isinstance(draw, Draw)
        draw = publish(draw, OLGA, NOW)
    if state is DrawState.SUPERSEDED:
        assert isinstance(draw, Draw)
        draw = supersede(draw, "a reason", OLGA, NOW)
    assert isinstance(draw, Draw)
    assert draw.state is state
    return draw


@pytest.mark.parametrize("state", DrawState)
def test_each_act_is_possible_in_its_states_and_repeating_it_changes_nothing(
    state: DrawState,
) -> None:
    draw = draw_in(state)
    acts = {
        "configure": configure(draw, replace(SETTINGS, shows_demand=True)),
        "close": close(draw, OLGA, NOW),
        "draw": with_seed(draw, SEED, OLGA, NOW),
        "publish": publish(draw, OLGA, NOW),
        "supersede": supersede(draw, "a reason", OLGA, NOW),
    }
    possible = {
        DrawState.COLLECTING: {"configure", "close"},
        DrawState.CLOSED: {"close", "draw", "supersede"},
        DrawState.DRAWN: {"draw", "publish", "supersede"},
        DrawState.PUBLISHED: {"publish"},
        DrawState.SUPERSEDED: set(),
    }
    assert {name for name, after in acts.items() if isinstance(after, Draw)} == possible[state]
    same = {name for name, after in acts.items() if after == draw}
    repeated = {DrawState.CLOSED: "close", DrawState.DRAWN: "draw", DrawState.PUBLISHED: "publish"}
    assert same == ({repeated[state]} if state in repeated else set())


def test_a_seed_is_never_replaced_and_every_act_is_recorded() -> None:
    drawn = draw_in(DrawState.DRAWN)
    other = Seed("another seed", "the test")
    assert with_seed(drawn, other, OLGA, NOW) == WrongDrawState(DrawState.DRAWN)
    assert isinstance(with_seed(draw_in(DrawState.CLOSED), Seed(" ", "x"), OLGA, NOW), InvalidInput)
    superseded = supersede(drawn, "too few places", OLGA, NOW)
    assert isinstance(superseded, Draw)
    assert [act.state for act in superseded.acts] == [
        *(DrawState.COLLECTING, DrawState.CLOSED, DrawState.DRAWN, DrawState.SUPERSEDED)
    ]
    assert superseded.acts[-1].reason == "too few places"
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


def closed_on(*states: SlotState, **users: UserContext) -> ClosedWishes:
    """Return the basis for the wishes of these users for all slots."""
    slot_ids = tuple(state.id for state in states)
    wishes = [Wishes((UserId(name),), slot_ids, "salt", UserId(name), NOW) for name in users]
    known = contexts(*users.values())
    return close_wishes(COLLECTING, TERMS, states, known, wishes, NOW)


def test_closing_says_who_may_book_and_has_the_groups_and_bookings_that_count() -> None:
    elsewhere, (booking,) = book_users(build_campaign_slot(5), "ben")
    slot = with_facts(build_slot(3), terms=TERMS)
    ben = user_with_booking("ben", with_facts(elsewhere, id="other"), booking, "5b", "choir")
    closed = closed_on(slot, ada=UserContext(UserId("ada"), ("6c",)), ben=ben)
    entries = closed.basis.entries
    members = {closed.users[each.pseudonym]: each for entry in entries for each in entry.members}
    assert not members[UserId("ada")].is_eligible
    assert members[UserId("ben")].is_eligible
    assert members[UserId("ben")].groups == ("5b",)
    assert members[UserId("ben")].booked == ("other",)
    outside = [each.id for each in closed.basis.slots if not each.in_campaign]
    assert outside == ["other"]


def test_a_slot_that_changed_since_the_closing_is_named() -> None:
    slot = with_facts(build_slot(3), terms=TERMS)
    basis = closed_on(slot, ada=UserContext(UserId("ada"), ("5a",))).basis
    assert changed_slots(basis, TERMS, [slot], NOW + HOUR) == ()
    booked, _ = book_users(slot, "ben", users=contexts(user_in_groups("ben", "5b")))
    cases = [
        (TERMS, [with_facts(slot, capacity=2)]),
        (TERMS, [booked]),
        (TERMS, []),
        (replace(TERMS, max_bookings=2), [slot]),
    ]
    for terms, states in cases:
        assert changed_slots(basis, terms, states, NOW) == (slot.id,)
    assert changed_slots(basis, TERMS, [slot], slot.slot.start + timedelta(1)) == (slot.id,)
