"""Promises of every list in the schema. The tests find new lists by themselves."""

from collections.abc import Iterator

import httpx
import pytest

from slotlock.devserver.embedded import EmbeddedServers
from slotlock.graphql.core import cursors
from slotlock.graphql.core.cursors import ListCursors, encode_cursor
from slotlock.graphql.core.errors import GraphQLRequestError
from tests.support.apps.fork_server import forked_app
from tests.support.apps.processes import AppProcess, app_environment
from tests.support.clients.connections import (
    CONNECTION_FIELDS,
    CONNECTION_NAMES,
    ConnectionFixture,
    create_connection_fixture,
    item_of,
)

MIN_ITEMS = 4
ID = "0123456789abcdef01234567"
INVALID_CURSORS = [
    "nonsense",
    "=",
    "é",
    "\u0000",
    "1",
    ID,
    f"slot_{ID}",
    f"booking_{ID}{ID}",
    "A" * 10_000,
    "A" * 50_000,
]
# Positions that no cursor of the server encodes, although their checksum is right.
INVALID_POSITIONS: list[list[object]] = [
    [],
    [0],
    [None],
    [""],
    ["\n"],
    ["a\u2028@b"],
    ["a" * 641],
    [{"$gt": ""}],
    [[ID]],
    [0, ID, 0, 0],
    [0, ID, -1],
    [0, ID, 1_000_000],
    [0, ID, "0"],
    [ID, 0],
    [0, 0],
    [0, None],
    [0, {"$gt": ""}],
    [0, ""],
    [0, ID + "\n"],
    [0, ID.upper()],
    [0, ID[:-1]],
    [0, ID + "0"],
    [0, "g" * 24],
    [0, "٣" * 24],
    ["0", ID],
    [0.5, ID],
    [None, ID],
    [1e300, ID],
    [10**18, ID],
    [-(10**18), ID],
    [0, ID, -(10**18), True],
    [0, ID, 0, None],
    # One millisecond before year 1, and one after year 9999.
    [-62_135_596_800_001, ID],
    [253_402_300_800_000, ID],
]
EXTREME_POSITIONS: list[list[object]] = [
    [ID],
    ["zz"],
    ["z@z"],
    ["zz", ID],
    [-62_135_596_800_000, ID],
    [253_402_300_799_999, ID],
    [-1, ID],
    [True, ID],
    [-62_135_596_800_000, ID, 0],
    [253_402_300_799_999, ID, 0],
    [-62_135_596_800_000, ID, 253_402_300_799_999, False],
    [253_402_300_799_999, ID, -62_135_596_800_000, True],
    [0, ID, 999_999],
    [0, "kind:subject:1"],
    ["ticket_" + "0" * 107],
    ["ticket_" + "f" * 107],
]


@pytest.fixture(scope="module")
def app(servers: EmbeddedServers, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppProcess]:
    """Yield an app whose lists contain no items of other tests."""
    with forked_app(app_environment(servers, "lists"), tmp_path_factory.mktemp("lists")) as running:
        yield running


async def is_bad_input(fixture: ConnectionFixture, name: str, **page: object) -> bool:
    """Return whether a page request fails with BAD_USER_INPUT and no other error."""
    response = await fixture.send_page_query(name, **page)
    codes = [error["extensions"]["code"] for error in response.get("errors", ())]
    return codes == ["BAD_USER_INPUT"]


async def test_every_list_has_the_same_paging_arguments() -> None:
    assert {"slots", "auditLog", "campaignStatistics.groups"} <= set(CONNECTION_NAMES)
    for name, (_, field) in CONNECTION_FIELDS.items():
        assert (str(field.args["first"].type), field.args["first"].default_value) == ("Int!", 20)
        assert str(field.args["after"].type) == "String", name


async def test_a_page_has_1_to_100_items(app: AppProcess, http: httpx.AsyncClient) -> None:
    fixture = await create_connection_fixture(http, app, 0)
    for name in CONNECTION_NAMES:
        for first in (-(2**31), -1, 0, 101, 2**31 - 1, 2**31, "1", 1.5, True, None):
            assert await is_bad_input(fixture, name, first=first), (name, first)
        for first in (1, 100):
            assert await fixture.fetch_page(name, first=first)


async def test_an_empty_cursor_is_that_of_the_first_page(
    app: AppProcess, http: httpx.AsyncClient
) -> None:
    fixture = await create_connection_fixture(http, app, 0)
    for name in CONNECTION_NAMES:
        pages = [await fixture.fetch_page(name, after=after) for after in (None, "")]
        first, same = ([item_of(edge["cursor"]) for edge in page["edges"]] for page in pages)
        assert first == same
        assert [page["pageInfo"]["hasPreviousPage"] for page in pages] == [False, False]


KINDS = {
    name: kind for name, kind in vars(cursors).items() if isinstance(kind, cursors.PositionKind)
}


def is_read(kind: cursors.PositionKind[object], cursor: str) -> bool:
    """Return whether a list with this kind of positions takes a cursor."""
    try:
        return ListCursors("list", kind, lambda item: item).decode(cursor) is not None
    except GraphQLRequestError:
        return False


@pytest.mark.parametrize("name", KINDS)
def test_no_list_takes_an_altered_cursor_or_a_forged_position(name: str) -> None:
    kind = KINDS[name]
    valid = [encode_cursor("list", *position) for position in EXTREME_POSITIONS]
    cursor = next(each for each in valid if is_read(kind, each))
    # A title may be "0".
    forged = [each for each in INVALID_POSITIONS if (name, each) != ("BY_TITLE", ["0", ID])]
    bad = [*INVALID_CURSORS, *(encode_cursor("list", *each) for each in forged)]
    bad += [cursor[:-1], cursor[:-4], cursor[4:], cursor[:8], f" {cursor}", f"{cursor}\n"]
    bad += [cursor + "A", cursor + "====", cursor * 2, cursor.swapcase(), f"!{cursor}"]
    for index, character in enumerate(cursor):
        changed = "B" if character == "A" else "A"
        bad.append(cursor[:index] + changed + cursor[index + 1 :])
    assert [each[:80] for each in bad if is_read(kind, each)] == []


async def test_an_altered_cursor_is_bad_input(app: AppProcess, http: httpx.AsyncClient) -> None:
    fixture = await create_connection_fixture(http, app, 1)
    found = {
        name: (await fixture.fetch_page(name))["edges"][0]["cursor"] for name in CONNECTION_NAMES
    }
    for (name, cursor), foreign in zip(
        found.items(), [*found.values()][1:] + [*found.values()][:1], strict=True
    ):
        bad = [foreign, cursor[:-1], f" {cursor}", "nonsense", "A" * 50_000]
        bad += [encode_cursor(name, *position) for position in ([], [{"$gt": ""}], [0, None])]
        accepted = [each[:80] for each in bad if not await is_bad_input(fixture, name, after=each)]
        assert accepted == []
        assert (await fixture.fetch_page(name, after=cursor))["pageInfo"]


async def test_a_valid_cursor_of_no_item_is_no_internal_error(
    app: AppProcess, http: httpx.AsyncClient
) -> None:
    fixture = await create_connection_fixture(http, app, 0)
    for name in CONNECTION_NAMES:
        accepted = 0
        for position in EXTREME_POSITIONS:
            response = await fixture.send_page_query(name, after=encode_cursor(name, *position))
            codes = {error["extensions"]["code"] for error in response.get("errors", ())}
            assert codes <= {"BAD_USER_INPUT"}, (name, position, response)
            accepted += not codes
        assert accepted, name


async def test_pages_of_growing_sizes_neither_repeat_nor_skip_items(
    app: AppProcess, http: httpx.AsyncClient
) -> None:
    fixture = await create_connection_fixture(http, app, 2)
    for name in CONNECTION_NAMES:
        found: list[str] = []
        first, info = 1, {"hasNextPage": True, "endCursor": None}
        while info["hasNextPage"]:
            page = await fixture.fetch_page(name, first=first, after=info["endCursor"])
            found += [item_of(edge["cursor"]) for edge in page["edges"]]
            first, info = min(4 * first, 100), page["pageInfo"]
        assert sorted(found) == sorted(await fixture.all_items(name)), name


async def test_pages_neither_repeat_nor_skip_items_while_the_list_changes(
    app: AppProcess, http: httpx.AsyncClient
) -> None:
    fixture = await create_connection_fixture(http, app, MIN_ITEMS)
    before = {name: await fixture.all_items(name) for name in CONNECTION_NAMES}
    seen: dict[str, list[str]] = {name: [] for name in CONNECTION_NAMES}
    after: dict[str, str | None] = dict.fromkeys(CONNECTION_NAMES)
    unfinished, rounds = set(CONNECTION_NAMES), 0
    while unfinished:
        for name in list(unfinished):
            page = await fixture.fetch_page(name, first=2, after=after[name])
            seen[name] += [item_of(edge["cursor"]) for edge in page["edges"]]
            after[name] = page["pageInfo"]["endCursor"]
            if not page["pageInfo"]["hasNextPage"]:
                unfinished.remove(name)
        if rounds < MIN_ITEMS:
            await fixture.add_activity()
        rounds += 1
    for name in CONNECTION_NAMES:
        now = await fixture.all_items(name)
        assert len(before[name]) >= MIN_ITEMS
        # A series gets no new slots.
        assert now - before[name] or name == "slotSeries.slots", f"{name} got no new item"
        assert len(seen[name]) == len(set(seen[name])), f"{name} repeats items"
        assert before[name] & now <= set(seen[name]), f"{name} skips items"
