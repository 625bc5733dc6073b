"""Campaigns over HTTP: what organisers make of them, and what is said of what they cannot be."""

from typing import Any

import httpx
import pytest

from tests.support.apps.processes import AppProcess
from tests.support.clients.campaigns import (
    CAMPAIGN_BY_ID,
    CAMPAIGN_LIST,
    CREATE_CAMPAIGN,
    PUBLISH_CAMPAIGN,
    UNPUBLISH_CAMPAIGN,
    UPDATE_CAMPAIGN,
    campaign_fields,
    create_campaign,
    update_campaign,
)
from tests.support.clients.client import GraphQLTestClient, Json, hours_from_now
from tests.support.stores.users import create_user_tokens

NO_CAMPAIGN = "campaign_" + "0" * 24
LONG = "x" * 51


@pytest.fixture
async def organizer(app: AppProcess, http: httpx.AsyncClient) -> GraphQLTestClient:
    """Somebody who keeps campaigns."""
    return GraphQLTestClient(
        http, app.url, (await create_user_tokens(app.environment, 0)).organizer
    )


@pytest.fixture
async def member(app: AppProcess, http: httpx.AsyncClient) -> GraphQLTestClient:
    """Somebody who books."""
    return GraphQLTestClient(
        http, app.url, (await create_user_tokens(app.environment, 1)).members[0]
    )


@pytest.fixture
def anonymous(app: AppProcess, http: httpx.AsyncClient) -> GraphQLTestClient:
    """A visitor."""
    return GraphQLTestClient(http, app.url)


async def test_a_campaign_is_answered_as_it_was_filled_in_with_times_in_utc(
    organizer: GraphQLTestClient,
) -> None:
    made = await organizer.execute(
        CREATE_CAMPAIGN,
        input={
            "name": "  Wahlkurse ",
            "published": True,
            "opensAt": "2031-05-05T14:00:00+02:00",
            "closesAt": "2031-05-09T14:00:00.250+02:00",
            "eligibleGroups": [["grade:6", " grade:5 ", "grade:5"], ["class:5a"]],
            "maxBookings": 2,
            "forbidOverlap": True,
            "groupLimits": [{"group": "class:*", "limit": 5}, {"group": " class:5a", "limit": 3}],
            "cancelUntil": "2031-05-08T00:00:00Z",
        },
    )
    campaign_id = made.pop("id")
    assert made == {
        "__typename": "Campaign",
        "name": "Wahlkurse",
        "published": True,
        "state": "UPCOMING",
        "opensAt": "2031-05-05T12:00:00.000Z",
        "closesAt": "2031-05-09T12:00:00.250Z",
        "eligibleGroups": [["grade:5", "grade:6"], ["class:5a"]],
        "maxBookings": 2,
        "forbidOverlap": True,
        "groupLimits": [{"group": "class:*", "limit": 5}, {"group": "class:5a", "limit": 3}],
        "cancelUntil": "2031-05-08T00:00:00.000Z",
        "version": 1,
    }
    del made["__typename"]
    assert await organizer.execute(CAMPAIGN_BY_ID, id=campaign_id) == {"id": campaign_id, **made}


async def test_what_is_left_out_asks_for_nothing(organizer: GraphQLTestClient) -> None:
    times = {"opensAt": hours_from_now(-1), "closesAt": hours_from_now(1)}
    made = await organizer.execute(CREATE_CAMPAIGN, input={"name": "Courses", **times})
    names = ("published", "eligibleGroups", "maxBookings", "forbidOverlap", "groupLimits")
    assert [made[name] for name in names] == [False, [], None, False, []]
    assert made["cancelUntil"] is None


async def test_where_a_campaign_is_in_time_comes_from_the_clock(
    organizer: GraphQLTestClient,
) -> None:
    campaign_id = await create_campaign(
        organizer, opensAt=hours_from_now(1), closesAt=hours_from_now(2)
    )
    assert (await organizer.execute(CAMPAIGN_BY_ID, id=campaign_id))["state"] == "UPCOMING"
    assert (await update_campaign(organizer, campaign_id, opensAt=hours_from_now(-3)))[
        "state"
    ] == "OPEN"
    assert (await update_campaign(organizer, campaign_id, closesAt=hours_from_now(-2)))[
        "state"
    ] == "CLOSED"


async def test_only_organisers_keep_campaigns(
    organizer: GraphQLTestClient, member: GraphQLTestClient, anonymous: GraphQLTestClient
) -> None:
    campaign_id = await create_campaign(organizer)
    changes: list[tuple[str, Json]] = [
        (CREATE_CAMPAIGN, {"input": campaign_fields()}),
        (UPDATE_CAMPAIGN, {"input": {"campaignId": campaign_id, "name": "Mine"}}),
        (PUBLISH_CAMPAIGN, {"id": campaign_id}),
        (UNPUBLISH_CAMPAIGN, {"id": campaign_id}),
    ]
    for query, variables in changes:
        assert await member.error_code(query, **variables) == "FORBIDDEN"
        assert await anonymous.error_code(query, **variables) == "UNAUTHENTICATED"
    assert (await organizer.execute(CAMPAIGN_BY_ID, id=campaign_id))["version"] == 1


CHANGES: list[tuple[str, Any]] = [
    ("name", "Projects"),
    ("opensAt", "2031-05-05T12:00:00.000Z"),
    ("closesAt", "2099-05-05T12:00:00.000Z"),
    ("eligibleGroups", [["grade:7"]]),
    ("maxBookings", 3),
    ("forbidOverlap", False),
    ("groupLimits", [{"group": "*", "limit": 9}]),
    ("cancelUntil", "2031-05-05T12:00:00.000Z"),
    ("eligibleGroups", []),
    ("groupLimits", []),
    ("maxBookings", None),
    ("cancelUntil", None),
]


@pytest.mark.parametrize(("field", "value"), CHANGES)
async def test_what_is_changed_is_changed_and_nothing_else(
    organizer: GraphQLTestClient, field: str, value: Any
) -> None:
    campaign_id = await create_campaign(
        organizer,
        opensAt="2030-01-01T00:00:00.000Z",
        closesAt="2032-01-01T00:00:00.000Z",
        eligibleGroups=[["grade:5"]],
        maxBookings=1,
        forbidOverlap=True,
        groupLimits=[{"group": "class:5a", "limit": 2}],
        cancelUntil="2031-01-01T00:00:00.000Z",
    )
    before = await organizer.execute(CAMPAIGN_BY_ID, id=campaign_id)
    after = await update_campaign(organizer, campaign_id, **{field: value})
    assert after == {"__typename": "Campaign", **before, field: value, "version": 2}
    assert await organizer.execute(CAMPAIGN_BY_ID, id=campaign_id) == {
        **before,
        field: value,
        "version": 2,
    }
    assert (await update_campaign(organizer, campaign_id, **{field: value}))["version"] == 2


async def test_publishing_what_is_published_changes_nothing(organizer: GraphQLTestClient) -> None:
    campaign_id = await create_campaign(organizer, published=False)
    for published, version in ((True, 2), (True, 2), (False, 3), (False, 3)):
        told = await organizer.execute(
            PUBLISH_CAMPAIGN if published else UNPUBLISH_CAMPAIGN, id=campaign_id
        )
        assert (told["published"], told["version"]) == (published, version)


MISTAKES: list[tuple[str, Any]] = [
    ("name", ""),
    ("name", "   "),
    ("name", "x" * 201),
    ("name", "two\nlines"),
    ("closesAt", "2020-01-01T00:00:00Z"),
    ("closesAt", "2025-01-01T00:00:00Z"),
    ("maxBookings", 0),
    ("maxBookings", -1),
    ("maxBookings", 1001),
    ("eligibleGroups", [[]]),
    ("eligibleGroups", [["class:5a"], []]),
    ("eligibleGroups", [[""]]),
    ("eligibleGroups", [["a", "  "]]),
    ("eligibleGroups", [["class:*"]]),
    ("eligibleGroups", [["a,b"]]),
    ("eligibleGroups", [["a\tb"]]),
    ("eligibleGroups", [[LONG]]),
    ("eligibleGroups", [["a"]] * 11),
    ("eligibleGroups", [[f"class:{number}" for number in range(201)]]),
    ("groupLimits", [{"group": "", "limit": 1}]),
    ("groupLimits", [{"group": "a;b", "limit": 1}]),
    ("groupLimits", [{"group": "a*b", "limit": 1}]),
    ("groupLimits", [{"group": "**", "limit": 1}]),
    ("groupLimits", [{"group": LONG, "limit": 1}]),
    ("groupLimits", [{"group": "a", "limit": 0}]),
    ("groupLimits", [{"group": "a", "limit": 1001}]),
    ("groupLimits", [{"group": "a", "limit": 1}, {"group": " a", "limit": 2}]),
    ("groupLimits", [{"group": f"class:{number}", "limit": 1} for number in range(101)]),
]


@pytest.mark.parametrize(("field", "value"), MISTAKES)
async def test_what_cannot_be_is_named_and_nothing_changes(
    organizer: GraphQLTestClient, field: str, value: Any
) -> None:
    fields = campaign_fields(opensAt="2025-01-01T00:00:00Z", closesAt="2099-01-01T00:00:00Z")
    told = await organizer.execute(CREATE_CAMPAIGN, input={**fields, field: value})
    assert told["__typename"] == "InvalidInput"
    assert [problem["field"] for problem in told["fields"]] == [field]
    campaign_id = await create_campaign(organizer, **fields)
    before = await organizer.execute(CAMPAIGN_BY_ID, id=campaign_id)
    told = await organizer.execute(UPDATE_CAMPAIGN, input={"campaignId": campaign_id, field: value})
    assert [problem["field"] for problem in told["fields"]] == [field]
    assert await organizer.execute(CAMPAIGN_BY_ID, id=campaign_id) == before


async def test_all_that_is_wrong_is_named_at_once(organizer: GraphQLTestClient) -> None:
    wrong = {"name": "", "closesAt": hours_from_now(-2), "maxBookings": 0, "eligibleGroups": [[]]}
    limits = [{"group": "a", "limit": 0}]
    told = await organizer.execute(
        CREATE_CAMPAIGN, input=campaign_fields(**wrong, groupLimits=limits)
    )
    named = [problem["field"] for problem in told["fields"]]
    assert named == ["name", "closesAt", "maxBookings", "eligibleGroups", "groupLimits"]


@pytest.mark.parametrize(
    "field", ["name", "opensAt", "closesAt", "eligibleGroups", "forbidOverlap", "groupLimits"]
)
async def test_what_cannot_be_removed_is_an_error(organizer: GraphQLTestClient, field: str) -> None:
    campaign_id = await create_campaign(organizer)
    changes = {"campaignId": campaign_id, field: None}
    assert await organizer.error_code(UPDATE_CAMPAIGN, input=changes) == "BAD_USER_INPUT"


@pytest.mark.parametrize("id_", [NO_CAMPAIGN, "", "campaign_x", "slot_" + "0" * 24, "0" * 24])
async def test_what_is_no_campaign_is_not_found(organizer: GraphQLTestClient, id_: str) -> None:
    not_found = {"__typename": "CampaignNotFound", "code": "CAMPAIGN_NOT_FOUND", "campaignId": id_}
    assert (
        await organizer.execute(UPDATE_CAMPAIGN, input={"campaignId": id_, "name": "A"})
        == not_found
    )
    assert await organizer.execute(PUBLISH_CAMPAIGN, id=id_) == not_found
    assert await organizer.execute(UNPUBLISH_CAMPAIGN, id=id_) == not_found
    assert await organizer.execute(CAMPAIGN_BY_ID, id=id_) is None
    created = await organizer.execute(
        """mutation($input: CreateSlotInput!) { createSlot(input: $input) {
          __typename ... on CampaignNotFound { code campaignId }
        } }""",
        input={
            "title": "A",
            "startTime": hours_from_now(1),
            "endTime": hours_from_now(2),
            "campaignId": id_,
        },
    )
    assert created == not_found


async def test_campaigns_are_listed_by_their_opening_page_by_page(
    organizer: GraphQLTestClient,
) -> None:
    openings = ["2090-01-03", "2090-01-01", "2090-01-02", "2090-01-01", "2090-01-02"]
    made = [
        (
            f"{day}T00:00:00.000Z",
            await create_campaign(
                organizer, opensAt=f"{day}T00:00:00Z", closesAt="2091-01-01T00:00:00Z"
            ),
        )
        for day in openings
    ]
    listed: list[tuple[str, str]] = []
    page: Json = {"pageInfo": {"hasNextPage": True, "endCursor": None}}
    while page["pageInfo"]["hasNextPage"]:
        page = await organizer.execute(CAMPAIGN_LIST, first=2, after=page["pageInfo"]["endCursor"])
        listed += [(node["opensAt"], node["id"]) for node in page["nodes"]]
    assert [each for each in listed if each in made] == sorted(made)
    assert len(set(listed)) == len(listed)


async def test_a_page_of_campaigns_has_bounds(organizer: GraphQLTestClient) -> None:
    for wrong in ({"first": 0}, {"first": 101}, {"after": "nonsense"}):
        assert await organizer.error_code(CAMPAIGN_LIST, **wrong) == "BAD_USER_INPUT"
