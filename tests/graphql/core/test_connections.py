"""What every list of the schema promises; a new one is found and tried by itself."""

from collections.abc import Iterator

import httpx
import pytest

from slotlock.devserver.embedded import EmbeddedServers
from slotlock.graphql.core.cursors import encode_cursor
from tests.support.apps.fork_server import forked_app
from tests.support.apps.processes import AppProcess, app_environment
from tests.support.clients.connections import (
    CONNECTION_FIELDS,
    CONNECTION_NAMES,
    ConnectionFixture,
    create_connection_fixture,
)

SO_FAR = 4
ID = "0123456789abcdef01234567"
NO_CURSORS = [
    "",
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
# What a good cursor of ours never holds, though its sum be right.
NO_PLACES: list[list[object]] = [
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
    # One ms before the first year, and one after the last.
    [-62_135_596_800_001, ID],
    [253_402_300_800_000, ID],
]
EDGES: list[list[object]] = [
    [ID],
    ["zz"],
    ["z@z"],
    [-62_135_596_800_000, ID],
    [253_402_300_799_999, ID],
    [-1, ID],
    [True, ID],
    [-62_135_596_800_000, ID, 0],
    [253_402_300_799_999, ID, 0],
    [0, ID, 999_999],
]


@pytest.fixture(scope="module")
def app(servers: EmbeddedServers, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppProcess]:
    """An app whose lists hold nothing of other tests."""
    with forked_app(app_environment(servers, "lists"), tmp_path_factory.mktemp("lists")) as running:
        yield running


async def refused(office: ConnectionFixture, of: str, **page: object) -> bool:
    """Whether a page is told to be bad input, and nothing else."""
    answer = await office.send_page_query(of, **page)
    codes = [error["extensions"]["code"] for error in answer.get("errors", ())]
    return codes == ["BAD_USER_INPUT"]


async def test_the_lists_are_those_that_are_known(app: AppProcess, http: httpx.AsyncClient) -> None:
    assert {"slots", "auditLog", "campaignStatistics.groups"} <= set(CONNECTION_NAMES)
    for of, (_, field) in CONNECTION_FIELDS.items():
        assert (str(field.args["first"].type), field.args["first"].default_value) == ("Int!", 20)
        assert str(field.args["after"].type) == "String", of


@pytest.mark.parametrize("of", CONNECTION_NAMES)
async def test_a_page_has_1_to_100_items(app: AppProcess, http: httpx.AsyncClient, of: str) -> None:
    office = await create_connection_fixture(http, app, 0)
    for first in (-(2**31), -1, 0, 101, 2**31 - 1, 2**31, "1", 1.5, True, None):
        assert await refused(office, of, first=first), first
    for first in (1, 100):
        assert await office.fetch_page(of, first=first)


async def test_a_cursor_that_is_cut_off_altered_made_up_or_another_lists_is_bad_input(
    app: AppProcess, http: httpx.AsyncClient
) -> None:
    office = await create_connection_fixture(http, app, 1)
    good = {of: (await office.fetch_page(of))["edges"][0]["cursor"] for of in CONNECTION_NAMES}
    for of, cursor in good.items():
        bad = [*NO_CURSORS, *(encode_cursor(of, *place) for place in NO_PLACES)]
        bad += [other for name, other in good.items() if name != of]
        bad += [cursor[:-1], cursor[:-4], cursor[4:], cursor[:8], f" {cursor}", f"{cursor}\n"]
        bad += [cursor + "A", cursor + "====", cursor * 2, cursor.swapcase(), f"!{cursor}"]
        for place in range(0, len(cursor), 7):
            changed = "B" if cursor[place] == "A" else "A"
            bad.append(cursor[:place] + changed + cursor[place + 1 :])
        assert [each[:80] for each in bad if not await refused(office, of, after=each)] == []
        assert (await office.fetch_page(of, after=cursor))["pageInfo"]


async def test_the_cursor_of_no_item_is_no_error_of_ours(
    app: AppProcess, http: httpx.AsyncClient
) -> None:
    office = await create_connection_fixture(http, app, 0)
    for of in CONNECTION_NAMES:
        taken = 0
        for place in EDGES:
            answer = await office.send_page_query(of, after=encode_cursor(of, *place))
            told = {error["extensions"]["code"] for error in answer.get("errors", ())}
            assert told <= {"BAD_USER_INPUT"}, (of, place, answer)
            taken += not told
        assert taken, of


async def test_pages_neither_repeat_nor_skip_while_items_come_and_go(
    app: AppProcess, http: httpx.AsyncClient
) -> None:
    office = await create_connection_fixture(http, app, SO_FAR)
    before = {of: await office.all_cursors(of) for of in CONNECTION_NAMES}
    walked: dict[str, list[str]] = {of: [] for of in CONNECTION_NAMES}
    after: dict[str, str | None] = dict.fromkeys(CONNECTION_NAMES)
    going, rounds = set(CONNECTION_NAMES), 0
    while going:
        for of in list(going):
            page = await office.fetch_page(of, first=2, after=after[of])
            walked[of] += [edge["cursor"] for edge in page["edges"]]
            after[of] = page["pageInfo"]["endCursor"]
            if not page["pageInfo"]["hasNextPage"]:
                going.remove(of)
        if rounds < SO_FAR:
            await office.add_activity()
        rounds += 1
    for of in CONNECTION_NAMES:
        now = await office.all_cursors(of)
        assert len(before[of]) >= SO_FAR
        assert now - before[of], f"nothing came to {of}"
        assert len(walked[of]) == len(set(walked[of])), f"{of} repeats"
        assert before[of] & now <= set(walked[of]), f"{of} skips"
