"""Announcements: an organizer writes to all who have a place, and sees before how many they are."""

from typing import Annotated

import strawberry
from strawberry import argument, field

from slotlock.domain.booking.booking_refusals import SlotNotFound
from slotlock.domain.campaigns.campaign import CampaignNotFound
from slotlock.domain.notifications.announcements import (
    AnnouncementOutcome,
    Audience,
)
from slotlock.domain.users.user import Caller
from slotlock.graphql.context import Info
from slotlock.graphql.core import ids
from slotlock.graphql.core.arguments import KEY_DESCRIPTION, require_valid_key
from slotlock.graphql.core.errors import (
    ErrorCode,
    GraphQLRequestError,
    bad_input,
)
from slotlock.graphql.core.outcomes import Result, ResultView, refuse_id
from slotlock.services.notifications import announcements

SEND_ANNOUNCEMENT = Result[AnnouncementOutcome](
    "SendAnnouncementResult", "How many users get the announcement, or a refusal."
)
SLOT_DESCRIPTION = "The slot whose users get it; null if `campaignId` is set."
CAMPAIGN_DESCRIPTION = (
    "The campaign whose users get it, those of all its published slots; null if `slotId` is set."
)
WAITING_DESCRIPTION = "Whether users on a waiting list, or with a hold, get it as well."
UNPLACED_DESCRIPTION = (
    "Whether those get it instead who are without a place in the campaign, which `unplaced` lists."
)


@strawberry.input(description="A message to all who have a place in a slot or in a campaign.")
class SendAnnouncementInput:
    subject: str = field(description="The subject of the mail, one line of 1 to 200 characters.")
    text: str = field(
        description="The text, 1 to 5000 characters. Mails show it as it is, without Markdown."
    )
    idempotency_key: str = field(description=KEY_DESCRIPTION)
    slot_id: strawberry.ID | None = field(default=None, description=SLOT_DESCRIPTION)
    campaign_id: strawberry.ID | None = field(default=None, description=CAMPAIGN_DESCRIPTION)
    include_waiting: bool = field(default=False, description=WAITING_DESCRIPTION)
    unplaced: bool = field(default=False, description=UNPLACED_DESCRIPTION)


def _to_audience(
    slot_id: strawberry.ID | None,
    campaign_id: strawberry.ID | None,
    include_waiting: bool,
    unplaced: bool,
) -> Audience | None:
    """Return an audience; None if the id names nothing. Errors: BAD_USER_INPUT."""
    if (slot_id is None) is (campaign_id is None):
        raise bad_input("slotId", "Use either `slotId` or `campaignId`.")
    if unplaced and (slot_id is not None or include_waiting):
        raise bad_input("unplaced", "Use `unplaced` with `campaignId`, without `includeWaiting`.")
    if slot_id is not None:
        parsed_slot = ids.parse_slot_id(slot_id)
        return Audience(parsed_slot, None, include_waiting) if parsed_slot else None
    parsed_campaign = ids.parse_campaign_id(campaign_id or "")
    if parsed_campaign is None:
        return None
    return Audience(None, parsed_campaign, include_waiting, unplaced)


async def _require_sender(
    info: Info, slot_id: strawberry.ID | None, include_waiting: bool
) -> Caller:
    """Return the caller, if they may write to this audience. Errors: UNAUTHENTICATED, FORBIDDEN."""
    if slot_id is None or include_waiting:
        return info.context.require_organizer()
    return await info.context.require_leader(ids.parse_slot_id(slot_id))


SendAnnouncementArgument = Annotated[
    SendAnnouncementInput, argument(description="The message and its recipients.")
]


@strawberry.type
class AnnouncementMutations:
    @SEND_ANNOUNCEMENT.mutation(
        "Write a mail to all who have a place in a slot or in a campaign and want announcements, "
        "once to each. A repeated request with the same key sends nothing, or what an interrupted "
        "one did not. An organizer sends at most 30 within an hour, all together 120. A leader of "
        "a slot writes to those who have a place in it, at most 5 times within an hour."
    )
    async def send_announcement(self, info: Info, input: SendAnnouncementArgument) -> object:
        sender = await _require_sender(info, input.slot_id, input.include_waiting)
        if not info.context.auth.sends_mail:
            raise GraphQLRequestError(ErrorCode.BAD_USER_INPUT, "This site sends no mail.")
        key = require_valid_key(input.idempotency_key)
        audience = _to_audience(
            input.slot_id, input.campaign_id, input.include_waiting, input.unplaced
        )
        if audience is None:
            if input.slot_id is not None:
                return refuse_id(SlotNotFound, input.slot_id)
            return refuse_id(CampaignNotFound, input.campaign_id or "")
        outcome = await announcements.send_announcement(
            info.context.services, sender, audience, input.subject, input.text, key or ""
        )
        return SEND_ANNOUNCEMENT.present(outcome, ResultView(sender))


@strawberry.type
class AnnouncementQueries:
    @field(
        description="How many users would get an announcement by mail: those of `sendAnnouncement`."
        " 0 if there is no such slot or campaign. Only those can read it who can send one."
    )
    async def announcement_recipient_count(
        self,
        info: Info,
        slot_id: Annotated[strawberry.ID | None, argument(description=SLOT_DESCRIPTION)] = None,
        campaign_id: Annotated[
            strawberry.ID | None, argument(description=CAMPAIGN_DESCRIPTION)
        ] = None,
        include_waiting: Annotated[bool, argument(description=WAITING_DESCRIPTION)] = False,
        unplaced: Annotated[bool, argument(description=UNPLACED_DESCRIPTION)] = False,
    ) -> int:
        await _require_sender(info, slot_id, include_waiting)
        audience = _to_audience(slot_id, campaign_id, include_waiting, unplaced)
        if audience is None:
            return 0
        return len(await announcements.find_recipients(info.context.services, audience))
