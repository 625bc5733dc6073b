"""What the templates of mails show that are about no booking, such as an opening or a draw."""

from collections.abc import Awaitable, Callable, Mapping

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.campaigns.terms import CampaignId
from slotlock.domain.draws.basis import DrawId
from slotlock.domain.draws.draw import DrawState
from slotlock.domain.notifications.mail_kinds import (
    ANNOUNCEMENT,
    CAMPAIGN_OPENS,
    DRAW_RESULT,
    TEAM_INVITATION,
)
from slotlock.domain.notifications.outbox import OutboxEntry
from slotlock.domain.schedule.schedule_texts import format_time, zone_text
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.teams.team import TeamId
from slotlock.domain.users.user import User, UserId
from slotlock.infrastructure.mongo.slots.slot_query import SlotQuery
from slotlock.services.container import Services
from slotlock.services.notifications.recipients import names_of


@value_object
class MailContext:
    """For whom a mail is, in which language, and what it needs of the site."""

    user: User
    language: str
    board_url: str
    time_zone: str


Values = Mapping[str, object]
Loader = Callable[[Services, OutboxEntry, MailContext], Awaitable[Values | None]]


async def load_opening(
    services: Services, entry: OutboxEntry, context: MailContext
) -> Values | None:
    """Return the values of a mail about an opening; None if it is no longer right."""
    campaign = await services.campaigns.find(CampaignId(entry.data["campaign"]))
    if campaign is None or campaign.terms.opens_at.isoformat() != entry.data["opens_at"]:
        return None
    terms, user, children = campaign.terms, context.user, list[User]()
    if not terms.published or user.banned:
        return None
    if not terms.is_eligible(user.groups):
        dependents = await services.users.find_dependents([user.id])
        children = [
            each for each in dependents if not each.banned and terms.is_eligible(each.groups)
        ]
        if not children:
            return None
    when = format_time(terms.opens_at, context.time_zone, context.language)
    return {
        "child": names_of(children),
        "title": campaign.name,
        "when": f"{when}{zone_text(context.time_zone, context.language)}",
        "url": f"{context.board_url}#/campaign/campaign_{campaign.id}" if context.board_url else "",
    }


async def load_announcement(
    services: Services, entry: OutboxEntry, context: MailContext
) -> Values | None:
    """Return the values of an announcement; None if it is no longer stored, or the sender banned.

    Of an account that somebody has taken over, no text reaches anybody after the ban.
    """
    found = await services.announcements.find(entry.data["announcement"])
    if found is None:
        return None
    organizer, audience = await services.users.find_soon(found.by), found.audience
    if organizer is not None and organizer.banned and not organizer.erased:
        return None
    view = (
        f"slot/slot_{audience.slot_id}"
        if audience.slot_id
        else f"campaign/campaign_{audience.campaign_id}"
    )
    return {
        "by": organizer.name if organizer and not organizer.erased else "",
        "about": found.about,
        "announced_subject": found.subject,
        "text": found.text,
        "url": f"{context.board_url}#/{view}" if context.board_url else "",
    }


async def load_draw_result(
    services: Services, entry: OutboxEntry, context: MailContext
) -> Values | None:
    """Return the values of a mail about a draw; None if nothing of it is true any more."""
    campaign = await services.campaigns.find(CampaignId(entry.data["campaign"]))
    draw = await services.draws.find(DrawId(entry.data["draw"]))
    user = context.user
    if campaign is None or draw is None or draw.state is not DrawState.PUBLISHED or user.banned:
        return None
    own = await services.draws.find_result(draw, user.id)
    if own is None or own.drawn is None:
        return None
    lost = {each.slot_id for each in await services.draws.find_not_booked(draw, own.pseudonym)}
    granted = [slot_id for slot_id in own.drawn.granted if slot_id not in lost]
    titles = [await _title_of_place(services, slot_id, user.id) for slot_id in granted]
    if granted and not any(titles):
        return None
    return {
        "title": campaign.name,
        "granted": [title for title in titles if title],
        "wish_count": len(own.drawn.outcomes),
        "number": own.drawn.number,
        "url": f"{context.board_url}#/wishes/campaign_{campaign.id}" if context.board_url else "",
    }


async def load_team_invitation(
    services: Services, entry: OutboxEntry, context: MailContext
) -> Values | None:
    """Return the values of an invitation to a team; None if it is no longer open.

    It has no name of the team or of the inviter: a stranger may have chosen both.
    """
    team, user = await services.teams.find(TeamId(entry.data["team"])), context.user
    if team is None or user.banned or not team.invitations_of(user.id, user.login_name):
        return None
    return {"url": f"{context.board_url}#/" if context.board_url else ""}


async def _title_of_place(services: Services, slot_id: SlotId, user_id: UserId) -> str | None:
    """Return the title of a slot in which the user has a place; None without one."""
    state = await services.slots.find(SlotQuery(slot_id, services.now(), [user_id]))
    return state.slot.title if state and state.booking_of(user_id) else None


LOADERS: Mapping[str, Loader] = {
    CAMPAIGN_OPENS.name: load_opening,
    ANNOUNCEMENT.name: load_announcement,
    DRAW_RESULT.name: load_draw_result,
    TEAM_INVITATION.name: load_team_invitation,
}
