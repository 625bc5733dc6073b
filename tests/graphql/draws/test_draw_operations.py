"""The draw of a campaign over HTTP: wishes, closing, preview, publication and explanations."""

import json
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any
from unittest.mock import ANY

import httpx
import pytest
from bson import ObjectId

from slotlock.domain.draws.basis import DrawId, commitment_of
from slotlock.infrastructure.draw_records import verify
from tests.support.apps.processes import Pair
from tests.support.clients.booking_client import BookingClient
from tests.support.clients.campaigns import (
    CLOSE,
    CONFIGURE,
    DEMAND,
    DRAWS,
    MY_WISHES,
    PREVIEW,
    PUBLISH,
    RECORD,
    RESULT,
    RUN,
    SET_WISHES,
    SUPERSEDE,
    THE_DRAW,
    create_campaign,
    until_draw,
)
from tests.support.clients.client import GraphQLTestClient, Json, hours_from_now, times_in
from tests.support.clients.fixtures import Four
from tests.support.polling import poll_until
from tests.support.scenarios.led_course import change_document
from tests.support.stores.empty_database import stored_database

MEMBER_COUNT = 3

UNPUBLISH = "mutation($id: ID!) { unpublishCampaign(campaignId: $id) { __typename } }"
PROBLEM = "query($id: ID!) { draw(campaignId: $id) { problem } }"
RECORD_HASH = "query($id: ID!) { drawById(drawId: $id) { recordHash } }"
FORMER = "query($id: ID!) { drawById(drawId: $id) { former { recordId } } }"
DRAW_BY_ID = "query($id: ID!) { drawById(drawId: $id) { state } }"
OF_CAMPAIGN = "query($id: ID!) { campaign(id: $id) { draw { state recordId entryCount } } }"
USER_WISHES = """query($user: ID!) { userWishes(userId: $user) {
  ranked { slotId } userIds
  draw { recordId result(userId: $user) { wishes { slotId result } } }
} }"""
RESULT_IN = """query($id: ID!, $user: ID!) { drawById(drawId: $id) {
  result(userId: $user) { leaf } } }"""


async def get_record(
    client: GraphQLTestClient, record_id: str, query: str = "", **headers: str
) -> httpx.Response:
    """Read a record by HTTP."""
    headers = {**client.headers, **headers}
    return await client.http.get(f"{client.url}/draws/{record_id}/record{query}", headers=headers)


class DrawScene:
    """A campaign whose first slot has one place, and two members who both want it most."""

    def __init__(
        self, organizer: BookingClient, members: tuple[BookingClient, BookingClient]
    ) -> None:
        self.organizer, self.members = organizer, members
        self.campaign = ""
        self.slots: list[str] = []

    async def open(self, wish_hours: float = 1, **settings: Any) -> Json:
        """Open a draw over three slots, of which the last two overlap."""
        self.campaign = await create_campaign(
            self.organizer, maxBookings=2, forbidOverlap=True, opensAt=hours_from_now(-1)
        )
        for capacity, start in ((1, 30), (5, 40), (5, 40)):
            fields = {"campaignId": self.campaign, "waitlistCapacity": 5, **times_in(start)}
            self.slots.append(await self.organizer.add_slot(capacity=capacity, **fields))
        until = hours_from_now(wish_hours)
        fields = {"campaignId": self.campaign, "wishesUntil": until, **settings}
        return dict(await self.organizer.execute(CONFIGURE, input=fields))

    async def act(self, document: str, **variables: Any) -> Json:
        """Let the organizer do something with the draw."""
        return dict(await self.organizer.execute(document, id=self.campaign, **variables))

    async def wish(self, member: BookingClient, *ranks: int) -> Json:
        """Set the wishes of a member to the slots with these numbers."""
        slots = [self.slots[n] for n in ranks]
        return dict(await member.execute(SET_WISHES, id=self.campaign, slots=slots))

    async def read(self, client: GraphQLTestClient, document: str) -> Any:
        """Read something about the campaign."""
        return await client.execute(document, id=self.campaign)

    async def until(self, field: str) -> Json:
        """Wait for a field of the draw, which the worker sets."""
        return await until_draw(self.organizer, self.campaign, field)


@pytest.fixture
def scene(clients: Four) -> DrawScene:
    """Return a scene without a draw."""
    *members, organizer = clients
    return DrawScene(organizer, (members[0], members[1]))


async def test_a_draw_goes_from_wishes_to_an_explained_result_and_a_record(
    scene: DrawScene,
) -> None:
    organizer, (ada, ben) = scene.organizer, scene.members
    opened = await scene.open(joinsWaitlists=True)
    assert (opened["state"], opened["acceptsWishes"]) == ("COLLECTING", True)
    commitment = opened["announcement"].pop("commitment")
    assert opened["announcement"] == {"source": None, "at": None}
    for each in scene.members:
        saved = await scene.wish(each, 0, 1, 2)
        assert [wish["slotId"] for wish in saved["wishes"]["ranked"]] == scene.slots
        assert (await each.book_slot(scene.slots[0]))["code"] == "DRAW_ONLY"
    assert (await get_record(organizer, opened["recordId"])).status_code == 404
    assert await scene.read(ada, DEMAND) is None
    for reader, count in ((organizer, 2), (ada, None)):
        of_campaign = (await scene.read(reader, OF_CAMPAIGN))["draw"]
        assert of_campaign == {"state": "COLLECTING", "recordId": ANY, "entryCount": count}
    demand = {each["slotId"]: each for each in await scene.read(organizer, DEMAND)}
    assert (demand[scene.slots[0]]["wishes"], demand[scene.slots[0]]["firstWishes"]) == (2, 2)
    what_if = [{"slotId": scene.slots[0], "capacity": 2}]
    for capacities, places in ((None, 1), (what_if, 2)):
        preview = await organizer.execute(PREVIEW, id=scene.campaign, capacities=capacities)
        slots = {each["slotId"]: each for each in preview["slots"]}
        assert slots[scene.slots[0]]["granted"] == places
        assert {each["method"] for each in preview["measures"]} == {"ROUNDS", "SERIAL"}
    ada_id = await ada.fetch_user_id()
    (wished,) = await organizer.execute(USER_WISHES, user=ada_id)
    assert [each["slotId"] for each in wished["ranked"]] == scene.slots
    assert (wished["userIds"], wished["draw"]["result"]) == ([ada_id], None)
    closed = await scene.act(CLOSE)
    assert closed["state"] == "CLOSED"
    root, record_id = (await scene.until("root"))["root"], closed["recordId"]
    of_campaign = (await scene.read(ada, OF_CAMPAIGN))["draw"]
    assert of_campaign == {"state": "CLOSED", "recordId": record_id, "entryCount": 2}
    assert (await scene.wish(ada, 1))["code"] == "WRONG_DRAW_STATE"
    closed_text = await ada.execute(RECORD, id=record_id)
    before = json.loads(closed_text)
    assert (before["root"], len(before["leaves"])) == (root, 2)
    assert (await scene.read(ada, RESULT))["lotteryNumber"] is None
    assert (await scene.act(RUN, seed="17 4 38"))["fields"][0]["code"] == "SEED_OF_SERVER"
    drawn = await scene.act(RUN)
    assert drawn["seed"]["byServer"]
    assert commitment_of(DrawId(record_id[-24:]), drawn["seed"]["text"]) == commitment
    assert (await scene.read(ada, THE_DRAW))["seed"] is None
    assert "seed" not in json.loads(await ada.execute(RECORD, id=record_id))
    assert (await scene.act(PUBLISH))["state"] == "PUBLISHED"
    await scene.until("isWritten")
    text = await ben.execute(RECORD, id=record_id)
    record = json.loads(text)
    assert verify(record) == []
    record_hash = (await ben.execute(RECORD_HASH, id=record_id))["recordHash"]
    for query, expected, name in (("", text, record_hash), ("?part=closed", closed_text, root)):
        for encoding in ("gzip", "identity"):
            read = await get_record(ben, record_id, query, **{"accept-encoding": encoding})
            assert (read.status_code, read.text) == (200, expected)
            assert read.headers.get("content-encoding", "identity") == encoding
        assert read.headers["etag"] == f'W/"{name}"'
        again = await get_record(ben, record_id, query, **{"if-none-match": read.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
    assert f"-draw-record-{datetime.now(UTC):%Y}" in read.headers["content-disposition"]
    assert (await get_record(ben, record_id, "?part=final")).status_code == 400
    results = [await scene.read(each, RESULT) for each in scene.members]
    assert sorted(each["lotteryNumber"] for each in results) == [1, 2]
    (wished,) = await organizer.execute(USER_WISHES, user=ada_id)
    assert wished["draw"]["recordId"] == record_id
    assert [each["result"] for each in wished["draw"]["result"]["wishes"]] == [
        each["result"] for each in results[0]["wishes"]
    ]
    assert await organizer.execute(USER_WISHES, user="nonsense") == []
    (winner, loser) = sorted(results, key=lambda each: int(each["lotteryNumber"]))
    assert [each["result"] for each in winner["wishes"]] == ["GRANTED", "GRANTED", "LIMIT"]
    assert [each["result"] for each in loser["wishes"]] == ["FULL", "GRANTED", "TIME_CONFLICT"]
    assert loser["wishes"][0]["lastNumberServed"] == 1
    assert loser["wishes"][2]["conflict"]["id"] == scene.slots[1]
    assert {each["leaf"] for each in record["entries"]} == {each["leaf"] for each in results}
    waiting = "{ myWaitlistEntries { nodes { slot { id } } } }"
    lists = [await each.execute(waiting) for each in scene.members]
    assert sorted(len(each["nodes"]) for each in lists) == [0, 1]


async def test_the_time_closes_the_wishes_and_only_organizers_see_who_did_what(
    scene: DrawScene,
) -> None:
    organizer = scene.organizer
    await scene.open(wish_hours=0.001, showsDemand=True)
    drawn = await scene.until("root")
    assert [each["by"] is None for each in drawn["acts"]] == [False, True]
    seen = await scene.read(scene.members[0], THE_DRAW)
    assert [each["by"] for each in seen["acts"]] == [None, None]
    unwished = {"wishes": 0, "firstWishes": 0}
    demand = await scene.read(scene.members[0], DEMAND)
    assert {each["slotId"]: each for each in demand} == {
        slot: {"slotId": slot, "slot": ANY, **unwished} for slot in scene.slots
    }
    assert (await scene.act(RUN))["state"] == "DRAWN"
    again = await scene.act(SUPERSEDE, reason="Nobody had wishes.")
    assert (again["state"], again["supersedesId"]) == ("COLLECTING", drawn["recordId"])

    async def read_hash() -> Any:
        return (await organizer.execute(RECORD_HASH, id=drawn["recordId"]))["recordHash"]

    record_hash = await poll_until(read_hash, bool, "the record is stored")
    old = await organizer.execute(RECORD, id=drawn["recordId"])
    assert sha256(old.encode()).hexdigest() == record_hash
    assert json.loads(old)["acts"][-1]["reason"] == "Nobody had wishes."
    assert verify(json.loads(old)) == []
    log = """query($campaign: ID!) { auditLog(filter: {campaignId: $campaign}) {
      nodes { action } } }"""
    found = await organizer.execute(log, campaign=scene.campaign)
    actions = [each["action"] for each in found["nodes"] if each["action"].startswith("DRAW")]
    assert sorted(actions) == [
        *("DRAW_CLOSED", "DRAW_CONFIGURED", "DRAW_CONFIGURED", "DRAW_RUN", "DRAW_SUPERSEDED")
    ]


async def test_a_further_draw_hides_no_earlier_one_and_names_it(
    scene: DrawScene, clients: Four, anonymous: GraphQLTestClient, two_apps: Pair
) -> None:
    organizer, (ada, ben), guardian = scene.organizer, scene.members, clients[2]
    old = (await scene.open())["recordId"]
    await scene.wish(ada, 0)
    await scene.act(CLOSE)
    await scene.until("root")
    await scene.act(RUN)
    await scene.act(PUBLISH)
    await scene.until("isWritten")
    own, record = await scene.read(ada, RESULT), await ada.execute(RECORD, id=old)
    ada_id, guardian_id = await ada.fetch_user_id(), await guardian.fetch_user_id()
    change_document(two_apps[0], "users", ada_id, guardians=[ObjectId(guardian_id[-24:])])
    fields = {"campaignId": scene.campaign, "wishesUntil": hours_from_now(1)}
    unexplained = await organizer.execute(CONFIGURE, input=fields)
    assert [each["field"] for each in unexplained["fields"]] == ["reason"]
    new = await organizer.execute(CONFIGURE, input={**fields, "reason": "Places are left."})
    assert new["supersedesId"] == old
    former = await organizer.execute(FORMER, id=new["recordId"])
    assert [each["recordId"] for each in former["former"]] == [old]
    ids = [new["recordId"], old]
    for client, result in ((ada, own), (guardian, None), (ben, None), (anonymous, None)):
        found = await scene.read(client, DRAWS)
        assert [each["recordId"] for each in found] == ids
        assert [each["myResult"] for each in found] == [None, result]
        shown = await client.execute(RECORD, id=old)
        assert (shown == record) is (client in (ada, guardian))
        assert (await get_record(client, old)).text == shown
    assert await scene.read(ada, RESULT) == own
    assert await ben.error_code(DRAWS, id=scene.campaign, user=ada_id) == "FORBIDDEN"
    await organizer.execute(UNPUBLISH, id=scene.campaign)
    seen_by = {ada: [old], guardian: [old], ben: [], anonymous: [], organizer: ids}
    for client, seen in seen_by.items():
        assert [each["recordId"] for each in await scene.read(client, DRAWS)] == seen
        is_seen = old in seen
        assert (await client.execute(DRAW_BY_ID, id=old) is not None) is is_seen
        assert (await client.execute(RECORD, id=old) is not None) is is_seen
        for query in ("", "?part=closed"):
            assert ((await get_record(client, old, query)).status_code == 200) is is_seen
    assert await scene.read(ada, RESULT) == own
    (of_child,) = await guardian.execute(DRAWS, id=scene.campaign, user=ada_id)
    assert of_child["myResult"] == own
    of_ada = await organizer.execute(RESULT_IN, id=old, user=ada_id)
    assert of_ada["result"]["leaf"] == own["leaf"]
    for client in (ada, guardian):
        assert await client.error_code(RESULT_IN, id=old, user=ada_id) == "FORBIDDEN"


async def test_organizers_see_why_the_server_cannot_go_on_from_the_third_failure_on(
    scene: DrawScene, mongo_url: str
) -> None:
    await scene.open()
    for failures, shown in ((2, None), (3, "CampaignBusy")):
        failing = {"$set": {"failures": failures, "problem": "CampaignBusy"}}
        of_campaign = {"campaign": ObjectId(scene.campaign[-24:])}
        stored_database(mongo_url)["draws"].update_one(of_campaign, failing)
        assert (await scene.read(scene.organizer, PROBLEM))["problem"] == shown
        assert (await scene.read(scene.members[0], PROBLEM))["problem"] is None


async def test_wrong_input_gets_a_clear_answer(scene: DrawScene) -> None:
    organizer, member = scene.organizer, scene.members[0]
    unknown = "campaign_" + "0" * 24
    for document in (CLOSE, RUN, PUBLISH):
        for wrong in (unknown, "x"):
            refused = await organizer.execute(document, id=wrong)
            assert refused["code"] == "DRAW_NOT_FOUND"
    assert (await get_record(member, "x")).status_code == 404
    for document in (THE_DRAW, MY_WISHES, DEMAND, RESULT, RECORD):
        assert await member.execute(document, id=unknown) is None
    refused = await scene.open(wish_hours=-1, leftoversOpenAt=hours_from_now(99))
    assert [(each["field"], each["code"]) for each in refused["fields"]] == [
        ("wishesUntil", "TIME_PASSED"),
        ("leftoversOpenAt", "AFTER_CLOSING"),
    ]
    fields = {"campaignId": scene.campaign, "wishesUntil": hours_from_now(1)}
    await organizer.execute(CONFIGURE, input=fields)
    for slots, team, problem in (
        ([*scene.slots[:1] * 2], None, "WISHED_TWICE"),
        (["slot_" + "0" * 24], None, "NOT_IN_CAMPAIGN"),
        (["x"], None, "NOT_IN_CAMPAIGN"),
        (["slot_" + f"{n:024}" for n in range(51)], None, "TOO_MANY_WISHES"),
        (scene.slots[:1], "team_" + "0" * 24, "NOT_IN_TEAM"),
        (scene.slots[:1], "x", "NOT_IN_TEAM"),
    ):
        wrong = await member.execute(SET_WISHES, id=scene.campaign, slots=slots, team=team)
        assert [each["code"] for each in wrong["fields"]] == [problem]
    assert (await scene.act(RUN))["code"] == "WRONG_DRAW_STATE"
    assert (await scene.act(PUBLISH))["code"] == "WRONG_DRAW_STATE"
    announced = {"seedSource": "the lottery", "seedAt": hours_from_now(2)}
    opened = await organizer.execute(CONFIGURE, input={**fields, **announced})
    shown = opened["announcement"]
    assert (shown["source"], shown["commitment"]) == ("the lottery", None)
    assert [each["seedSource"] for each in opened["acts"]] == [None, "the lottery"]
    await scene.act(CLOSE)
    assert (await scene.until("root"))["root"]
    early = await scene.act(RUN, seed="x")
    assert (early["code"], early["seedAt"]) == ("SEED_TOO_EARLY", shown["at"])
