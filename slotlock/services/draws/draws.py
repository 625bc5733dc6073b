"""Organizers configure, close, preview, publish and replace the draw of a campaign."""

import asyncio
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import TypeVar

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.rules.expiry import without_expired
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.booking.user_contexts import UserContext, UserContexts
from slotlock.domain.campaigns.campaign import (
    Campaign,
    CampaignBusy,
    CampaignNotFound,
    CampaignPatch,
    CampaignSaved,
)
from slotlock.domain.campaigns.terms import CampaignId, SlotAdmission
from slotlock.domain.draws import wish_closing
from slotlock.domain.draws.basis import DrawBasis, DrawId, DrawMethod, root_of
from slotlock.domain.draws.draw import (
    Draw,
    DrawNotFound,
    DrawOutdated,
    DrawRefusal,
    DrawSettings,
    DrawState,
    Seed,
    WrongDrawState,
    cancel,
    close,
    configure,
    note_draw_change,
    open_draw,
    publish,
    reopened,
    supersede,
    validate_reason,
    validate_settings,
    with_root,
    with_seed,
)
from slotlock.domain.draws.drawing import DrawnEntry, draw_places
from slotlock.domain.draws.measures import DrawMeasures, measure
from slotlock.domain.draws.wish_closing import ClosedWishes, lacking_slots, promised_places
from slotlock.domain.shared.problems import ProblemCode
from slotlock.domain.shared.text import normalize_line
from slotlock.domain.shared.validation import FieldProblem, InvalidInput
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.users.user import Caller, UserId
from slotlock.infrastructure.batching import chunked
from slotlock.infrastructure.conflicts import attempts
from slotlock.infrastructure.draw_records import DrawRecord, to_text
from slotlock.infrastructure.mongo.draws.draw_repository import OwnResult
from slotlock.infrastructure.mongo.ids import new_draw_id
from slotlock.infrastructure.mongo.slots.slot_query import SlotQuery
from slotlock.infrastructure.request_deadline import allow_wait
from slotlock.services.campaigns import campaigns
from slotlock.services.container import Services
from slotlock.services.draws.public_records import LONG_READ_S, finish_record, takes_part
from slotlock.services.draws.wishes import copy_wishes

CONTEXT_BATCH_SIZE = 2_000
MAX_LISTED = 100
By = TypeVar("By", bound=UserId | None)
SERVER_SEED_BYTES = 16


@value_object
class DrawPreview:
    """The result of a seed, and the measures of each method with the same seed."""

    basis: DrawBasis
    drawn: tuple[DrawnEntry, ...]
    measures: Mapping[DrawMethod, DrawMeasures]


async def configure_draw(
    services: Services,
    caller: Caller,
    campaign_id: CampaignId,
    settings: DrawSettings,
    copy_wishes_of: DrawId | None = None,
    reason: str = "",
) -> Draw | DrawRefusal:
    """Open the draw of a campaign, or change the settings of the one that collects wishes.

    From now on nobody but organizers books in the campaign. A new draw starts without wishes, or
    with those that counted in an earlier one of the campaign. It needs a reason once an earlier
    one was closed.
    """
    copied = await services.draws.find(copy_wishes_of) if copy_wishes_of else None
    is_known = copied is not None and copied.campaign_id == campaign_id and copied.root is not None
    if copy_wishes_of and not is_known:
        problem = ProblemCode.NO_CLOSED_DRAW.problem()
        return InvalidInput((FieldProblem("copyWishesOf", problem),))
    settings = replace(settings, seed_source=normalize_line(settings.seed_source))
    reason = normalize_line(reason)
    for _ in attempts():
        now = services.now()
        if refusal := await _validate(services, campaign_id, settings):
            return refusal
        before = await services.draws.find_latest(campaign_id)
        is_open = before is not None and not before.is_over
        after = configure(before, settings, caller.user_id, now) if before and is_open else None
        if after is not None and not isinstance(after, Draw):
            return after
        earlier = await services.draws.find_all(campaign_id) if after is None else ()
        needs_reason = after is None and (reason or any(each.root for each in earlier))
        if needs_reason and (invalid := validate_reason(reason)):
            return invalid
        by = caller.user_id
        if refusal := await _edit_admission(services, campaign_id, SlotAdmission.DRAW, by):
            return refusal
        if after is not None and after == before:
            return after
        if before is None or after is None:
            after, is_saved = await _open(
                services, caller, campaign_id, settings, before, copied, reason
            )
        else:
            note = note_draw_change(before, after, caller.user_id, now)
            is_saved = await services.draws.update(before, after, note)
        if is_saved:
            return after
    return CampaignBusy(campaigns.RETRY_AFTER_MS)


async def _validate(
    services: Services, campaign_id: CampaignId, settings: DrawSettings
) -> DrawRefusal | None:
    campaign = await services.campaigns.find(campaign_id)
    if campaign is None:
        return DrawNotFound(campaign_id)
    return validate_settings(settings, campaign.terms.closes_at, services.now())


async def _edit_admission(
    services: Services, campaign_id: CampaignId, admission: SlotAdmission, by: UserId
) -> DrawRefusal | None:
    """Change who books in a campaign from now on; return why that is not possible."""
    patch = CampaignPatch(admission=admission, of_draw=True)
    edited = await campaigns.edit(services, campaign_id, patch, by)
    if isinstance(edited, CampaignNotFound):
        return DrawNotFound(campaign_id)
    return None if isinstance(edited, CampaignSaved) else edited


async def _open(
    services: Services,
    caller: Caller,
    campaign_id: CampaignId,
    settings: DrawSettings,
    former: Draw | None,
    copied: Draw | None = None,
    reason: str = "",
) -> tuple[Draw, bool]:
    """Open a draw, which begins with the wishes of another one, or of one that it replaces.

    Return it, and whether no other one was opened in the meantime.
    """
    now = services.now()
    by, seed = caller.user_id, secrets.token_hex(SERVER_SEED_BYTES)
    draw = open_draw(new_draw_id(), campaign_id, settings, by, now, seed, former, reason)
    if copied is None and former is not None and former.state is DrawState.SUPERSEDED:
        copied = former
    if copied is not None:  # nobody reads them before the draw is there
        await copy_wishes(services, copied, draw, by)
    note = note_draw_change(None, draw, by, now)
    return draw, await services.draws.insert(draw, note)


async def close_wishes(
    services: Services, caller: Caller | None, campaign_id: CampaignId
) -> Draw | DrawRefusal:
    """Accept no more wishes. `store_basis` has to follow: a worker calls it."""
    # No wish that is saved from now on is reported as saved.
    return await _change(services, campaign_id, caller.user_id if caller else None, close)


async def _change(
    services: Services,
    campaign_id: CampaignId,
    by: By,
    act: Callable[[Draw, By, datetime], Draw | DrawRefusal],
    *,
    needs_places: bool = False,
) -> Draw | DrawRefusal:
    """Change the latest draw of a campaign by an act; repeating it changes nothing.

    It is refused if it needs the places of the draw, and slots lack some.
    """
    for _ in attempts():
        before = await services.draws.find_latest(campaign_id)
        if before is None:
            return DrawNotFound(campaign_id)
        now = services.now()
        after = act(before, by, now)
        if not isinstance(after, Draw) or after == before:
            return after
        if needs_places and (refusal := await _find_lacking(services, before)):
            return refusal
        if await services.draws.update(before, after, note_draw_change(before, after, by, now)):
            return after
    return CampaignBusy(campaigns.RETRY_AFTER_MS)


async def store_basis(services: Services, draw_id: DrawId) -> Draw | DrawRefusal:
    """Store the basis of a closed draw with its root.

    It can be repeated after a crash. Of several at once, the first that stores its root wins.
    """
    for _ in attempts():
        closed = await services.draws.find(draw_id)
        if closed is None or closed.state is DrawState.COLLECTING:
            return WrongDrawState(DrawState.COLLECTING)
        if closed.root is not None:
            await services.draws.delete_other_bases(closed)
            return closed
        found = await read_basis(services, closed)
        if found is None:
            return DrawNotFound(closed.campaign_id)
        root = root_of(found.basis)
        await services.draws.insert_basis(found, root)
        # Its text is there before the root is public.
        text = await asyncio.to_thread(to_text, DrawRecord(found.basis, root))
        await services.draw_texts.insert(draw_id, root, text)
        with_basis = with_root(closed, root, len(found.basis.entries), services.now())
        note = note_draw_change(closed, with_basis, None, services.now())
        if await services.draws.update(closed, with_basis, note):
            await services.draws.delete_other_bases(with_basis)
            return with_basis
    return CampaignBusy(campaigns.RETRY_AFTER_MS)


async def read_basis(services: Services, draw: Draw) -> ClosedWishes | None:
    """Return the basis that closing now would give; None without its campaign."""
    campaign = await services.campaigns.find(draw.campaign_id)
    if campaign is None:
        return None
    now = services.now()
    wishes = await services.wishes.find_all(draw.id)
    user_ids = sorted({user_id for each in wishes for user_id in each.user_ids})
    states = await load_states(services, campaign)
    users = await _load_contexts(services, draw.campaign_id, states, user_ids)
    earlier = await services.draws.find_all(draw.campaign_id)
    former = [
        (await finish_record(services, each) if each.lacks_record else each).as_former
        for each in reversed(earlier)
        if each.id != draw.id
    ]
    salt = secrets.token_hex(SERVER_SEED_BYTES)
    return await asyncio.to_thread(
        wish_closing.close_wishes, draw, campaign.terms, states, users, wishes, former, salt, now
    )


async def load_states(services: Services, campaign: Campaign) -> Sequence[SlotState]:
    """Return the slots of a campaign without the holds that have expired."""
    now = services.now()
    states = await services.campaigns.find_slots(campaign.id, now)
    return [without_expired(state, now) for state in states]


async def _load_contexts(
    services: Services,
    campaign_id: CampaignId,
    states: Sequence[SlotState],
    user_ids: Sequence[UserId],
) -> UserContexts:
    """Return what the draw needs of these users; nothing of those who are banned or gone.

    It has every booking in the campaign, whatever its limits are: a place is not given twice.
    """
    now, slots = services.now(), [state.slot for state in states]
    contexts: dict[UserId, UserContext] = {}
    for batch in chunked(user_ids, CONTEXT_BATCH_SIZE):
        accounts = await services.users.find_many(batch)
        able = {user_id: user for user_id, user in accounts.items() if not user.banned}
        found = await services.campaigns.find_bookings(campaign_id, slots, list(able), now)
        contexts |= {
            user_id: UserContext(
                user_id,
                user.groups,
                bookings=tuple(found[user_id]),
                email_verified=user.email is None or user.email_verified,
            )
            for user_id, user in able.items()
        }
    return UserContexts(contexts, services.require_verified_email)


async def preview_draw(
    services: Services,
    campaign_id: CampaignId,
    capacities: Mapping[SlotId, int] | None = None,
    max_bookings: int | None = None,
) -> DrawPreview | DrawRefusal:
    """Return the result of the draw, or one with other lots before its seed is fixed.

    Nothing is written, and nobody can try seeds. While the draw collects wishes, it is a draw on
    the wishes of now. Slots in `capacities` have as many places, and each user gets at most
    `max_bookings`, in the preview only.
    """
    allow_wait(LONG_READ_S)
    draw = await services.draws.find_latest(campaign_id)
    if draw is None:
        return DrawNotFound(campaign_id)
    basis: DrawBasis
    if draw.root is not None:
        basis = await services.draws.load_basis(draw)
    else:
        found = await read_basis(services, draw)
        if found is None:
            return DrawNotFound(campaign_id)
        basis = found.basis
    root, seed = draw.root or root_of(basis), draw.seed.text if draw.seed else f"preview {draw.id}"
    changed = capacities or {}
    slots = tuple(
        replace(slot, capacity=changed.get(slot.id, slot.capacity)) for slot in basis.slots
    )
    asked = basis.max_bookings if max_bookings is None else max_bookings
    basis = replace(basis, slots=slots, max_bookings=asked)
    drawn, measures = dict[DrawMethod, tuple[DrawnEntry, ...]](), dict[DrawMethod, DrawMeasures]()
    for method in DrawMethod:
        drawn[method] = await asyncio.to_thread(draw_places, basis, root, seed, method)
        measures[method] = await asyncio.to_thread(measure, drawn[method])
    return DrawPreview(basis, drawn[basis.method], measures)


async def run_draw(
    services: Services, caller: Caller, campaign_id: CampaignId, seed: str | None
) -> Draw | DrawRefusal:
    """Fix the seed, from which the result follows. Nobody can draw again with another seed.

    It is None if no source was announced: the server then reveals the one that it made.
    """
    act = partial(with_seed, text=seed)
    return await _change(services, campaign_id, caller.user_id, act, needs_places=True)


async def publish_draw(
    services: Services, caller: Caller, campaign_id: CampaignId
) -> Draw | DrawRefusal:
    """Publish the result. `finish_publication` has to follow: a worker calls it."""
    return await _change(services, campaign_id, caller.user_id, publish, needs_places=True)


async def _find_lacking(services: Services, draw: Draw) -> DrawOutdated | DrawNotFound | None:
    """Return the slots that offer less than when the wishes were closed; None if there are none.

    Once the seed is fixed, they have to offer what was drawn.
    """
    campaign = await services.campaigns.find(draw.campaign_id)
    if campaign is None:
        return DrawNotFound(draw.campaign_id)
    basis = await services.draws.load_basis(draw, with_entries=False)
    states, now = await load_states(services, campaign), services.now()
    lacking = lacking_slots(promised_places(basis), states, now, is_drawn=draw.seed is not None)
    if lacking and draw.root is not None and draw.seed is not None:
        needed = await _missing_places(services, draw, draw.root, draw.seed, lacking)
        lacking = lacking_slots(needed, states, now, is_drawn=True)
    return DrawOutdated(lacking[:MAX_LISTED]) if lacking else None


async def _missing_places(
    services: Services, draw: Draw, root: str, seed: Seed, slot_ids: Sequence[SlotId]
) -> Mapping[SlotId, int]:
    """Return how many users of each of these slots have drawn a place, and have none yet."""
    allow_wait(LONG_READ_S)
    basis, entries = await services.draws.load_basis(draw), await services.draws.find_entries(draw)
    drawn = await asyncio.to_thread(draw_places, basis, root, seed.text)
    missing: dict[SlotId, int] = {}
    for slot_id in slot_ids:
        leaves = (each.entry.leaf for each in drawn if slot_id in each.granted)
        users = [user_id for leaf in leaves for user_id in entries[leaf].user_ids]
        now = services.now()
        found = await services.slots.find(SlotQuery(slot_id, now, users))
        state = found and without_expired(found, now)
        missing[slot_id] = sum(not (state and state.booking_of(each)) for each in users)
    return missing


async def supersede_draw(
    services: Services, caller: Caller, campaign_id: CampaignId, reason: str
) -> Draw | DrawRefusal:
    """Replace a draw by one that collects wishes again; the record of the old one stays public."""
    allow_wait(LONG_READ_S)
    for _ in attempts():
        before = await services.draws.find_latest(campaign_id)
        if before is None:
            return DrawNotFound(campaign_id)
        if await _has_replaced(services, before):
            return before  # repeated
        now = services.now()
        is_repeated = before.state is DrawState.SUPERSEDED
        old = before if is_repeated else supersede(before, reason, caller.user_id, now)
        if not isinstance(old, Draw):
            return old
        settings = reopened(old.settings, now)
        if refusal := await _validate(services, campaign_id, settings):
            return refusal
        by = caller.user_id
        if refusal := await _edit_admission(services, campaign_id, SlotAdmission.DRAW, by):
            return refusal
        note = note_draw_change(before, old, caller.user_id, now)
        if not is_repeated and not await services.draws.update(before, old, note):
            continue
        reason = old.acts[-1].reason or ""
        new, is_saved = await _open(services, caller, campaign_id, settings, old, None, reason)
        if is_saved:
            return new
    return CampaignBusy(campaigns.RETRY_AFTER_MS)


async def cancel_draw(
    services: Services, caller: Caller, campaign_id: CampaignId, reason: str
) -> Draw | DrawRefusal:
    """Call off a draw that is not published, and let everybody book again.

    Repeating it opens the campaign after a crash, and one that waits for a draw that never opened.
    """
    by, now = caller.user_id, services.now()
    for _ in attempts():
        before = await services.draws.find_latest(campaign_id)
        if before is None or before.is_over:
            return await _free(services, campaign_id, by, before)
        after = cancel(before, reason, by, now)
        if not isinstance(after, Draw):
            return after
        if await services.draws.update(before, after, note_draw_change(before, after, by, now)):
            return await _free(services, campaign_id, by, after)
    return CampaignBusy(campaigns.RETRY_AFTER_MS)


async def _free(
    services: Services, campaign_id: CampaignId, by: UserId, draw: Draw | None
) -> Draw | DrawRefusal:
    """Let everybody book in a campaign after its latest draw; return the draw, if it has one."""
    campaign = await services.campaigns.find(campaign_id)
    if campaign is not None and campaign.terms.admission is SlotAdmission.DRAW:
        if refusal := await _edit_admission(services, campaign_id, SlotAdmission.ANY, by):
            return refusal
    elif draw is not None and draw.state is not DrawState.CANCELLED:
        return WrongDrawState(draw.state)
    return draw or DrawNotFound(campaign_id)


async def _has_replaced(services: Services, draw: Draw) -> bool:
    """Return whether a draw collects wishes again, in place of one that was never published."""
    if draw.state is not DrawState.COLLECTING or draw.supersedes is None:
        return False
    former = await services.draws.find(draw.supersedes)
    return former is not None and former.state is DrawState.SUPERSEDED


async def only_visible(
    services: Services, draws: Sequence[Draw], viewer: Caller | None
) -> Sequence[Draw]:
    """Return those of the draws of a campaign that the viewer may see.

    Organizers, and users with an entry in it and their guardians, see a draw also if its campaign
    is not published any more, or deleted. Everybody else sees it with the campaign.
    """
    if not draws or await campaigns.find(services, draws[0].campaign_id, viewer):
        return draws
    if viewer is None or viewer.is_organizer:
        return draws if viewer else ()
    return [each for each in draws if await takes_part(services, each, viewer)]


async def find_visible(services: Services, draw_id: DrawId, viewer: Caller | None) -> Draw | None:
    """Return a draw if the viewer may see it."""
    found = await services.draws.find(draw_id)
    visible = await only_visible(services, [found], viewer) if found else ()
    return visible[0] if visible else None


async def find_draw_result(
    services: Services, user_id: UserId, campaign_id: CampaignId
) -> OwnResult | None:
    """Return the result of a user in the latest closed draw in which they have an entry.

    A draw that was replaced or called off has no result.
    """
    for draw in await services.draws.find_all(campaign_id):
        if draw.is_active or draw.state is DrawState.PUBLISHED:
            own = await explain_result(services, draw, user_id)
            if own is not None:
                return own
    return None


async def explain_result(services: Services, draw: Draw, user_id: UserId) -> OwnResult | None:
    """Return the entry of a user in a draw, with its result once it is published."""
    if draw.root is None:
        return None
    own = await services.draws.find_result(draw, user_id)
    if own is None:
        return None
    if draw.state is not DrawState.PUBLISHED:
        return replace(own, drawn=None)
    lost = await services.draws.find_not_booked(draw, own.pseudonym)
    return replace(own, not_booked={each.slot_id: each.reason for each in lost})
