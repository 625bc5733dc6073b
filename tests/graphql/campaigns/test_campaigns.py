"""Creating, changing, publishing and listing campaigns."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.support.clients.booking_client import BookingClient
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
from tests.support.clients.client import hours_from_now, slot_input, times_in

UNKNOWN_CAMPAIGN = "campaign_" + "0" * 24
LONG_GROUP = "x" * 51


async def test_a_new_campaign_has_its_input_and_times_in_utc(organizer: BookingClient) -> None:
    created = await organizer.execute(
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
            "admission": "QUEUE_ONLY",
        },
    )
    campaign_id = created.pop("id")
    assert created == {
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
        "admission": "QUEUE_ONLY",
        "noShowLimit": None,
        "reminderMinutes": None,
        "openingMailHours": None,
        "leaderGroups": [],
        "version": 1,
    }
    del created["__typename"]
    assert await organizer.execute(CAMPAIGN_BY_ID, id=campaign_id) == {"id": campaign_id, **created}


async def test_a_campaign_has_no_limits_by_default(organizer: BookingClient) -> None:
    times = {"opensAt": hours_from_now(-1), "closesAt": hours_from_now(1)}
    created = await organizer.execute(CREATE_CAMPAIGN, input={"name": "Courses", **times})
    names = ("published", "eligibleGroups", "maxBookings", "forbidOverlap", "groupLimits")
    assert [created[name] for name in names] == [False, [], None, False, []]
    assert (created["cancelUntil"], created["admission"]) == (None, "ANY")


async def test_the_state_of_a_campaign_follows_the_clock(organizer: BookingClient) -> None:
    campaign_id = await create_campaign(
        organizer, opensAt=hours_from_now(1), closesAt=hours_from_now(2)
    )
    assert (await organizer.execute(CAMPAIGN_BY_ID, id=campaign_id))["state"] == "UPCOMING"
    assert (await update_campaign(organizer, campaign_id, opensAt=hours_from_now(-3)))[
        "state"
    ] == "OPEN"
    assert (
        await update_campaign(organizer, campaign_id, closesAt=hours_from_now(-2), allowPast=True)
    )["state"] == "CLOSED"


CHANGES: list[tuple[str, Any]] = [
    ("name", "Projects"),
    ("opensAt", "2031-05-05T12:00:00.000Z"),
    ("closesAt", "2099-05-05T12:00:00.000Z"),
    ("eligibleGroups", [["grade:7"]]),
    ("maxBookings", 3),
    ("forbidOverlap", False),
    ("groupLimits", [{"group": "*", "limit": 9}]),
    ("cancelUntil", "2031-05-05T12:00:00.000Z"),
    ("admission", "QUEUE_ONLY"),
    ("eligibleGroups", []),
    ("groupLimits", []),
    ("maxBookings", None),
    ("cancelUntil", None),
    ("reminderMinutes", 0),
    ("reminderMinutes", 20_160),
    ("reminderMinutes", None),
    ("openingMailHours", 336),
    ("openingMailHours", None),
    ("leaderGroups", ["5a", "6*"]),
]


@pytest.mark.parametrize(("field", "value"), CHANGES)
async def test_an_update_changes_only_the_given_field(
    organizer: BookingClient, field: str, value: Any
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
        reminderMinutes=60,
        openingMailHours=24,
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


async def test_publishing_a_published_campaign_changes_nothing(organizer: BookingClient) -> None:
    campaign_id = await create_campaign(organizer, published=False)
    for published, version in ((True, 2), (True, 2), (False, 3), (False, 3)):
        outcome = await organizer.execute(
            PUBLISH_CAMPAIGN if published else UNPUBLISH_CAMPAIGN, id=campaign_id
        )
        assert (outcome["published"], outcome["version"]) == (published, version)


INVALID_VALUES: list[tuple[str, Any]] = [
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
    ("eligibleGroups", [[LONG_GROUP]]),
    ("eligibleGroups", [["a"]] * 11),
    ("eligibleGroups", [[f"class:{number}" for number in range(201)]]),
    ("groupLimits", [{"group": "", "limit": 1}]),
    ("groupLimits", [{"group": "a;b", "limit": 1}]),
    ("groupLimits", [{"group": "a*b", "limit": 1}]),
    ("groupLimits", [{"group": "**", "limit": 1}]),
    ("groupLimits", [{"group": LONG_GROUP, "limit": 1}]),
    ("groupLimits", [{"group": "a", "limit": 0}]),
    ("groupLimits", [{"group": "a", "limit": 1001}]),
    ("groupLimits", [{"group": "a", "limit": 1}, {"group": " a", "limit": 2}]),
    ("groupLimits", [{"group": f"class:{number}", "limit": 1} for number in range(101)]),
    ("reminderMinutes", -1),
    ("reminderMinutes", 20_161),
    ("openingMailHours", -1),
    ("openingMailHours", 337),
    ("leaderGroups", ["5a,5b"]),
]


@pytest.mark.parametrize(("field", "value"), INVALID_VALUES)
async def test_an_invalid_field_is_reported_and_changes_nothing(
    organizer: BookingClient, field: str, value: Any
) -> None:
    fields = campaign_fields(opensAt="2025-01-01T00:00:00Z", closesAt="2099-01-01T00:00:00Z")
    outcome = await organizer.execute(CREATE_CAMPAIGN, input={**fields, field: value})
    assert outcome["__typename"] == "InvalidInput"
    assert [problem["field"] for problem in outcome["fields"]] == [field]
    campaign_id = await create_campaign(organizer, **fields)
    before = await organizer.execute(CAMPAIGN_BY_ID, id=campaign_id)
    outcome = await organizer.execute(
        UPDATE_CAMPAIGN, input={"campaignId": campaign_id, field: value}
    )
    assert [problem["field"] for problem in outcome["fields"]] == [field]
    assert await organizer.execute(CAMPAIGN_BY_ID, id=campaign_id) == before


async def test_all_invalid_fields_are_reported_together(organizer: BookingClient) -> None:
    invalid = {"name": "", "closesAt": hours_from_now(-2), "maxBookings": 0, "eligibleGroups": [[]]}
    limits = [{"group": "a", "limit": 0}]
    outcome = await organizer.execute(
        CREATE_CAMPAIGN, input=campaign_fields(**invalid, groupLimits=limits)
    )
    fields = [problem["field"] for problem in outcome["fields"]]
    assert fields == ["name", "closesAt", "maxBookings", "eligibleGroups", "groupLimits"]


@pytest.mark.parametrize(
    "field", ["name", "opensAt", "closesAt", "eligibleGroups", "forbidOverlap", "groupLimits"]
)
async def test_a_required_field_cannot_be_null(organizer: BookingClient, field: str) -> None:
    campaign_id = await create_campaign(organizer)
    changes = {"campaignId": campaign_id, field: None}
    assert await organizer.error_code(UPDATE_CAMPAIGN, input=changes) == "BAD_USER_INPUT"


@pytest.mark.parametrize("id_", [UNKNOWN_CAMPAIGN, "", "campaign_x", "slot_" + "0" * 24, "0" * 24])
async def test_an_unknown_campaign_id_is_not_found(organizer: BookingClient, id_: str) -> None:
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
        input={"title": "A", **times_in(1), "campaignId": id_},
    )
    assert created == not_found


async def test_campaigns_are_listed_by_opening_time(organizer: BookingClient) -> None:
    openings = ["2090-01-03", "2090-01-01", "2090-01-02", "2090-01-01", "2090-01-02"]
    created = [
        (
            f"{day}T00:00:00.000Z",
            await create_campaign(
                organizer, opensAt=f"{day}T00:00:00Z", closesAt="2091-01-01T00:00:00Z"
            ),
        )
        for day in openings
    ]
    nodes = await organizer.all_nodes(CAMPAIGN_LIST, first=2)
    listed = [(node["opensAt"], node["id"]) for node in nodes]
    assert [campaign for campaign in listed if campaign in created] == sorted(created)
    assert len(set(listed)) == len(listed)


async def test_only_organizers_read_the_note_in_mails_and_null_removes_it(
    organizer: BookingClient, member: BookingClient
) -> None:
    note = "query($id: ID!) { campaign(id: $id) { mailNote } }"
    campaign_id = await create_campaign(organizer, mailNote=" Bring shoes.\r\nAnd water.\n ")
    assert await organizer.execute(note, id=campaign_id) == {"mailNote": "Bring shoes.\nAnd water."}
    assert await member.execute(note, id=campaign_id) == {"mailNote": None}
    await update_campaign(organizer, campaign_id, name="Other")
    assert (await organizer.execute(note, id=campaign_id))["mailNote"] is not None
    invalid = {"campaignId": campaign_id, "mailNote": "x" * 1001}
    refused = await organizer.execute(UPDATE_CAMPAIGN, input=invalid)
    assert [each["field"] for each in refused["fields"]] == ["mailNote"]
    await update_campaign(organizer, campaign_id, mailNote=None)
    assert await organizer.execute(note, id=campaign_id) == {"mailNote": None}


async def test_each_answer_to_an_organizer_names_groups_that_others_only_resemble(
    organizer: BookingClient, member: BookingClient
) -> None:
    user_id = await member.fetch_user_id()

    def name(group: str) -> str:
        return f"{group} {user_id[-9:]}"

    async def similar(mutation: str, **fields: Any) -> Any:
        nodes = " ".join(
            f"... on {each} {{ similarGroups }}" for each in ("Campaign", "Slot", "User")
        )
        shown = (
            "... on UserCreated { user { ...Groups } }" if mutation == "createUser" else "...Groups"
        )
        document = f"""fragment Groups on Node {{ {nodes} }}
            mutation($input: {mutation[0].upper()}{mutation[1:]}Input!) {{
              {mutation}(input: $input) {{ {shown} }}
            }}"""
        changed = await organizer.execute(document, input=fields)
        return changed.get("user", changed)["similarGroups"]

    assert await similar("setGroups", userId=user_id, groups=[name("06C")]) == []
    campaign = campaign_fields(eligibleGroups=[[name("6c")]])
    assert await similar("createCampaign", **campaign) == [[name("06C"), name("6c")]]
    all_three = [[name("06C"), name("6 C"), name("6c")]]
    limited = [{"group": name("6 C"), "limit": 1}]
    campaign_id = await create_campaign(organizer)
    changes = {"campaignId": campaign_id, "groupLimits": limited}
    assert await similar("updateCampaign", **changes) == all_three
    user = {"name": "Ada", "email": f"{user_id}@new.example", "groups": [name("6 C")]}
    assert await similar("createUser", **user) == all_three
    slot = slot_input() | {"groupLimits": limited}
    assert await similar("createSlot", **slot) == all_three
    assert await similar("setGroups", userId=user_id, groups=[name("6d")]) == []

    query = "query($id: ID!) { node(id: $id) { ... on Campaign { similarGroups } } }"
    two = {"similarGroups": [[name("6 C"), name("6c")]]}
    assert await organizer.execute(query, id=campaign_id) == two
    assert await member.execute(query, id=campaign_id) == {"similarGroups": None}


PUBLISHED_AT = "query($id: ID!) { campaign(id: $id) { publishedAt version } }"


async def test_a_campaign_says_since_when_everyone_sees_it(organizer: BookingClient) -> None:
    async def published_at(campaign_id: str) -> Any:
        return (await organizer.execute(PUBLISHED_AT, id=campaign_id))["publishedAt"]

    before = datetime.now(UTC) - timedelta(seconds=1)  # times have milliseconds
    campaign_id = await create_campaign(organizer, published=False)
    assert await published_at(campaign_id) is None
    await organizer.execute(PUBLISH_CAMPAIGN, id=campaign_id)
    first = await published_at(campaign_id)
    assert before <= datetime.fromisoformat(first) <= datetime.now(UTC)
    await update_campaign(organizer, campaign_id, name="Renamed")
    assert await published_at(campaign_id) == first
    await organizer.execute(UNPUBLISH_CAMPAIGN, id=campaign_id)
    assert await published_at(campaign_id) is None
    await organizer.execute(PUBLISH_CAMPAIGN, id=campaign_id)
    assert first < await published_at(campaign_id)
    assert await published_at(await create_campaign(organizer, published=True))
