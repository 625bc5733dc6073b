"""What a client shows before anybody has signed in: the site, and the time of the server."""

from datetime import datetime

import strawberry
from strawberry import field

from slotlock.auth.password_policy.rules import (
    MAX_PASSWORD_LENGTH,
    MIN_PASSWORD_LENGTH,
    RULES_TEXT,
)
from slotlock.domain.site import site
from slotlock.graphql.context import Info
from slotlock.graphql.core.enums import FormOfAddress, Registration
from slotlock.graphql.core.scalars import TimeZone


@strawberry.type(description="A provider at which users sign in, such as the school.")
class SignInProvider:
    id: str = field(description="The id, for `startSignIn`.")
    name: str = field(description="The name that clients show.")


@strawberry.type(description="What a new password must be, for the form that asks for one.")
class PasswordRules:
    min_length: int = field(description="The least number of characters.")
    max_length: int = field(description="The greatest number of characters.")
    text: str = field(description="All rules in English, for users.")


@strawberry.type(
    description="The site that this server belongs to, as the school or its settings describe it."
)
class Site:
    name: str = field(description="The name that clients show, such as that of the school.")
    registration: Registration = field(description="Who gets an account.")
    password_sign_in: bool = field(
        description="Whether members sign in with a password. Otherwise only organizers and admins "
        "do, and members sign in at a provider."
    )
    password_rules: PasswordRules = field(description="What a new password must be.")
    sign_in_providers: list[SignInProvider] = field(
        description="The providers at which users sign in (`startSignIn`)."
    )
    sends_mail: bool = field(
        description="Whether users get mails, and can request one for a forgotten password."
    )
    require_verified_email: bool = field(
        description="Whether users verify their e-mail address before they get places."
    )
    developers_url: str | None = field(
        description="The address of a page with examples for developers; null in production."
    )
    color: str | None = field(
        description="The color of the site as `#rrggbb`, if it has one. Text on it is white."
    )
    logo_url: str | None = field(description="The address of the logo, if there is one.")
    imprint_url: str | None = field(description="The address of the imprint, if there is one.")
    privacy_url: str | None = field(
        description="The address of the privacy notice, if there is one."
    )
    form_of_address: FormOfAddress = field(description="How texts in German address members.")
    logs_errors: bool = field(
        description="Whether the log takes errors of the board, which sends them only then."
    )
    time_zone: TimeZone = field(
        description="The time zone of times that are about no slot; UTC by default."
    )


@strawberry.type(description="What a site shows of itself; null for no value.")
class SiteValues:
    name: str | None = field(description="The name, such as that of the school.")
    color: str | None = field(description="The color as `#rrggbb`.")
    logo_url: str | None = field(description="The address of the logo.")
    imprint_url: str | None = field(description="The address of the imprint.")
    privacy_url: str | None = field(description="The address of the privacy notice.")
    locale: str | None = field(
        description="The language of mails, letters and calendars for users who have chosen none."
    )
    time_zone: TimeZone | None = field(description="The time zone of times that are about no slot.")
    mail_closing: str | None = field(description="With what mails to members end.")
    form_of_address: FormOfAddress | None = field(
        description="How texts in German address members."
    )


@strawberry.type(description="What the school set itself of the site, before its settings.")
class SiteSetup:
    own: SiteValues = field(description="What the school set itself. It comes first.")
    settings: SiteValues = field(description="What the settings say of all values.")


def show_setup(own: site.SiteValues, settings: site.SiteValues) -> SiteSetup:
    """Return what organizers see of the values of the site."""
    return SiteSetup(own=_show(own), settings=_show(settings))


def _show(values: site.SiteValues) -> SiteValues:
    return SiteValues(
        name=values.name or None,
        color=values.color or None,
        logo_url=values.logo_url or None,
        imprint_url=values.imprint_url or None,
        privacy_url=values.privacy_url or None,
        locale=values.locale or None,
        time_zone=TimeZone(values.time_zone) if values.time_zone else None,
        mail_closing=values.mail_closing or None,
        form_of_address=FormOfAddress(values.form_of_address) if values.form_of_address else None,
    )


@strawberry.type
class SiteQueries:
    @field(description="The site. Everybody may read it.")
    async def site(self, info: Info) -> Site:
        settings, auth = info.context.site, info.context.auth
        values = await info.context.services.site.load()
        return Site(
            name=values.name,
            registration=auth.registration,
            password_sign_in=auth.password_sign_in,
            password_rules=PasswordRules(
                min_length=MIN_PASSWORD_LENGTH, max_length=MAX_PASSWORD_LENGTH, text=RULES_TEXT
            ),
            sign_in_providers=[
                SignInProvider(id=each.id, name=each.name)
                for each in (auth.sign_on.providers if auth.sign_on else ())
            ],
            sends_mail=auth.sends_mail,
            require_verified_email=settings.require_verified_email,
            developers_url=settings.developers_url,
            color=values.color or None,
            logo_url=values.logo_url or None,
            imprint_url=values.imprint_url or None,
            privacy_url=values.privacy_url or None,
            form_of_address=(FormOfAddress.FORMAL if values.is_formal else FormOfAddress.INFORMAL),
            logs_errors=settings.logs_errors,
            time_zone=TimeZone(values.time_zone),
        )

    @field(
        description="What the school set itself of the site, and what the settings say. "
        "Organizers only."
    )
    async def site_setup(self, info: Info) -> SiteSetup:
        info.context.require_organizer()
        services = info.context.services
        return show_setup(await services.site_values.find(), services.site.defaults)

    @field(
        description="The time by which the server decides, which is that of MongoDB. Everybody may "
        "read it. A client whose clock is wrong counts from here until a campaign opens."
    )
    def server_time(self, info: Info) -> datetime:
        return info.context.services.now()
