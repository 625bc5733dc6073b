"""Every list of the schema, found by walking it, with something in each of them."""

import secrets
from dataclasses import dataclass

import httpx
from graphql import GraphQLField, GraphQLObjectType, get_named_type, is_required_argument

from slotlock.graphql.schema import executable
from tests.support.campaigns import campaign, give_groups
from tests.support.client import Json, in_hours
from tests.support.desk import Person, staffed
from tests.support.processes import AppProcess

ASKED = "edges { cursor } pageInfo { hasNextPage endCursor }"


def _lists() -> dict[str, tuple[str, GraphQLField]]:
    """Each field that answers a connection, by the name that its cursors know it by."""
    found = {}
    for type_ in executable.type_map.values():
        if isinstance(type_, GraphQLObjectType):
            for name, field in type_.fields.items():
                if get_named_type(field.type).name.endswith("Connection"):
                    begin = type_.name[0].lower() + type_.name[1:]
                    of = name if type_.name == "Query" else f"{begin}.{name}"
                    found[of] = (name, field)
    return found


FIELDS = _lists()
LISTS = list(FIELDS)


@dataclass(frozen=True)
class Office:
    """Somebody who may read every list, and what to ask them of."""

    reader: Person
    app: AppProcess
    slot: str
    campaign: str

    def query(self, of: str) -> str:
        """What asks for a page of a list; a list that needs more to be named has to be told."""
        given = {
            "slotId": f'"{self.slot}"',
            "campaignId": f'"{self.campaign}"',
            "filter": f'{{campaignId: "{self.campaign}"}}',
        }
        name, field = FIELDS[of]
        needed = [key for key, argument in field.args.items() if is_required_argument(argument)]
        own = "".join(f"{key}: {given[key]}, " for key in needed)
        page = f"{name}({own}first: $first, after: $after) {{ {ASKED} }}"
        parent = of.partition(".")[0]
        if parent != of:
            page = f'{parent}(campaignId: "{self.campaign}") {{ {page} }}'
        return f"query($first: Int! = 20, $after: String) {{ {page} }}"

    async def send(self, of: str, **page: object) -> Json:
        """The whole answer to a page of a list."""
        return await self.reader.send(self.query(of), **page)

    async def page(self, of: str, **page: object) -> Json:
        """A page of a list."""
        found: Json = await self.reader.ask(self.query(of), **page)
        return found if "edges" in found else found[of.partition(".")[2]]

    async def all(self, of: str) -> set[str]:
        """The cursors of a list that is short."""
        page = await self.page(of, first=100)
        assert not page["pageInfo"]["hasNextPage"]
        return {edge["cursor"] for edge in page["edges"]}

    async def go_on(self) -> None:
        """Something new in every list, somewhere in it, and something less in some."""
        reader, hour = self.reader, 24 + secrets.randbelow(1_000)
        times = {"startTime": in_hours(hour), "endTime": in_hours(hour + 1)}
        new, other = [await reader.slot(campaignId=self.campaign, **times) for _ in range(2)]
        await reader.wish(new)
        await reader.give_back((await reader.wish(other))["booking"]["id"])
        (stays, leaves), _ = await staffed(reader.http, 2, self.app)
        for person in (stays, leaves):
            await give_groups(reader, person, secrets.token_hex(4))
        await reader.wish(self.slot, userId=await stays.id())
        await leaves.give_back((await leaves.wish(self.slot))["booking"]["id"])
        await campaign(reader, opensAt=in_hours(-hour))
        await reader.call_off(other)


async def open_office(http: httpx.AsyncClient, app: AppProcess, so_far: int) -> Office:
    """An office in which so much went on that every list has several items."""
    _, reader = await staffed(http, 0, app)
    one = await campaign(reader)
    times = {"startTime": in_hours(500), "endTime": in_hours(501)}
    office = Office(reader, app, await reader.slot(capacity=50, campaignId=one, **times), one)
    for _ in range(so_far):
        await office.go_on()
    return office
