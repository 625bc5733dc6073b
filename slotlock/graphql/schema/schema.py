"""The schema, built once at import from the queries and mutations of every capability."""

import strawberry
from graphql import GraphQLSchema
from strawberry.schema.config import StrawberryConfig
from strawberry.tools import merge_types

from slotlock.graphql.accounts.account_admin_mutations import AccountAdminMutations
from slotlock.graphql.accounts.account_mutations import AccountMutations
from slotlock.graphql.accounts.sessions import OwnSessionMutations, OwnSessionQueries
from slotlock.graphql.accounts.sign_on import SignOnMutations
from slotlock.graphql.booking.attendance import AttendanceMutations
from slotlock.graphql.booking.book import BookingMutations
from slotlock.graphql.booking.booking_changes import BookingChangeMutations
from slotlock.graphql.booking.tickets import TicketMutations, TicketQueries
from slotlock.graphql.booking.user_places import UserPlaceQueries
from slotlock.graphql.booking.waitlist import WaitlistMutations, WaitlistQueries
from slotlock.graphql.campaigns.campaign_copies import CampaignCopyMutations
from slotlock.graphql.campaigns.campaign_mutations import CampaignMutations
from slotlock.graphql.campaigns.campaign_queries import CampaignQueries
from slotlock.graphql.core.scalars import SCALARS
from slotlock.graphql.draws.draw_mutations import DrawMutations
from slotlock.graphql.draws.draw_queries import DrawQueries
from slotlock.graphql.notifications.webhooks import WebhookMutations, WebhookQueries
from slotlock.graphql.periods import PeriodMutations, PeriodQueries
from slotlock.graphql.reports.announcements import AnnouncementMutations, AnnouncementQueries
from slotlock.graphql.reports.audit_queries import AuditQueries
from slotlock.graphql.reports.campaign_readiness import CampaignReadinessQueries
from slotlock.graphql.reports.campaign_report_queries import CampaignReportQueries
from slotlock.graphql.reports.export_links import ExportMutations
from slotlock.graphql.reports.free_busy import FreeBusyQueries
from slotlock.graphql.reports.mail_previews import MailPreviewQueries
from slotlock.graphql.reports.outbox_queries import OutboxMutations, OutboxQueries
from slotlock.graphql.resources.resource_mutations import ResourceMutations
from slotlock.graphql.resources.resource_queries import ResourceQueries
from slotlock.graphql.schema.nodes import NodeQueries
from slotlock.graphql.schema.subscriptions import Subscription
from slotlock.graphql.site_mutations import SiteMutations
from slotlock.graphql.site_queries import SiteQueries
from slotlock.graphql.slots.holiday_lists import HolidayListMutations, HolidayListQueries
from slotlock.graphql.slots.my_meetings import MyMeetingQueries
from slotlock.graphql.slots.series_mutations import SeriesMutations
from slotlock.graphql.slots.slot_mutations import SlotMutations
from slotlock.graphql.slots.slot_queries import SlotQueries
from slotlock.graphql.teams.team_mutations import TeamMutations
from slotlock.graphql.teams.team_queries import TeamQueries
from slotlock.graphql.users.calendar_feed import CalendarMutations, CalendarQueries
from slotlock.graphql.users.user_mutations import UserMutations
from slotlock.graphql.users.user_queries import UserQueries

Query = merge_types(
    "Query",
    (
        SiteQueries,
        UserQueries,
        SlotQueries,
        UserPlaceQueries,
        MyMeetingQueries,
        ResourceQueries,
        HolidayListQueries,
        PeriodQueries,
        FreeBusyQueries,
        CampaignQueries,
        DrawQueries,
        TicketQueries,
        TeamQueries,
        OwnSessionQueries,
        CalendarQueries,
        CampaignReportQueries,
        CampaignReadinessQueries,
        AuditQueries,
        OutboxQueries,
        MailPreviewQueries,
        AnnouncementQueries,
        WaitlistQueries,
        WebhookQueries,
        NodeQueries,
    ),
)
Query.__strawberry_definition__.description = "The root of all queries."  # type: ignore[attr-defined]
Mutation = merge_types(
    "Mutation",
    (
        AccountMutations,
        OwnSessionMutations,
        SignOnMutations,
        BookingMutations,
        TicketMutations,
        BookingChangeMutations,
        AttendanceMutations,
        WaitlistMutations,
        SlotMutations,
        ResourceMutations,
        HolidayListMutations,
        PeriodMutations,
        CampaignMutations,
        CampaignCopyMutations,
        DrawMutations,
        SeriesMutations,
        TeamMutations,
        UserMutations,
        AccountAdminMutations,
        CalendarMutations,
        ExportMutations,
        WebhookMutations,
        OutboxMutations,
        AnnouncementMutations,
        SiteMutations,
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
