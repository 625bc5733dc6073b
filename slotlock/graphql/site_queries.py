"""What a client shows before anybody has signed in: the site, and the time of the server."""

from datetime import datetime

import strawberry
from strawberry import field

from slotlock.auth.password_policy.rules import (
    MAX_PASSWORD_LENGTH,
    MIN_PASSWORD_LENGTH,
    RULES_TEXT,
)
from slotlock.graphql.context import Info
from slotlock.graphql.core.enums import Registration
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


@strawberry.type(description="The site that this server belongs to, as its settings describe it.")
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
    logs_errors: bool = field(
        description="Whether the log takes errors of the board, which sends them only then."
    )
    time_zone: TimeZone = field(
        description="The time zone of times that are about no slot; UTC by default."
    )


@strawberry.type
class SiteQueries:
    @field(description="The site. Everybody may read it.")
    def site(self, info: Info) -> Site:
        site, auth = info.context.site, info.context.auth
        return Site(
            name=site.name,
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
            require_verified_email=site.require_verified_email,
            developers_url=site.developers_url,
            color=site.color,
            logo_url=site.logo_url,
            imprint_url=site.imprint_url,
            privacy_url=site.privacy_url,
            logs_errors=site.logs_errors,
            time_zone=TimeZone(site.time_zone),
        )

    @field(
        description="The time by which the server decides, which is that of MongoDB. Everybody may "
        "read it. A client whose clock is wrong counts from here until a campaign opens."
    )
    def server_time(self, info: Info) -> datetime:
        return info.context.services.now()
