"""Fetching anything again by its id, as far as the caller may see it."""

from slotlock.graphql.accounts.sessions import OpenSession
from slotlock.graphql.booking.ticket_types import Ticket
from slotlock.graphql.campaigns.types import Campaign
from slotlock.graphql.context import Context
from slotlock.graphql.core import ids
from slotlock.graphql.slots.types import Booking, Slot
from slotlock.graphql.teams.types import Team
from slotlock.graphql.users.types import Node, User
from slotlock.services import teams
from slotlock.services.admission import tickets
from slotlock.services.campaigns import campaigns
from slotlock.services.slots import queries


async def load_node(context: Context, global_id: str) -> Node | None:
    """What an id names; None when there is no such thing for this caller."""
    viewer = context.viewer
    if slot_id := ids.parse_slot_id(global_id):
        slot = await context.slots.load(slot_id)
        return Slot.from_domain(slot, viewer) if slot else None
    if named := ids.parse_booking_id(global_id):
        found = await queries.find_booking(context.services, *named, context.caller)
        return (
            Booking.from_domain(found[0], Slot.from_domain(found[1], viewer), viewer)
            if found
            else None
        )
    if user_id := ids.parse_user_id(global_id):
        caller = context.caller
        if not (caller.is_organizer or caller.user_id == user_id):
            return None
        user = await context.users.load(user_id)
        return User.from_domain(user, caller) if user else None
    if campaign_id := ids.parse_campaign_id(global_id):
        campaign = await campaigns.find(context.services, campaign_id, viewer)
        return Campaign.from_domain(campaign) if campaign else None
    if team_id := ids.parse_team_id(global_id):
        team = await teams.find(context.services, team_id, context.caller.user_id)
        return Team.from_domain(team) if team else None
    if ref := ids.parse_ticket_id(global_id):
        ticket = await tickets.find_ticket(context.services, ref, context.caller)
        return Ticket.from_domain(ticket, context.caller) if ticket else None
    return await _load_session(context, global_id) if ids.parse_session_id(global_id) else None


async def _load_session(context: Context, global_id: str) -> OpenSession | None:
    caller = context.caller
    theirs = await context.sessions.load(caller.user_id)
    shown = (OpenSession.from_domain(session, caller.user_id) for session in theirs)
    return next((session for session in shown if session.id == global_id), None)
