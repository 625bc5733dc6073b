"""Cursors that nobody was given: every list says so, and none breaks."""

from base64 import urlsafe_b64encode

import httpx
import pytest

from tests.support.client import Client, Json
from tests.support.desk import Person, staffed
from tests.support.processes import AppProcess

PAGE = "{ nodes { id } pageInfo { hasNextPage endCursor } }"
OWN = "query($after: String) { %s(after: $after) " + PAGE + " }"
OF_SLOT = "query($slot: ID!, $after: String) { %s(slotId: $slot, after: $after) " + PAGE + " }"
LISTS = {
    **{name: OWN % name for name in ("slots", "myBookings", "myEndedBookings", "people")},
    **{name: OF_SLOT % name for name in ("slotRoster", "slotHistory")},
}
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
    f"booking_{ID}",
    f"booking_{ID}{ID[:-1]}",
    f"booking_{ID}{ID}\n",
    f"booking_{ID}{'g' * 24}",
    f"booking_{ID}{'٣' * 24}",
    "A" * 10_000,
]
# What a cursor of ours is not, once it is unpacked.
NO_POSITIONS = [
    "",
    "0",
    "null",
    "[]",
    "{}",
    '"aa"',
    "[0]",
    f'[0, "{ID}", 0]',
    f'{{"0": 0, "{ID}": 1}}',
    f'["{ID}", 0]',
    "[0, 0]",
    "[0, null]",
    '[0, ["a"]]',
    '[0, ""]',
    '[0, "aa aa aa aa aa aa aa aa "]',
    '[0, "aaaaaaaaaaaaaaaaaaaaaaaa "]',
    '[0, "aaaaaaaaaaaaaaaaaaaaaaaa\\n"]',
    '[0, "AAAAAAAAAAAAAAAAAAAAAAAA"]',
    f'[0, "{ID[:-1]}"]',
    f'[0, "{ID}0"]',
    f'[0, "{"g" * 24}"]',
    f'[0, "{"٣" * 24}"]',
    f'[0, "{"é" * 12}"]',
    f'[null, "{ID}"]',
    f'["0", "{ID}"]',
    f'[[], "{ID}"]',
    f'[{{}}, "{ID}"]',
    f'[1e300, "{ID}"]',
    f'[-1e300, "{ID}"]',
    f'[{10**18}, "{ID}"]',
    f'[{-(10**18)}, "{ID}"]',
    f'[{10**400}, "{ID}"]',
    # One ms before the first year, and one after the last.
    f'[-62135596800001, "{ID}"]',
    f'[253402300800000, "{ID}"]',
    "[" * 5_000,
    '[0, "aaaa',
]
# Nobody was given these either, but they could be ours.
EDGES = [-62_135_596_800_000, 253_402_300_799_999, -1, 0, 0.5, "true"]


def packed(text: str) -> str:
    """Text as a cursor carries it."""
    return urlsafe_b64encode(text.encode()).decode()


@pytest.fixture
async def reader(two_apps: tuple[AppProcess, AppProcess], http: httpx.AsyncClient) -> Person:
    """An organiser, who may read every list, and has something in each."""
    _, organiser = await staffed(http, 0, *two_apps)
    return organiser


async def not_refused(
    client: Client, query: str, cursors: list[str], **variables: str
) -> list[Json]:
    """Each cursor that is not said to be bad input, with what is said."""
    told = []
    for cursor in cursors:
        answer = await client.send(query, after=cursor, **variables)
        if [error["extensions"]["code"] for error in answer.get("errors", ())] != [
            "BAD_USER_INPUT"
        ]:
            told.append({"cursor": cursor[:80], "answer": answer})
    return told


@pytest.mark.parametrize("name", LISTS)
async def test_a_cursor_that_is_none_is_bad_user_input(reader: Person, name: str) -> None:
    query = LISTS[name]
    variables = {"slot": await reader.slot(capacity=3)} if "$slot" in query else {}
    crafted = [*NO_CURSORS, *map(packed, NO_POSITIONS)]
    assert await not_refused(reader, query, crafted, **variables) == []


@pytest.mark.parametrize("name", LISTS)
async def test_the_cursor_of_no_item_is_no_error_of_ours(reader: Person, name: str) -> None:
    query = LISTS[name]
    variables = {"slot": await reader.slot(capacity=3)} if "$slot" in query else {}
    edges = [packed(f'[{edge}, "{ID}"]') for edge in EDGES]
    for cursor in (*edges, f"booking_{ID}{ID}", "booking_" + "f" * 48):
        answer = await reader.send(query, after=cursor, **variables)
        told = {error["extensions"]["code"] for error in answer.get("errors", ())}
        assert told <= {"BAD_USER_INPUT"}, (cursor, answer)
