"""Every connection of the schema, found by traversing it, with items in each of them."""

import secrets
from base64 import urlsafe_b64decode
from dataclasses import dataclass
from string import hexdigits

import httpx
import orjson
from graphql import GraphQLField, GraphQLObjectType, get_named_type, is_required_argument

from slotlock.graphql.core.cursors import CHECKSUM_BYTES
from slotlock.graphql.schema.schema import executable_schema
from tests.support.apps.processes import AppProcess
from tests.support.clients.booking_client import BookingClient, create_booking_clients
from tests.support.clients.campaigns import create_campaign, set_groups
from tests.support.clients.client import Json, hours_from_now, times_in
from tests.support.clients.series import CREATE_SERIES
from tests.support.queue.documents import REQUEST_BOOKING
from tests.support.scenarios.led_course import CREATE_LED

PAGE_FIELDS = "edges { cursor } pageInfo { hasNextPage hasPreviousPage endCursor }"


def _find_connections() -> dict[str, tuple[str, GraphQLField]]:
    """Return every field that returns a connection, by the name that its cursors contain."""
    found = {}
    for type_ in executable_schema.type_map.values():
        if isinstance(type_, GraphQLObjectType):
            for name, field in type_.fields.items():
                if get_named_type(field.type).name.endswith("Connection"):
                    begin = type_.name[0].lower() + type_.name[1:]
                    of = name if type_.name == "Query" else f"{begin}.{name}"
                    found[of] = (name, field)
    return found


CONNECTION_FIELDS = _find_connections()
CONNECTION_NAMES = list(CONNECTION_FIELDS)

CREATE_WEBHOOK = """mutation($campaignId: ID!) { createWebhook(input: {
  url: "https://receiver.invalid/", events: [BOOKING_NO_SHOW], campaignId: $campaignId
}) { ... on WebhookWithSecret { webhook { id } } } }"""
PING_WEBHOOK = "mutation($id: ID!) { pingWebhook(webhookId: $id) { __typename } }"
CREATE_HOLIDAYS = """mutation($input: CreateHolidayListInput!) {
  createHolidayList(input: $input) { __typename }
}"""


def item_of(cursor: str) -> str:
    """Return what a cursor says of its item: without the time of the first page."""
    match orjson.loads(urlsafe_b64decode(cursor)[CHECKSUM_BYTES:]):
        case [start, id_, _, bool()]:
            return f"{start} {id_}"
    return cursor


@dataclass(frozen=True)
class ConnectionFixture:
    """An organizer who may read every connection, and the arguments to read them with."""

    reader: BookingClient
    app: AppProcess
    slot_id: str
    full_slot_id: str
    campaign_id: str
    series_id: str
    webhook_id: str
    reader_id: str

    def page_query(self, connection: str) -> str:
        """Return the query for a page of a connection with its required arguments."""
        arguments = {
            "slotId": f'"{self.full_slot_id if connection == "slotWaitlist" else self.slot_id}"',
            "campaignId": f'"{self.campaign_id}"',
            "userId": f'"{self.reader_id}"',
            "filter": f'{{campaignId: "{self.campaign_id}"}}',
        }
        name, field = CONNECTION_FIELDS[connection]
        required = [key for key, argument in field.args.items() if is_required_argument(argument)]
        prefix = "".join(f"{key}: {arguments[key]}, " for key in required)
        page = f"{name}({prefix}first: $first, after: $after) {{ {PAGE_FIELDS} }}"
        parent = connection.partition(".")[0]
        nodes = {"slotSeries": self.series_id, "webhook": self.webhook_id}
        if parent in nodes:
            type_name = parent[0].upper() + parent[1:]
            page = f'node(id: "{nodes[parent]}") {{ ... on {type_name} {{ {page} }} }}'
        elif parent != connection:
            page = f'{parent}(campaignId: "{self.campaign_id}") {{ {page} }}'
        return f"query($first: Int! = 20, $after: String) {{ {page} }}"

    async def send_page_query(self, connection: str, **page_arguments: object) -> Json:
        """Query a page of a connection and return the whole response."""
        return await self.reader.send(self.page_query(connection), **page_arguments)

    async def fetch_page(self, connection: str, **page_arguments: object) -> Json:
        """Return a page of a connection."""
        found: Json = await self.reader.execute(self.page_query(connection), **page_arguments)
        return found if "edges" in found else found[connection.partition(".")[2]]

    async def all_items(self, connection: str) -> set[str]:
        """Return the items of a connection, as `item_of` does."""
        items, info = set(), {"hasNextPage": True, "endCursor": None}
        while info["hasNextPage"]:
            page = await self.fetch_page(connection, first=100, after=info["endCursor"])
            items |= {item_of(edge["cursor"]) for edge in page["edges"]}
            info = page["pageInfo"]
        return items

    async def add_activity(self) -> None:
        """Add an item to every connection at a random position, and remove items from some."""
        reader, hour = self.reader, 24 + secrets.randbelow(1_000)
        times = times_in(hour)
        new, other = [await reader.add_slot(campaignId=self.campaign_id, **times) for _ in range(2)]
        await reader.book_slot(new)
        await reader.cancel_booking((await reader.book_slot(other))["booking"]["id"])
        (booked_user, cancelling_user), _ = create_booking_clients(reader.http, 2, self.app)
        for user in (booked_user, cancelling_user):
            await set_groups(reader, user, secrets.token_hex(4))
        await reader.book_slot(self.slot_id, userId=await booked_user.fetch_user_id())
        await booked_user.join(self.full_slot_id)
        await reader.import_resources(f"Room {secrets.token_hex(4)}")
        days = [{"first": "2031-04-07", "name": "Easter"}]
        await reader.execute(
            CREATE_HOLIDAYS, input={"name": secrets.token_hex(8), "holidays": days}
        )
        await cancelling_user.cancel_booking(
            (await cancelling_user.book_slot(self.slot_id))["booking"]["id"]
        )
        await booked_user.book_slot(waiting := await reader.add_slot(**times))
        await reader.join(waiting)
        await reader.execute(REQUEST_BOOKING, input={"slotId": await reader.add_slot(**times)})
        await create_campaign(reader, opensAt=hours_from_now(-hour))
        await reader.cancel_slot(other)
        await reader.execute(PING_WEBHOOK, id=self.webhook_id)


async def create_connection_fixture(
    http: httpx.AsyncClient, app: AppProcess, activity_rounds: int
) -> ConnectionFixture:
    """Create slots, campaigns and bookings so that every connection has several items."""
    _, reader = create_booking_clients(http, 0, app)
    # The classes of all users are hexadecimal, and the reader leads a slot.
    campaign_id = await create_campaign(
        reader, leaderGroups=[f"{digit}*" for digit in hexdigits[:16]]
    )
    reader_id, led = await reader.fetch_user_id(), f"Teacher {secrets.token_hex(4)}"
    await reader.execute(CREATE_LED, name=led, leader=reader_id)
    times = times_in(500)
    weekly = {"slot": {"title": "Weekly", **times}, "rrule": "FREQ=WEEKLY;COUNT=8"}
    await reader.book_slot(full_slot_id := await reader.add_slot(**times))
    fixture = ConnectionFixture(
        reader,
        app,
        await reader.add_slot(capacity=50, campaignId=campaign_id, resource=led, **times),
        full_slot_id,
        campaign_id,
        (await reader.execute(CREATE_SERIES, input=weekly))["seriesId"],
        (await reader.execute(CREATE_WEBHOOK, campaignId=campaign_id))["webhook"]["id"],
        reader_id,
    )
    for _ in range(activity_rounds):
        await fixture.add_activity()
    return fixture
