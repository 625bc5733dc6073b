"""Every answer to the question why somebody did not get a place, over HTTP, from one draw."""

from typing import Any

from bson import ObjectId

from tests.support.clients.booking_client import BookingClient
from tests.support.clients.campaigns import (
    CLOSE,
    CONFIGURE,
    PUBLISH,
    RESULT,
    RESULT_OF,
    RUN,
    SET_WISHES,
    create_campaign,
    set_groups,
    until_draw,
)
from tests.support.clients.client import Json, hours_from_now, times_in
from tests.support.stores.empty_database import stored_database

PLACES: dict[str, Json] = {
    "taken": {"capacity": 1},
    "beside": {},
    "single": {"capacity": 1},
    "limited": {"capacity": 9, "groupLimits": [{"group": "class:5a", "limit": 1}]},
    "cancelled": {},
    "one": {"choiceGroup": "one of these"},
    "two": {"choiceGroup": "one of these"},
    "cancelled late": {},
    "booked late": {},
    "duo": {"capacity": 9},
}
# Their wishes, and what the API says about each.
ANSWERS = {
    "booked": {"taken": "ALREADY_BOOKED", "beside": "TIME_CONFLICT with taken"},
    "late": {"taken": "FULL", "cancelled": "UNAVAILABLE", "single": "GRANTED"},
    "pair": {"taken": "FULL", "single": "FULL"},
    "classmate": {"limited": "GROUP_FULL of class:5a"},
    "chooser": {
        "one": "GRANTED",
        "two": "LIMIT with one",
        "cancelled late": "GRANTED but SLOT_CANCELLED",
        "booked late": "GRANTED",
    },
    "stranger": {"duo": "NOT_ELIGIBLE"},
    "unverified": {"duo": "NOT_ELIGIBLE"},
    "friend": {"duo": "GRANTED"},
    "banned late": {"duo": "GRANTED but USER_BANNED"},
    "banned": {"duo": ""},
}
TEAMS = {"pair": "pair's mate", "friend": "banned late"}
CODES = {"stranger": "NOT_ELIGIBLE", "unverified": "EMAIL_NOT_VERIFIED"}
NAMES = [*ANSWERS, "pair's mate"]
MEMBER_COUNT = len(NAMES)
BAN = "mutation($user: ID!) { banUser(userId: $user) { __typename } }"
HAS_WISHES = "query($id: ID!) { campaign(id: $id) { hasMyWishes } }"


class AnswerScene:
    """A campaign of these places, and users with these wishes; one is banned before closing."""

    def __init__(self, clients: tuple[BookingClient, ...]) -> None:
        *members, self.organizer = clients
        self.clients = dict(zip(NAMES, members, strict=True))
        self.ids: dict[str, str] = {}
        self.slots: dict[str, str] = {}
        self.campaign = ""

    async def open(self, mongo_url: str) -> None:
        """Create all of it, and close the wishes."""
        await self._add_users(mongo_url)
        rules = {"eligibleGroups": [["pupils"]], "requireVerifiedEmail": True}
        self.campaign = await create_campaign(self.organizer, forbidOverlap=True, **rules)
        for n, (title, fields) in enumerate(PLACES.items()):
            slot = {**times_in(30 if title == "beside" else 30 + 2 * n), **fields}
            self.slots[title] = await self.organizer.add_slot(campaignId=self.campaign, **slot)
        draw = {"campaignId": self.campaign, "wishesUntil": hours_from_now(1)}
        await self.organizer.execute(CONFIGURE, input=draw)
        await self.book("taken", "booked")
        await self.book("limited", "booked")
        await self._enter_wishes()
        await self.organizer.cancel_slot(self.slots["cancelled"])
        await self.organizer.execute(BAN, user=self.ids["banned"])
        await self.organizer.execute(CLOSE, id=self.campaign)
        await until_draw(self.organizer, self.campaign, "root")

    async def _add_users(self, mongo_url: str) -> None:
        for name, user in self.clients.items():
            self.ids[name] = await user.fetch_user_id()
            groups = ["class:5a"] if name in ("booked", "classmate") else []
            pupils = [] if name == "stranger" else ["pupils"]
            await set_groups(self.organizer, user, *groups, *pupils)
        ids = [ObjectId(id_[-24:]) for name, id_ in self.ids.items() if name != "unverified"]
        verified = [{"$set": {"verifiedEmail": "$email"}}]
        stored_database(mongo_url)["users"].update_many({"_id": {"$in": ids}}, verified)

    async def _enter_wishes(self) -> None:
        for name in ANSWERS.keys() - set(TEAMS.values()):
            user, mate = self.clients[name], TEAMS.get(name)
            team = await user.create_team_with(self.clients[mate]) if mate else None
            slots = [self.slots[title] for title in ANSWERS[name]]
            saved = await user.execute(SET_WISHES, id=self.campaign, slots=slots, team=team)
            assert saved["__typename"] == "WishesSaved", (name, saved)

    async def book(self, title: str, name: str) -> None:
        """Book a place for somebody as an organizer."""
        booked = await self.organizer.book_slot(self.slots[title], userId=self.ids[name])
        assert booked["__typename"] == "Booked"

    async def act_after_a_refusal(self, document: str) -> None:
        """Run or publish the draw, which a slot with too few free places refuses."""
        slot = self.slots["duo"]
        for capacity, changed in ((1, [slot]), (9, None)):
            await self.organizer.update_slot(slot, capacity=capacity)
            outcome = await self.organizer.execute(document, id=self.campaign)
            assert outcome.get("slotIds") == changed

    async def ask(self, name: str) -> Any:
        """Return what an organizer sees of somebody's result."""
        return await self.organizer.execute(RESULT_OF, id=self.campaign, user=self.ids[name])


async def test_every_wish_of_everybody_has_its_reason(
    clients: tuple[BookingClient, ...], mongo_url: str
) -> None:
    scene = AnswerScene(clients)
    await scene.open(mongo_url)
    await scene.act_after_a_refusal(RUN)
    await scene.organizer.cancel_slot(scene.slots["cancelled late"])
    await scene.book("booked late", "chooser")
    await scene.organizer.execute(BAN, user=scene.ids["banned late"])
    await scene.act_after_a_refusal(PUBLISH)
    await until_draw(scene.organizer, scene.campaign, "isWritten")
    titles = {slot_id: title for title, slot_id in scene.slots.items()}
    found = {name: await scene.ask(name) for name in ANSWERS}
    assert found.pop("banned") is None
    for name, own in found.items():
        said = {titles[each["slotId"]]: _said(each, titles) for each in own["wishes"]}
        assert (name, said) == (name, ANSWERS[name])
        assert own["memberCount"] == (2 if name in {*TEAMS, *TEAMS.values()} else 1)
        assert own["notEligible"] == CODES.get(name)
    late, where = scene.clients["late"], {"id": scene.campaign}
    assert await late.execute(RESULT, **where) == found["late"]
    assert found["late"]["wishes"][0]["lastNumberServed"] is None
    assert (await late.execute(HAS_WISHES, **where))["hasMyWishes"]
    assert not (await scene.organizer.execute(HAS_WISHES, **where))["hasMyWishes"]


def _said(wish: Json, titles: dict[str, str]) -> str:
    conflict = f" with {titles[wish['conflict']['id']]}" if wish["conflict"] else ""
    group = f" of {wish['group']}" if wish["group"] else ""
    lost = f" but {wish['notBooked']}" if wish["notBooked"] else ""
    return f"{wish['result']}{conflict}{group}{lost}"
