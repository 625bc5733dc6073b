"""Fetching anything again by its id, as far as the caller may see it."""

from slotlock.desk import campaigns, reading, teams, tickets
from slotlock.graphql import ids
from slotlock.graphql.context import Context
from slotlock.graphql.types.campaigns import Campaign
from slotlock.graphql.types.own_sessions import OpenSession
from slotlock.graphql.types.people import Node, User
from slotlock.graphql.types.slots import Booking, Slot
from slotlock.graphql.types.teams import Team
from slotlock.graphql.types.tickets import Ticket


async def load_node(context: Context, gid: str) -> Node | None:
    """What an id names; None when there is no such thing for this caller."""
    viewer = context.reader
    if slot_id := ids.slot_id_of(gid):
        slot = await context.slots.load(slot_id)
        return Slot.of(slot, viewer) if slot else None
    if named := ids.booking_id_of(gid):
        found = await reading.find_booking(context.desk, *named, context.caller)
        return Booking.of(found[0], Slot.of(found[1], viewer), viewer) if found else None
    if user_id := ids.user_id_of(gid):
        caller = context.caller
        if not (caller.organises or caller.user_id == user_id):
            return None
        user = await context.users.load(user_id)
        return User.of(user, caller) if user else None
    if campaign_id := ids.campaign_id_of(gid):
        campaign = await campaigns.find(context.desk, campaign_id, viewer)
        return Campaign.of(campaign) if campaign else None
    if team_id := ids.team_id_of(gid):
        team = await teams.find(context.desk, team_id, context.caller.user_id)
        return Team.of(team) if team else None
    if ref := ids.ticket_of(gid):
        ticket = await tickets.find_ticket(context.desk, ref, context.caller)
        return Ticket.of(ticket, context.caller) if ticket else None
    return await _session(context, gid) if ids.session_of(gid) else None


async def _session(context: Context, gid: str) -> OpenSession | None:
    caller = context.caller
    theirs = await context.sessions.load(caller.user_id)
    shown = (OpenSession.of(session, caller.user_id) for session in theirs)
    return next((session for session in shown if session.id == gid), None)
