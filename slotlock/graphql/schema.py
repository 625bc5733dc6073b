"""The schema: everything above put together, once, at import."""

import strawberry
from graphql import GraphQLSchema
from strawberry.schema.config import StrawberryConfig
from strawberry.tools import merge_types

from slotlock.graphql.audit_queries import AuditQueries
from slotlock.graphql.calendar_addresses import CalendarMutations, CalendarQueries
from slotlock.graphql.campaign_queries import CampaignQueries
from slotlock.graphql.mutations.accounts import AccountMutations
from slotlock.graphql.mutations.booked import BookedMutations
from slotlock.graphql.mutations.booking import BookingMutations
from slotlock.graphql.mutations.campaigns import CampaignMutations
from slotlock.graphql.mutations.own_sessions import OwnSessionMutations, OwnSessionQueries
from slotlock.graphql.mutations.people import PeopleMutations
from slotlock.graphql.mutations.queueing import QueueMutations, QueueQueries
from slotlock.graphql.mutations.series import SeriesMutations
from slotlock.graphql.mutations.slots import SlotMutations
from slotlock.graphql.mutations.teams import TeamMutations
from slotlock.graphql.mutations.waitlist import WaitlistMutations
from slotlock.graphql.organiser_queries import OrganiserQueries
from slotlock.graphql.people_queries import PeopleQueries
from slotlock.graphql.queries import Query as SlotQueries
from slotlock.graphql.scalars import SCALARS
from slotlock.graphql.subscriptions import Subscription
from slotlock.graphql.team_queries import TeamQueries

Query = merge_types(
    "Query",
    (
        SlotQueries,
        QueueQueries,
        CampaignQueries,
        TeamQueries,
        PeopleQueries,
        OwnSessionQueries,
        CalendarQueries,
        OrganiserQueries,
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
        QueueMutations,
        BookedMutations,
        WaitlistMutations,
        SlotMutations,
        CampaignMutations,
        SeriesMutations,
        TeamMutations,
        PeopleMutations,
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
executable: GraphQLSchema = schema._schema
