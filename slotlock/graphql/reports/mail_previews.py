"""What each kind of mail says, before anything is sent."""

from typing import Annotated

import strawberry
from strawberry import argument, field

from slotlock.domain.shared.validation import InvalidInput
from slotlock.domain.site.site import checked_changes
from slotlock.graphql.context import Info
from slotlock.graphql.core import ids
from slotlock.graphql.core.errors import bad_input
from slotlock.graphql.site_mutations import UpdateSiteInput


@strawberry.type(description="What a mail of one kind would say to the caller.")
class MailPreview:
    kind: str = field(description="The kind, as `OutboxEntry.kind`.")
    subject: str = field(description="What the mail is about, in one line.")
    text: str = field(description="What the mail says, in lines.")
    html: str = field(description="The same text as a page of HTML.")


@strawberry.type
class MailPreviewQueries:
    @field(
        description="A mail of each kind as it would be sent, about a slot, about the next slot of "
        "a campaign, or about an example. Nothing is sent. Organizers only."
    )
    async def mail_previews(
        self,
        info: Info,
        locale: Annotated[
            str | None,
            argument(description="The language, such as `de`; by default that of the caller."),
        ] = None,
        slot_id: Annotated[
            strawberry.ID | None, argument(description="The slot that the mails are about.")
        ] = None,
        campaign_id: Annotated[
            strawberry.ID | None,
            argument(description="The campaign with the slot that the mails are about."),
        ] = None,
        site: Annotated[
            UpdateSiteInput | None,
            argument(description="As if `updateSite` had got these changes."),
        ] = None,
    ) -> list[MailPreview]:
        # It imports a template engine, which many processes never need.
        from slotlock.services.notifications.mail_previews import preview_mails

        caller = info.context.require_organizer()
        parsed_slot = slot_id and ids.parse_slot_id(slot_id)
        parsed_campaign = campaign_id and ids.parse_campaign_id(campaign_id)
        changes = checked_changes(site.to_changes() if site else {})
        if isinstance(changes, InvalidInput):
            raise bad_input("site", changes.sentences)
        organizer = await info.context.loaders.user(caller.user_id)
        previews = organizer and await preview_mails(
            info.context.services,
            info.context.site.board_url,
            organizer,
            locale,
            slot_id=parsed_slot or None,
            campaign_id=parsed_campaign or None,
            changes=changes,
        )
        if not previews or (slot_id and not parsed_slot) or (campaign_id and not parsed_campaign):
            name = "slotId" if slot_id else "campaignId"
            raise bad_input(name, f"`{name}` must be the id of a slot or a campaign that exists.")
        return [
            MailPreview(
                kind=each.kind,
                subject=each.content.subject,
                text=each.content.text,
                html=each.content.html,
            )
            for each in previews
        ]
