"""Each root field states to whom it belongs: everybody, users or organizers."""

from collections.abc import Collection
from typing import Any

from graphql import (
    GraphQLEnumType,
    GraphQLField,
    GraphQLInputObjectType,
    GraphQLInputType,
    GraphQLObjectType,
    get_named_type,
    get_nullable_type,
    is_composite_type,
    is_list_type,
    is_required_argument,
    is_required_input_field,
)

from slotlock.graphql.schema.schema import executable_schema
from tests.support.apps.processes import AppProcess
from tests.support.clients.booking_client import BookingClient
from tests.support.clients.client import GraphQLTestClient, open_websocket

PUBLIC = {
    "site", "serverTime",
    "me", "slot", "slots", "campaigns", "campaign", "node", "nodes", "register", "login",
    "setPassword", "tokenOwner", "refreshSession", "requestPasswordReset", "resetPassword",
    "draw", "draws", "drawById", "drawRecord", "startSignIn", "finishSignIn", "periods",
}  # fmt: skip
PUBLIC_SUBSCRIPTIONS = {"slotAvailability", "campaignAvailability", "campaignChanges"}
FOR_ORGANIZERS = {
    "users", "userGroups", "bookableUsers",
    "slotRoster", "slotHistory", "resources", "resource", "freeBusy",
    "campaignStatistics", "campaignReadiness", "unplaced", "auditLog", "slotWaitlist", "outbox",
    "mailPreviews", "undeliverableAddresses", "retryFailedOutboxEntries", "retryOutboxEntry",
    "checkIn", "undoCheckIn",
    "markNoShow", "undoNoShow", "createSlot", "updateSlot", "publishSlot", "cancelSlot",
    "deleteSlot", "createResource", "updateResource", "deleteResource", "importResources",
    "createCampaign", "updateCampaign", "publishCampaign", "unpublishCampaign",
    "deleteCampaign", "copyCampaign", "createSlotSeries", "addSeriesDates", "removeSeriesDates",
    "holidayLists", "createHolidayList", "updateHolidayList", "deleteHolidayList",
    "setGroups", "vouchForUser", "claimUser", "banUser", "unbanUser", "createUser",
    "inviteUser", "updateUser", "createPasswordReset", "setUserRole",
    "endUserSessions", "unlinkUserSignIn", "eraseUser", "createExportLink",
    "webhooks", "createWebhook", "updateWebhook", "rotateWebhookSecret", "deleteWebhook",
    "pingWebhook", "redeliverWebhook",
    "sendAnnouncement", "announcementRecipientCount", "siteSetup", "updateSite", "setPeriods",
    "configureDraw", "closeWishes", "runDraw", "previewDraw", "publishDraw", "supersedeDraw",
    "cancelDraw", "drawResult", "userBookings", "userWaitlistEntries", "userWishes",
}  # fmt: skip
SAMPLES = {
    "Boolean": False, "Int": 1, "ID": "x", "String": "x", "EmailAddress": "eve@slotlock.test",
    "DateTime": "2031-05-05T09:00:00Z", "Date": "2031-05-05", "TimeZone": "Europe/Berlin",
    "LocalTime": "09:00",
}  # fmt: skip


def sample(type_: GraphQLInputType) -> Any:
    """Return a valid value of a type with what is required only."""
    nullable = get_nullable_type(type_)
    if is_list_type(nullable):
        return [sample(nullable.of_type)]
    if isinstance(nullable, GraphQLEnumType):
        return next(iter(nullable.values))
    if isinstance(nullable, GraphQLInputObjectType):
        required = {k: f for k, f in nullable.fields.items() if is_required_input_field(f)}
        return {key: sample(field.type) for key, field in required.items()}
    return SAMPLES[get_named_type(nullable).name]


def operation(keyword: str, name: str, field: GraphQLField) -> tuple[str, dict[str, Any]]:
    """Return an operation of one field and its variables."""
    required = {key: arg for key, arg in field.args.items() if is_required_argument(arg)}
    declared = ", ".join(f"${key}: {argument.type}" for key, argument in required.items())
    arguments = ", ".join(f"{key}: ${key}" for key in required)
    selection = "{ __typename }" if is_composite_type(get_named_type(field.type)) else ""
    head, call = (f"({declared})", f"({arguments})") if required else ("", "")
    variables = {key: sample(argument.type) for key, argument in required.items()}
    return f"{keyword}{head} {{ {name}{call} {selection} }}", variables


def operations(keyword: str, root: GraphQLObjectType | None) -> dict[str, Any]:
    """Return an operation of each field of a root type by its name."""
    assert root is not None
    return {name: operation(keyword, name, field) for name, field in root.fields.items()}


OPERATIONS = operations("query", executable_schema.query_type)
OPERATIONS |= operations("mutation", executable_schema.mutation_type)
SUBSCRIPTIONS = operations("subscription", executable_schema.subscription_type)


async def names_with_code(client: GraphQLTestClient, names: Collection[str], code: str) -> set[str]:
    """Return the names of the fields that the server refuses to a client with this code."""
    found = set()
    for name in names:
        document, variables = OPERATIONS[name]
        errors = (await client.send(document, **variables)).get("errors", ())
        if any(error["extensions"]["code"] == code for error in errors):
            found.add(name)
    return found


async def test_all_but_public_fields_require_a_token(anonymous: GraphQLTestClient) -> None:
    refused = await names_with_code(anonymous, OPERATIONS, "UNAUTHENTICATED")
    assert OPERATIONS.keys() - refused == PUBLIC


async def test_members_are_refused_exactly_what_is_for_organizers(member: BookingClient) -> None:
    names = OPERATIONS.keys() - PUBLIC - {"logout"}
    assert await names_with_code(member, names, "FORBIDDEN") == FOR_ORGANIZERS


async def test_all_subscriptions_but_those_to_slots_and_campaigns_require_a_token(
    app: AppProcess,
) -> None:
    for name in SUBSCRIPTIONS.keys() - PUBLIC_SUBSCRIPTIONS:
        document, variables = SUBSCRIPTIONS[name]
        async with open_websocket(app) as opened:
            await opened.subscribe("1", document, **variables)
            message = await opened.receive()
        assert message["type"] == "error"
        assert message["payload"][0]["extensions"]["code"] == "UNAUTHENTICATED", name
