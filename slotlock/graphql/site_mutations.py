"""What a school sets itself of the site."""

from collections.abc import Mapping
from typing import Annotated

import strawberry
from strawberry import UNSET, argument, field

from slotlock.domain.site.site import SITE_FIELDS, SiteSaved, UpdateSiteOutcome
from slotlock.graphql.context import Info
from slotlock.graphql.core.enums import FormOfAddress
from slotlock.graphql.core.outcomes import Result, ResultView, register_type
from slotlock.graphql.site_queries import SiteSetup, show_setup
from slotlock.services.site import current_site


@strawberry.input(
    description="The changes to what the school sets itself. A field that is left out does not "
    "change; null or an empty text takes a value back, so that the setting holds again."
)
class UpdateSiteInput:
    name: str | None = field(default=UNSET, description="The name, 1 to 100 characters.")
    color: str | None = field(
        default=UNSET, description="The color as `#rrggbb`. Clients make it readable."
    )
    logo: str | None = field(
        default=UNSET,
        description="The logo in Base64: a PNG, JPEG or WebP image of at most 100 kB.",
    )
    imprint_url: str | None = field(
        default=UNSET, description="The address of the imprint, with https."
    )
    privacy_url: str | None = field(
        default=UNSET, description="The address of the privacy notice, with https."
    )
    locale: str | None = field(
        default=UNSET,
        description="The language of mails, letters and calendars for users who have chosen none: "
        "`en`, `de` or `zh`.",
    )
    time_zone: str | None = field(
        default=UNSET, description="The time zone of times that are about no slot."
    )
    mail_closing: str | None = field(
        default=UNSET,
        description="With what mails to members end, such as whom to ask: a line of at most 300 "
        "characters.",
    )
    form_of_address: FormOfAddress | None = field(
        default=UNSET, description="How texts in German address members; by default as du."
    )

    def to_changes(self) -> Mapping[str, str]:
        """Return the changed values by attribute."""
        sent = {name: getattr(self, name, UNSET) for name in SITE_FIELDS.values()}
        if self.logo is not UNSET and not self.logo:
            sent["logo_url"] = ""
        return {name: text or "" for name, text in sent.items() if text is not UNSET}


register_type(SiteSaved, SiteSetup, lambda saved, _view: show_setup(saved.own, saved.settings))
UPDATE_SITE = Result[UpdateSiteOutcome]("UpdateSiteResult", "The values of the site, or a refusal.")


@strawberry.type
class SiteMutations:
    @UPDATE_SITE.mutation(
        "Change what the school sets itself of the site. All processes use it within ten seconds. "
        "Admins only."
    )
    async def update_site(
        self,
        info: Info,
        input: Annotated[UpdateSiteInput, argument(description="The changes.")],
    ) -> object:
        admin, services = info.context.require_admin(), info.context.services
        outcome = await current_site.update(
            services.site, input.to_changes(), admin.user_id, input.logo or ""
        )
        return UPDATE_SITE.present(outcome, ResultView(admin))
