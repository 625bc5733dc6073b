"""Closing: the basis of a draw has all that its result needs, and nothing of hidden slots."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random

import pytest

from slotlock.domain.booking.booking import Booking, BookingId, SlotId
from slotlock.domain.booking.booking_outcomes import Booked
from slotlock.domain.booking.booking_refusals import (
    AlreadyBooked,
    BookingRefusal,
    GroupFull,
    LimitReached,
    NotEligible,
    SlotFull,
    TimeConflict,
)
from slotlock.domain.booking.rules.book import BookingRequest, book
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.booking.user_contexts import UserContexts
from slotlock.domain.campaigns.terms import SlotAdmission
from slotlock.domain.draws import wish_closing
from slotlock.domain.draws.basis import root_of, time_text
from slotlock.domain.draws.drawing import DrawnEntry, WishResult
from slotlock.domain.draws.wish_closing import ClosedWishes, Wishes
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.draw_records import DrawRecord, to_document, verify
from tests.support.domain.builders import NOW, build_slot
from tests.support.domain.campaign_builders import build_terms, contexts, user_in_groups
from tests.support.domain.draw_scenes import GROUPS, SECRET_LIMIT, DrawScene, build_scene
from tests.support.domain.draws import drawn_record

SCENES = [build_scene(Random(number)) for number in range(300)]
RESULTS: Mapping[type[BookingRefusal], WishResult] = {
    SlotFull: WishResult.FULL,
    GroupFull: WishResult.GROUP_FULL,
    TimeConflict: WishResult.TIME_CONFLICT,
    LimitReached: WishResult.LIMIT,
    AlreadyBooked: WishResult.ALREADY_BOOKED,
    NotEligible: WishResult.NOT_ELIGIBLE,
}
Outcome = tuple[WishResult, SlotId | None]


def leaks(scene: DrawScene) -> list[str]:
    """Return what both texts have of slots that cannot be wished for, and of groups."""
    basis = scene.close().basis
    documents = DrawRecord(basis, root_of(basis)), drawn_record(basis)
    text = "".join(json.dumps(to_document(each), ensure_ascii=False) for each in documents)
    secrets = {SECRET_LIMIT.group, *(f'"{group}"' for group in GROUPS)}
    for state in scene.hidden:
        secrets |= {state.id, state.slot.title, f"choice of {state.id.removeprefix('id-of-')}"}
        # Those who wished for a slot knew its id.
        secrets -= {slot_id for each in scene.wishes for slot_id in each.slot_ids}
        secrets |= {time_text(each) for m in state.slot.all_meetings for each in (m.start, m.end)}
    return [each for each in secrets if each in text]


@pytest.mark.parametrize("shown", [None, "drafts", "names of groups"])
def test_a_record_has_no_id_title_or_time_of_a_hidden_slot_and_no_name_of_a_group(
    shown: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shown == "drafts":
        monkeypatch.setattr(wish_closing, "is_open", lambda *_: True)
    if shown == "names of groups":
        monkeypatch.setattr(wish_closing, "replace", lambda member, **_: member)
    assert any(map(leaks, SCENES)) is (shown is not None)


def test_a_draw_gives_what_bookings_by_hand_in_its_order_would_get() -> None:
    found = set()
    for scene in SCENES:
        closed = scene.close()
        record = drawn_record(closed.basis)
        assert verify(json.loads(json.dumps(to_document(record)))) == []
        expected = book_by_hand(scene, closed, record.drawn)
        for each in record.drawn:
            outcomes = [_shown(closed, each, n) for n in range(len(each.outcomes))]
            right = expected[each.entry.leaf]
            assert len(outcomes) == len(right)
            for outcome, shown, by_hand in zip(each.outcomes, outcomes, right, strict=True):
                found.add(shown[0])
                if outcome.result in (WishResult.UNAVAILABLE, WishResult.BLOCKED):
                    assert by_hand[0] is not WishResult.GRANTED
                else:
                    assert shown == by_hand
    assert found == set(WishResult) - {WishResult.BLOCKED}


def test_groups_no_shows_and_an_unproven_address_rule_a_user_out_of_a_whole_draw() -> None:
    codes = set[str]()
    for scene in SCENES[:60]:
        unproven = {
            user_id: replace(context, email_verified=False)
            for user_id, context in scene.users.by_user.items()
        }
        strict = UserContexts(unproven, require_verified_email=True)
        for each in (scene, replace(scene, users=strict)):
            codes |= set(each.close().ruled_out.values())
    assert codes == {"NOT_ELIGIBLE", "TOO_MANY_NO_SHOWS", "EMAIL_NOT_VERIFIED"}


def test_a_slot_for_others_blocks_the_wish_for_it_and_no_other() -> None:
    terms, names = build_terms(), ("ada", "ben")
    states = tuple(
        build_slot(2, id=SlotId(id_), terms=terms, only_for_groups=groups)
        for id_, groups in (("of-9", ("9*",)), ("of-all", ()))
    )
    users = contexts(user_in_groups("ada", "8a"), user_in_groups("ben", "9a"))
    wished = tuple(state.id for state in states)
    wishes = tuple(
        Wishes((UserId(name),), wished, f"salt {name}", UserId(name), NOW) for name in names
    )
    closed = DrawScene(terms, states, (), users, wishes).close()
    assert not closed.ruled_out
    drawn = {closed.wishes[each.entry.leaf].by: each for each in drawn_record(closed.basis).drawn}
    shown = {name: [_shown(closed, drawn[UserId(name)], n)[0] for n in range(2)] for name in names}
    assert shown == {
        "ada": [WishResult.NOT_ELIGIBLE, WishResult.GRANTED],
        "ben": [WishResult.GRANTED, WishResult.GRANTED],
    }


def _shown(closed: ClosedWishes, each: DrawnEntry, number: int) -> Outcome:
    """Return an outcome as its user sees it."""
    outcome = each.outcomes[number]
    reasons = (own for own in closed.blocked[each.entry.leaf] if own.slot_id == outcome.slot_id)
    if outcome.result is WishResult.BLOCKED:
        outcome = next(reasons)
    return outcome.result, outcome.conflict


def book_by_hand(
    scene: DrawScene, closed: ClosedWishes, drawn: Sequence[DrawnEntry]
) -> dict[str, list[Outcome]]:
    """Book the wishes one by one in rounds, with the slots and users as they really are."""
    states, users = {state.id: state for state in scene.states}, scene.users
    results: dict[str, list[Outcome]] = {each.entry.leaf: [] for each in drawn}
    order = [each.entry for each in drawn]
    while any(len(results[each.leaf]) < len(each.wishes) for each in order):
        for entry in order:
            user_ids = [closed.users[each.pseudonym] for each in entry.members]
            for slot_id in entry.wishes[len(results[entry.leaf]) :]:
                result, states[slot_id], users = book_for_all(states[slot_id], users, user_ids)
                results[entry.leaf].append(result)
                if result[0] is WishResult.GRANTED:
                    break
        order.reverse()
    return results


def book_for_all(
    before: SlotState, users: UserContexts, user_ids: Sequence[UserId]
) -> tuple[Outcome, SlotState, UserContexts]:
    """Book a place for all these users, or for none."""
    state, bookings = before, list[Booking]()
    for user_id in user_ids:
        new_id = BookingId(f"new {user_id}")
        request = BookingRequest(user_id, new_id, user_id, admission=SlotAdmission.DRAW)
        decision = book(state, users, request, NOW)
        if not isinstance(decision.outcome, Booked):
            refusal, conflict = decision.outcome, None
            if isinstance(refusal, LimitReached | TimeConflict) and refusal.booking:
                conflict = refusal.booking.slot_id
            result = RESULTS.get(type(refusal), WishResult.UNAVAILABLE)
            return (result, conflict), before, users
        (state,) = decision.changed_slots
        bookings.append(decision.outcome.booking)
    return (WishResult.GRANTED, None), state, users.with_bookings(state.slot, bookings)
