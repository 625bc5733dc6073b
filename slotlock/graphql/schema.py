"""The schema: everything above put together, once, at import."""

import strawberry
from graphql import GraphQLSchema
from strawberry.schema.config import StrawberryConfig
from strawberry.tools import merge_types

from slotlock.graphql.audit_queries import AuditQueries
from slotlock.graphql.calendar_addresses import CalendarMutations, CalendarQueries
from slotlock.graphql.campaign_queries import CampaignQueries
from slotlock.graphql.mutations.accounts import AccountMutations
from slotlock.graphql.mutations.booked import BookingChangeMutations
from slotlock.graphql.mutations.booking import BookingMutations
from slotlock.graphql.mutations.campaigns import CampaignMutations
from slotlock.graphql.mutations.own_sessions import OwnSessionMutations, OwnSessionQueries
from slotlock.graphql.mutations.people import UserMutations
from slotlock.graphql.mutations.queueing import TicketMutations, TicketQueries
from slotlock.graphql.mutations.series import SeriesMutations
from slotlock.graphql.mutations.slots import SlotMutations
from slotlock.graphql.mutations.teams import TeamMutations
from slotlock.graphql.mutations.waitlist import WaitlistMutations
from slotlock.graphql.organiser_queries import CampaignReportQueries
from slotlock.graphql.people_queries import UserQueries
from slotlock.graphql.queries import SlotQueries as SlotQueries
from slotlock.graphql.scalars import SCALARS
from slotlock.graphql.subscriptions import Subscription
from slotlock.graphql.team_queries import TeamQueries

Query = merge_types(
    "Query",
    (
        SlotQueries,
        TicketQueries,
        CampaignQueries,
        TeamQueries,
        UserQueries,
        OwnSessionQueries,
        CalendarQueries,
        CampaignReportQueries,
        AuditQueries,
    ),
)
Query.__strawberry_definition__.description = "What can be read."  # type: ignore[attr-defined]
Mutation = merge_types(
    "Mutation",
    (
        AccountMutations,
        OwnSessionMutations,
        BookingMutations,
        TicketMutations,
        BookingChangeMutations,
        WaitlistMutations,
        SlotMutations,
        CampaignMutations,
        SeriesMutations,
        TeamMutations,
        UserMutations,
        CalendarMutations,
    ),
)
Mutation.__strawberry_definition__.description = "What can be changed."  # type: ignore[attr-defined]

schema = strawberry.Schema(
    query=Query,
    mutation=Mutation,
    subscription=Subscription,
    config=StrawberryConfig(scalar_map=SCALARS),
)

# Strawberry builds the schema; documents are parsed, checked and executed by graphql-core directly,
# so that each distinct text is parsed and checked once (docs/decisions).
executable_schema: GraphQLSchema = schema._schema
