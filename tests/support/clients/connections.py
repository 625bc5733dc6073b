"""Every list of the schema, found by walking it, with something in each of them."""

import secrets
from dataclasses import dataclass

import httpx
from graphql import GraphQLField, GraphQLObjectType, get_named_type, is_required_argument

from slotlock.graphql.schema.schema import executable_schema
from tests.support.apps.processes import AppProcess
from tests.support.clients.booking_client import BookingClient, create_booking_clients
from tests.support.clients.campaigns import create_campaign, set_groups
from tests.support.clients.client import Json, hours_from_now

PAGE_FIELDS = "edges { cursor } pageInfo { hasNextPage endCursor }"


def _find_connections() -> dict[str, tuple[str, GraphQLField]]:
    """Each field that answers a connection, by the name that its cursors know it by."""
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


@dataclass(frozen=True)
class ConnectionFixture:
    """Somebody who may read every list, and what to ask them of."""

    reader: BookingClient
    app: AppProcess
    slot_id: str
    campaign_id: str

    def page_query(self, connection: str) -> str:
        """What asks for a page of a list; a list that needs more to be named has to be told."""
        given = {
            "slotId": f'"{self.slot_id}"',
            "campaignId": f'"{self.campaign_id}"',
            "filter": f'{{campaignId: "{self.campaign_id}"}}',
        }
        name, field = CONNECTION_FIELDS[connection]
        needed = [key for key, argument in field.args.items() if is_required_argument(argument)]
        own = "".join(f"{key}: {given[key]}, " for key in needed)
        page = f"{name}({own}first: $first, after: $after) {{ {PAGE_FIELDS} }}"
        parent = connection.partition(".")[0]
        if parent != connection:
            page = f'{parent}(campaignId: "{self.campaign_id}") {{ {page} }}'
        return f"query($first: Int! = 20, $after: String) {{ {page} }}"

    async def send_page_query(self, connection: str, **page_arguments: object) -> Json:
        """The whole answer to a page of a list."""
        return await self.reader.send(self.page_query(connection), **page_arguments)

    async def fetch_page(self, connection: str, **page_arguments: object) -> Json:
        """A page of a list."""
        found: Json = await self.reader.execute(self.page_query(connection), **page_arguments)
        return found if "edges" in found else found[connection.partition(".")[2]]

    async def all_cursors(self, connection: str) -> set[str]:
        """The cursors of a list that is short."""
        page = await self.fetch_page(connection, first=100)
        assert not page["pageInfo"]["hasNextPage"]
        return {edge["cursor"] for edge in page["edges"]}

    async def add_activity(self) -> None:
        """Something new in every list, somewhere in it, and something less in some."""
        reader, hour = self.reader, 24 + secrets.randbelow(1_000)
        times = {"startTime": hours_from_now(hour), "endTime": hours_from_now(hour + 1)}
        new, other = [await reader.add_slot(campaignId=self.campaign_id, **times) for _ in range(2)]
        await reader.book_slot(new)
        await reader.cancel_booking((await reader.book_slot(other))["booking"]["id"])
        (stays, leaves), _ = await create_booking_clients(reader.http, 2, self.app)
        for person in (stays, leaves):
            await set_groups(reader, person, secrets.token_hex(4))
        await reader.book_slot(self.slot_id, userId=await stays.fetch_user_id())
        await leaves.cancel_booking((await leaves.book_slot(self.slot_id))["booking"]["id"])
        await create_campaign(reader, opensAt=hours_from_now(-hour))
        await reader.cancel_slot(other)


async def create_connection_fixture(
    http: httpx.AsyncClient, app: AppProcess, activity_rounds: int
) -> ConnectionFixture:
    """An office in which so much went on that every list has several items."""
    _, reader = await create_booking_clients(http, 0, app)
    one = await create_campaign(reader)
    times = {"startTime": hours_from_now(500), "endTime": hours_from_now(501)}
    office = ConnectionFixture(
        reader, app, await reader.add_slot(capacity=50, campaignId=one, **times), one
    )
    for _ in range(activity_rounds):
        await office.add_activity()
    return office
