"""Links to exports, which a browser can follow."""

from datetime import datetime
from typing import Annotated

import strawberry
from strawberry import argument, field

from slotlock.auth.links import export_links
from slotlock.graphql.campaigns.refusals import CampaignNotFound
from slotlock.graphql.context import Info
from slotlock.graphql.core import ids
from slotlock.graphql.core.enums import CsvSeparator, ExportFormat
from slotlock.graphql.core.refusals import Refusal
from slotlock.graphql.slots.refusals import SlotNotFound
from slotlock.services.campaigns import campaigns
from slotlock.services.slots import queries


@strawberry.type(
    description="A link to one export. It works without an `Authorization` header, for the session "
    "that created it."
)
class ExportLink:
    url: str = field(
        description="The address of the file: absolute if the server knows its public address, "
        "else a path on this server."
    )
    expires_at: datetime = field(description="When the link stops working.")


CreateExportLinkResult = Annotated[
    ExportLink | SlotNotFound | CampaignNotFound,
    strawberry.union("CreateExportLinkResult", description="The link, or a refusal."),
]
TargetIdArgument = Annotated[
    strawberry.ID, argument(description="The id of the slot or the campaign to export.")
]
FormatArgument = Annotated[ExportFormat, argument(description="The format of the file.")]
SeparatorArgument = Annotated[
    CsvSeparator | None,
    argument(
        description="What separates the cells of a CSV file. Without it, the language of the "
        "browser that follows the link decides."
    ),
]


@strawberry.type
class ExportMutations:
    @field(
        description="Create a link to the roster of a slot or a campaign that a browser can follow "
        "for five minutes. Organizers only.",
        graphql_type=CreateExportLinkResult,
    )
    async def create_export_link(
        self,
        info: Info,
        id: TargetIdArgument,  # noqa: A002
        format: FormatArgument,  # noqa: A002
        separator: SeparatorArgument = None,
    ) -> ExportLink | Refusal:
        organizer, services = info.context.require_organizer(), info.context.services
        campaign_id = ids.parse_campaign_id(id)
        if campaign_id is not None:
            if not await campaigns.find(services, campaign_id, organizer):
                return CampaignNotFound.for_id(id)
            export = f"campaigns/{id}.{format.value}"
        else:
            slot_id = ids.parse_slot_id(id)
            if not (slot_id and await queries.find_slots(services, [slot_id], organizer)):
                return SlotNotFound.for_id(id)
            export = f"slots/{id}.{format.value}"
        if separator is not None:
            export += f"{export_links.SEPARATOR_OF_LINK}{separator.value}"
        link = export_links.create(info.context.auth, organizer, export)
        url = info.context.to_url(f"/exports/links/{link.token}")
        return ExportLink(url=url, expires_at=link.expires_at)
