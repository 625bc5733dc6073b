"""Queries that load any object by its global id."""

import asyncio
from dataclasses import replace
from typing import Annotated, cast

import strawberry
from strawberry import argument, field

from slotlock.domain.booking.booking import BookingRef, SlotId, WaitlistEntryId
from slotlock.domain.booking.slot import SeriesId
from slotlock.domain.shared.pagination import TimeFilter, TimeOrder, TimePage
from slotlock.domain.users.user import Caller, UserId
from slotlock.graphql.accounts.sessions import OpenSession
from slotlock.graphql.booking.tickets import load_ticket
from slotlock.graphql.campaigns.campaign_queries import load_campaign
from slotlock.graphql.context import Info
from slotlock.graphql.core import ids
from slotlock.graphql.core.connections import MAX_LIST_SIZE
from slotlock.graphql.core.dataloaders import SeriesPage
from slotlock.graphql.core.errors import GraphQLRequestError, bad_input
from slotlock.graphql.core.node import Node
from slotlock.graphql.notifications.webhooks import load_webhook
from slotlock.graphql.resources.resource_queries import load_resource
from slotlock.graphql.slots.facts import select_parts, slot_selection
from slotlock.graphql.slots.holiday_lists import load_holiday_list
from slotlock.graphql.slots.slot_types import (
    Slot,
    SlotSeries,
    WaitlistEntry,
    load_booking,
    load_slot,
)
from slotlock.graphql.teams.team_queries import Team
from slotlock.graphql.users.user_queries import User, load_user
from slotlock.services import teams
from slotlock.services.booking import waitlist
from slotlock.services.booking.permissions import with_dependents
from slotlock.services.slots import viewer_queries

IdArgument = Annotated[strawberry.ID, argument(description="The id of any object.")]
IdsArgument = Annotated[list[strawberry.ID], argument(description="The ids, at most 100.")]


@strawberry.type
class NodeQueries:
    @field(
        description="An object by id, or null if the caller cannot see such an object. Objects "
        "that anonymous clients never see lead to UNAUTHENTICATED for them."
    )
    async def node(self, info: Info, id: IdArgument) -> Node | None:
        return await load_node(info, id)

    @field(
        description="Several objects by id, each as `node` returns it. Ids that lead to an error "
        "return null; the response contains the first of these errors."
    )
    async def nodes(self, info: Info, ids: IdsArgument) -> list[Node | None]:
        if len(ids) > MAX_LIST_SIZE:
            raise bad_input("ids", f"`ids` must have at most {MAX_LIST_SIZE} items.")
        found = await asyncio.gather(*(_load_node_or_error(info, global_id) for global_id in ids))
        first_error = next((item for item in found if isinstance(item, GraphQLRequestError)), None)
        shown = [
            None if isinstance(item, GraphQLRequestError) and item is not first_error else item
            for item in found
        ]
        # The executor turns an exception in a list into null and an error of the response.
        return cast("list[Node | None]", shown)


async def _load_node_or_error(info: Info, global_id: str) -> Node | GraphQLRequestError | None:
    try:
        return await load_node(info, global_id)
    except GraphQLRequestError as error:
        return error


async def load_node(  # noqa: C901 - a case for each type
    info: Info, global_id: str
) -> Node | None:
    """Load an object if the caller may see it. Errors: UNAUTHENTICATED."""
    context = info.context
    if slot_id := ids.parse_slot_id(global_id):
        return await load_slot(info, slot_id)
    if campaign_id := ids.parse_campaign_id(global_id):
        return await load_campaign(info, campaign_id)
    if booking_ref := ids.parse_booking_id(global_id):
        return await load_booking(info, BookingRef(*booking_ref))
    if series_id := ids.parse_series_id(global_id):
        return await _load_series(info, series_id)
    if waitlist_entry_ref := ids.parse_waitlist_entry_id(global_id):
        return await _load_waitlist_entry(info, *waitlist_entry_ref)
    if user_id := ids.parse_user_id(global_id):
        return await _load_account(info, user_id)
    if team_id := ids.parse_team_id(global_id):
        team = await teams.find(context.services, team_id, context.caller.user_id)
        return Team(team) if team else None
    if ticket_ref := ids.parse_ticket_id(global_id):
        return await load_ticket(context.services, ticket_ref, context.caller)
    if ids.parse_resource_id(global_id):
        return await load_resource(info, global_id) if context.caller.is_organizer else None
    if list_id := ids.parse_holiday_list_id(global_id):
        return await load_holiday_list(info, list_id)
    if webhook_id := ids.parse_webhook_id(global_id):
        return await load_webhook(info, webhook_id)
    if ids.parse_session_id(global_id):
        return await _load_session(info, global_id)
    return None


async def _load_series(info: Info, series_id: SeriesId) -> SlotSeries | None:
    """Load a series if the viewer may see one of its slots."""
    loaders = info.context.loaders
    first_slot = TimePage(TimeFilter(), TimeOrder.START_ASC, 1, None, loaders.now)
    page = await loaders.series_pages.load(
        SeriesPage(series_id, first_slot, select_parts(frozenset()), info.context.viewer)
    )
    return SlotSeries(series_id) if page.items else None


async def _load_waitlist_entry(
    info: Info, slot_id: SlotId, entry_id: WaitlistEntryId
) -> WaitlistEntry | None:
    caller, services = info.context.caller, info.context.services
    if own := await _load_own_entry(info, slot_id, entry_id, caller):
        return own
    guardian = caller if caller.is_organizer else await with_dependents(services, caller)
    if not (caller.is_organizer or guardian.acts_for):
        return None
    found = await waitlist.find_entry(services, slot_id, entry_id)
    if found is None or caller.is_organizer:
        return WaitlistEntry(found[0], Slot(found[1], caller)) if found else None
    user_id = found[0].user_id
    if user_id not in guardian.acts_for:
        return None
    return await _load_own_entry(info, slot_id, entry_id, caller.as_dependent(user_id))


async def _load_own_entry(
    info: Info, slot_id: SlotId, entry_id: WaitlistEntryId, caller: Caller
) -> WaitlistEntry | None:
    selection = replace(slot_selection(info), my_waitlist_entry=True)
    slot = await viewer_queries.find_slot(info.context.services, slot_id, caller, selection)
    own_entry = slot.waitlist_entry_of(caller.user_id) if slot else None
    if slot is None or own_entry is None or own_entry.id != entry_id:
        return None
    return WaitlistEntry(own_entry, Slot(slot, caller))


async def _load_account(info: Info, user_id: UserId) -> User | None:
    caller = info.context.caller
    if not (caller.is_organizer or caller.user_id == user_id):
        return None
    return await load_user(info, user_id)


async def _load_session(info: Info, global_id: str) -> OpenSession | None:
    caller = info.context.caller
    sessions = await info.context.loaders.sessions.load(caller.user_id)
    own_sessions = [OpenSession.from_domain(session, caller.user_id) for session in sessions]
    return next((session for session in own_sessions if session.id == global_id), None)
