"""Refusals: expected results that a client can act on, returned as data."""

from collections.abc import Iterable
from enum import Enum
from importlib import import_module

import strawberry
from strawberry import field

from slotlock.domain.booking.booking import BookingLimit
from slotlock.domain.shared.declare import declarations
from slotlock.graphql.core.enums import make_enum

# All modules that declare refusals. A refusal of another one has no code, which fails at import.
DECLARING_MODULES = (
    "slotlock.auth.accounts",
    "slotlock.auth.invitations",
    "slotlock.auth.sessions",
    "slotlock.auth.sign_on.identities",
    "slotlock.auth.sign_on.sign_in",
    "slotlock.domain.admission.tickets",
    "slotlock.domain.booking.booking_outcomes",
    "slotlock.domain.booking.booking_refusals",
    "slotlock.domain.campaign_copies.campaign_copy_outcomes",
    "slotlock.domain.campaigns.campaign",
    "slotlock.domain.draws.draw",
    "slotlock.domain.notifications.announcements",
    "slotlock.domain.resources.resource",
    "slotlock.domain.schedule.holidays",
    "slotlock.domain.shared.validation",
    "slotlock.domain.slots.slot_outcomes",
    "slotlock.domain.slots.resource_conflicts",
    "slotlock.domain.slots.series",
    "slotlock.domain.slots.series_dates",
    "slotlock.domain.teams.team_outcomes",
    "slotlock.domain.users.account_admin_rules",
)
for each in DECLARING_MODULES:
    import_module(each)
_descriptions = {each.code: each.description for each in declarations.values() if each.message}
RefusalCode = make_enum(
    "RefusalCode",
    "Why the server refused a request. The list grows as the schema does.",
    ((code, code, description) for code, description in sorted(_descriptions.items())),
)

USE_OVERRIDDEN_REFUSALS = "Use `overriddenRefusals`, which has the words of the refusals."


def refusal_codes(limits: Iterable[BookingLimit]) -> list[Enum]:
    """Return the codes of the refusals that were overridden with these limits."""
    codes = dict.fromkeys(limit.refusal_code for limit in limits)
    return [RefusalCode[code] for code in codes if code]


@strawberry.interface(
    description="An expected reason why a request was not carried out. Clients can select `code` "
    "and `message` of every refusal, including those that are added later."
)
class Refusal:
    code: Enum = field(description="The reason, for programs.", graphql_type=RefusalCode)
    message: str = field(description="The reason as a sentence in English, to show to users.")
