"""The schema, built once at import from the queries and mutations of every capability."""

import strawberry
from graphql import GraphQLSchema
from strawberry.schema.config import StrawberryConfig
from strawberry.tools import merge_types

from slotlock.graphql.accounts.administration import UserAdministrationMutations
from slotlock.graphql.accounts.mutations import AccountMutations
from slotlock.graphql.accounts.sessions import OwnSessionMutations, OwnSessionQueries
from slotlock.graphql.booking.attendance import AttendanceMutations
from slotlock.graphql.booking.book import BookingMutations
from slotlock.graphql.booking.book_series import SeriesBookingMutations
from slotlock.graphql.booking.changes import BookingChangeMutations
from slotlock.graphql.booking.tickets import TicketMutations, TicketQueries
from slotlock.graphql.booking.waitlist import WaitlistMutations
from slotlock.graphql.booking.waitlist_queries import WaitlistQueries
from slotlock.graphql.campaigns.copies import CampaignCopyMutations
from slotlock.graphql.campaigns.mutations import CampaignMutations
from slotlock.graphql.campaigns.queries import CampaignQueries
from slotlock.graphql.core.scalars import SCALARS
from slotlock.graphql.reports.audit_queries import AuditQueries
from slotlock.graphql.reports.export_links import ExportMutations
from slotlock.graphql.reports.free_busy import FreeBusyQueries
from slotlock.graphql.reports.queries import CampaignReportQueries
from slotlock.graphql.resources.mutations import ResourceMutations
from slotlock.graphql.resources.queries import ResourceQueries
from slotlock.graphql.schema.nodes import NodeQueries
from slotlock.graphql.schema.subscriptions import Subscription
from slotlock.graphql.slots.mutations import SlotMutations
from slotlock.graphql.slots.queries import SlotQueries
from slotlock.graphql.slots.series import SeriesMutations
from slotlock.graphql.teams.mutations import TeamMutations
from slotlock.graphql.teams.queries import TeamQueries
from slotlock.graphql.users.calendar_feed import CalendarMutations, CalendarQueries
from slotlock.graphql.users.mutations import UserMutations
from slotlock.graphql.users.queries import UserQueries

Query = merge_types(
    "Query",
    (
        UserQueries,
        SlotQueries,
        ResourceQueries,
        FreeBusyQueries,
        CampaignQueries,
        TicketQueries,
        TeamQueries,
        OwnSessionQueries,
        CalendarQueries,
        CampaignReportQueries,
        AuditQueries,
        WaitlistQueries,
        NodeQueries,
    ),
)
Query.__strawberry_definition__.description = "The root of all queries."  # type: ignore[attr-defined]
Mutation = merge_types(
    "Mutation",
    (
        AccountMutations,
        OwnSessionMutations,
        BookingMutations,
        SeriesBookingMutations,
        TicketMutations,
        BookingChangeMutations,
        AttendanceMutations,
        WaitlistMutations,
        SlotMutations,
        ResourceMutations,
        CampaignMutations,
        CampaignCopyMutations,
        SeriesMutations,
        TeamMutations,
        UserMutations,
        UserAdministrationMutations,
        CalendarMutations,
        ExportMutations,
    ),
)
Mutation.__strawberry_definition__.description = "The root of all mutations."  # type: ignore[attr-defined]

schema = strawberry.Schema(
    query=Query,
    mutation=Mutation,
    subscription=Subscription,
    config=StrawberryConfig(scalar_map=SCALARS),
)

# graphql-core parses, validates and executes documents without Strawberry, so that each distinct
# document is parsed and validated only once (docs/decisions).
executable_schema: GraphQLSchema = schema._schema
