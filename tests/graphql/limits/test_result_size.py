"""No answer holds more than may be asked for, however long lists turn out to be."""

import httpx
import pytest

from slotlock.graphql.limits.complexity import DOCUMENT_LIMITS
from tests.support.apps.processes import AppProcess
from tests.support.clients.client import GraphQLTestClient, Json
from tests.support.stores.users import create_user_tokens

DAYS = ("MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY", "SUNDAY")
# Every day of a year.
MEETINGS = 365
COURSE: Json = {
    "title": "Latin",
    "kind": "COURSE",
    "timetable": {
        "first": "2031-01-01",
        "last": "2031-12-31",
        "weekly": [{"weekday": day, "startTime": "09:00", "endTime": "10:00"} for day in DAYS],
    },
}
CREATE = "mutation($input: CreateSlotInput!) { %s }"
CREATED = (
    "%s: createSlot(input: $input) { ... on Slot { id meetings { startTime endTime __typename } } }"
)
LOOK = "query($ids: [ID!]!) { nodes(ids: $ids) { ... on Slot { meetings { %s } } } }"


@pytest.fixture
async def organizer(app: AppProcess, http: httpx.AsyncClient) -> GraphQLTestClient:
    """Somebody who creates courses."""
    return GraphQLTestClient(
        http, app.url, (await create_user_tokens(app.environment, 0)).organizer
    )


async def test_an_answer_of_more_values_than_may_be_asked_for_is_refused(
    organizer: GraphQLTestClient,
) -> None:
    course = await organizer.execute(CREATE % CREATED % "made", input=COURSE)
    times = LOOK % " ".join(f"a{n}: startTime" for n in range(10))
    # A meeting is one and has ten.
    few = DOCUMENT_LIMITS.values // (MEETINGS * 11)
    shown = await organizer.execute(times, ids=[course["id"]] * few)
    assert [len(slot["meetings"]) for slot in shown] == [MEETINGS] * few
    more = [course["id"]] * (few + 1)
    assert await organizer.error_code(times, ids=more) == "LIMIT_EXCEEDED"
    assert len(await organizer.execute(LOOK % "startTime", ids=more)) == few + 1


async def test_what_a_mutation_did_is_told_however_much_it_is(organizer: GraphQLTestClient) -> None:
    names = [f"m{n}" for n in range(14)]
    assert len(names) * MEETINGS * 4 > DOCUMENT_LIMITS.values
    answer = await organizer.send(CREATE % " ".join(CREATED % n for n in names), input=COURSE)
    assert "errors" not in answer
    assert [len(answer["data"][name]["meetings"]) for name in names] == [MEETINGS] * len(names)
