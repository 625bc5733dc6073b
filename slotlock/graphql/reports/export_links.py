"""Links to exports, which a browser can follow."""

from datetime import datetime
from typing import Annotated
from urllib.parse import urlencode

import strawberry
from strawberry import argument, field

from slotlock.auth import export_links
from slotlock.domain.booking.booking_refusals import SlotNotFound
from slotlock.domain.campaigns.campaign import CampaignNotFound
from slotlock.graphql.context import Info
from slotlock.graphql.core import ids
from slotlock.graphql.core.enums import CsvSeparator, ExportFormat, ExportGrouping, ExportLanguage
from slotlock.graphql.core.errors import bad_input
from slotlock.graphql.core.outcomes import Result, refuse_id, register_type
from slotlock.services.campaigns import campaigns
from slotlock.services.slots import viewer_queries


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


ExportLinkOutcome = ExportLink | SlotNotFound | CampaignNotFound

register_type(ExportLink, ExportLink, lambda link, _view: link)

CREATE_EXPORT_LINK = Result[ExportLinkOutcome]("CreateExportLinkResult", "The link, or a refusal.")

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


LanguageArgument = Annotated[
    ExportLanguage | None,
    argument(
        description="The language of the texts. Without it, a PDF has that of the browser that "
        "follows the link, and a table has the names and codes of the API."
    ),
]
GroupingArgument = Annotated[
    ExportGrouping, argument(description="What the sheets and rows of the file stand for.")
]


@strawberry.type
class ExportMutations:
    @CREATE_EXPORT_LINK.mutation(
        "Create a link to the roster of a slot or a campaign that a browser can follow "
        "for five minutes. Organizers only, and leaders for their slots, without addresses."
    )
    async def create_export_link(
        self,
        info: Info,
        id: TargetIdArgument,
        format: FormatArgument,
        separator: SeparatorArgument = None,
        language: LanguageArgument = None,
        grouping: GroupingArgument = ExportGrouping.SLOT,
    ) -> object:
        services, campaign_id = info.context.services, ids.parse_campaign_id(id)
        slot_id = None if campaign_id else ids.parse_slot_id(id)
        if campaign_id is not None:
            caller = info.context.require_organizer()
        else:
            caller = await info.context.require_leader(slot_id)
        if problem := grouping.problem_with(format, is_campaign=campaign_id is not None):
            raise bad_input("grouping", problem)
        if campaign_id is not None:
            if not await campaigns.find(services, campaign_id, caller):
                return refuse_id(CampaignNotFound, id)
            export = f"campaigns/{id}.{format.value}"
        else:
            if not (slot_id and await viewer_queries.find_slots(services, [slot_id], caller)):
                return refuse_id(SlotNotFound, id)
            export = f"slots/{id}.{format.value}"
        by = None if grouping is ExportGrouping.SLOT else grouping
        options = {"separator": separator, "language": language, "by": by}
        chosen = {name: each.value for name, each in options.items() if each is not None}
        export = f"{export}?{urlencode(chosen)}"
        link = export_links.create(info.context.auth, caller, export)
        url = info.context.to_url(f"/exports/links/{link.token}")
        return ExportLink(url=url, expires_at=link.expires_at)
