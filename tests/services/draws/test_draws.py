"""The draw of a campaign on real servers, from the wishes to the published record."""

import asyncio
import json
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from hashlib import sha256
from secrets import token_hex
from typing import Any, TypeVar
from unittest.mock import AsyncMock

import pytest
from bson import ObjectId

from slotlock.domain.booking.booking import Booking, SlotId
from slotlock.domain.booking.booking_outcomes import Booked, BookingCancelled, WaitlistLeft
from slotlock.domain.booking.booking_refusals import DrawOnly
from slotlock.domain.booking.decision import BookingChangeRequest, refuse
from slotlock.domain.booking.rules.book import book
from slotlock.domain.booking.rules.booking_changes import cancel
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.booking.user_contexts import UserContexts
from slotlock.domain.campaigns.campaign import (
    CampaignBusy,
    CampaignDeleted,
    CampaignDraft,
    CampaignPatch,
    CampaignSaved,
)
from slotlock.domain.campaigns.terms import CampaignId, CampaignTerms, GroupLimit, SlotAdmission
from slotlock.domain.draws.basis import (
    DrawId,
    DrawMethod,
    DrawRecordReaders,
    commitment_of,
    time_text,
)
from slotlock.domain.draws.draw import (
    Draw,
    DrawActive,
    DrawNotFound,
    DrawOutdated,
    DrawSettings,
    DrawState,
    RootTooLate,
    SeedTooEarly,
    WrongDrawState,
    with_root,
)
from slotlock.domain.draws.drawing import DrawnEntry, WishResult, draw_places
from slotlock.domain.draws.wish_closing import SeenWishes, Wishes
from slotlock.domain.shared.problems import ProblemCode
from slotlock.domain.shared.validation import InvalidInput
from slotlock.domain.teams.team import TeamId
from slotlock.domain.teams.team_outcomes import TeamSaved
from slotlock.domain.users.user import Caller, Role, UserId
from slotlock.infrastructure.draw_records import verify
from slotlock.infrastructure.mongo.client import CommitUnknownError
from slotlock.infrastructure.mongo.draws import demand, text_repository, wish_repository
from slotlock.infrastructure.mongo.ids import new_slot_id
from slotlock.infrastructure.mongo.slots.slot_query import SlotQuery
from slotlock.infrastructure.mongo.users.privacy import Erasure
from slotlock.infrastructure.mongo.users.user_documents import to_new_document
from slotlock.services import teams
from slotlock.services.admission import held_places
from slotlock.services.booking.book import BookingOptions, book_slot
from slotlock.services.booking.booking_changes import change_booking
from slotlock.services.booking.waitlist import JoinWaitlist, leave
from slotlock.services.campaigns import campaigns
from slotlock.services.commands.commit import locked_result
from slotlock.services.commands.executor import run_with_lock
from slotlock.services.container import Services
from slotlock.services.draws import draws, public_records, publication, wishes
from slotlock.services.draws.wishes import WishesSaved
from slotlock.services.erasure import finish_erasure
from slotlock.services.workers import draw_worker
from tests.support.domain.builders import build_slot
from tests.support.model.service_pair import ServicePair
from tests.support.scenarios.families import store_guardians
from tests.support.stores.slots import insert_new_slots
from tests.support.stores.users import new_email

Result = TypeVar("Result")
SEED = "a seed"
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
EARLY = datetime(2000, 1, 1, tzinfo=UTC)


class Scene:
    """A campaign with slots of two places, whose places are drawn, and members with wishes."""

    def __init__(self, pair: ServicePair, member_count: int = 6, **terms: Any) -> None:
        self.pair, self.organizer = pair, pair.organizer
        self.services = pair.services[0]
        documents = [
            to_new_document("Ada", new_email(), Role.MEMBER, "hash", pair.clock())
            for _ in range(member_count)
        ]
        pair.database["users"].insert_many(documents)
        self.members = [
            Caller(UserId(str(each["_id"])), Role.MEMBER, "session", pair.clock())
            for each in documents
        ]
        self.run(self._create(terms))

    async def _create(self, terms: dict[str, Any]) -> None:
        now = self.pair.clock()
        draft = CampaignDraft("Sports", now + DAY, now + 9 * DAY, published=True, **terms)
        saved = await campaigns.create(self.services, draft, self.organizer.user_id)
        assert isinstance(saved, CampaignSaved)
        self.campaign_id = saved.campaign.id
        settings = DrawSettings(DrawMethod.ROUNDS, now + HOUR)
        opened = await draws.configure_draw(
            self.services, self.organizer, self.campaign_id, settings
        )
        assert isinstance(opened, Draw)
        self.pair.database["draws"].update_one(
            {"_id": ObjectId(opened.id)}, {"$set": {"serverSeed": SEED}}
        )
        campaign = await self.services.campaigns.find(self.campaign_id)
        assert campaign is not None
        self.slots = await self.add_slots(campaign.terms)

    async def add_slots(self, terms: CampaignTerms) -> list[SlotId]:
        """Insert four slots with two places each, one after the other."""
        now = self.pair.clock()
        slots = [
            build_slot(
                2,
                id=new_slot_id(),
                start=now + 2 * DAY + n * HOUR,
                end=now + 2 * DAY + (n + 1) * HOUR,
                terms=terms,
            )
            for n in range(4)
        ]
        await insert_new_slots(self.services.slot_writer._database, *slots)
        return [slot.id for slot in slots]

    def run(self, step: Coroutine[Any, Any, Result]) -> Result:
        """Run a step in the loop of the services."""
        return self.pair.runner.run(step)

    def latest(self) -> Draw:
        """Return the latest draw."""
        found = self.run(self.services.draws.find_latest(self.campaign_id))
        assert found is not None
        return found

    def configure(self, **fields: Any) -> Any:
        """Change the settings of the draw: it goes by rounds, and closes in an hour."""
        settings = DrawSettings(DrawMethod.ROUNDS, self.pair.clock() + HOUR, **fields)
        where = self.services, self.organizer, self.campaign_id
        return self.run(draws.configure_draw(*where, settings))

    def open_draw(self, reason: str = "a reason", like: DrawId | None = None) -> Any:
        """Open another draw, perhaps with the wishes of an earlier one."""
        settings = DrawSettings(DrawMethod.ROUNDS, self.pair.clock() + HOUR)
        where = self.services, self.organizer, self.campaign_id
        return self.run(draws.configure_draw(*where, settings, like, reason=reason))

    def supersede(self, reason: str = "a reason") -> Any:
        """Replace the draw by another one."""
        where = self.services, self.organizer, self.campaign_id
        return self.run(draws.supersede_draw(*where, reason))

    def start_publication(self, services: int = 0) -> Any:
        """Publish the result, and leave what follows to a worker."""
        using = self.pair.services[services]
        return self.run(draws.publish_draw(using, self.organizer, self.campaign_id))

    def is_open_to_all(self) -> bool:
        """Return whether everybody books in the campaign."""
        campaign = self.run(self.services.campaigns.find(self.campaign_id))
        assert campaign is not None
        return campaign.terms.admission is SlotAdmission.ANY

    def add_wishes(self, *ranks: int) -> None:
        """Store the first wishes of all members, with one write."""
        slot_ids, now = tuple(self.slots[n] for n in ranks), self.pair.clock()
        lists = [
            Wishes((each.user_id,), slot_ids, token_hex(16), each.user_id, now)
            for each in self.members
        ]
        self.run(self.services.wishes.insert(self.latest(), lists))

    def wish(self, member: Caller, *ranks: int) -> Any:
        """Set the wishes of a member to the slots with these numbers."""
        return self.run(
            wishes.set_wishes(
                self.services, member, self.campaign_id, [self.slots[n] for n in ranks]
            )
        )

    def close(self) -> Draw:
        """Close the wishes, which has to succeed."""
        closed = self.run(draws.close_wishes(self.services, self.organizer, self.campaign_id))
        assert isinstance(closed, Draw)
        stored = self.run(draws.store_basis(self.services, closed.id))
        assert isinstance(stored, Draw)
        return stored

    def draw(self, seed: str | None = None) -> Any:
        """Run the draw."""
        return self.run(draws.run_draw(self.services, self.organizer, self.campaign_id, seed))

    def result(self) -> tuple[DrawnEntry, ...]:
        """Return what the usual seed gives."""
        draw = self.latest()
        assert draw.root is not None
        return draw_places(self.run(self.services.draws.load_basis(draw)), draw.root, SEED)

    def publish(self, services: int = 0) -> Draw:
        """Publish the result, which has to succeed, and do all that follows."""
        using, published = self.pair.services[services], self.start_publication(services)
        assert isinstance(published, Draw)
        self.run(publication.finish_publication(using, published))
        found = self.run(using.draws.find(published.id))
        assert found is not None
        assert found.is_written
        return found

    def record(self, viewer: Caller | None = None) -> dict[str, Any]:
        """Return the record as an organizer reads it, or another viewer; it has to be right."""
        viewer = viewer or self.organizer
        record = self.run(public_records.draw_record(self.services, self.latest(), viewer))
        assert record is not None
        document: dict[str, Any] = json.loads(record)
        assert verify(document) == []
        return document

    def book_by_hand(self, member: Caller, slot_id: SlotId, *, hold: bool = False) -> Booking:
        """Let the organizer book for a user."""
        options = BookingOptions(hold=hold)
        request = book_slot(self.services, self.organizer, slot_id, member.user_id, options)
        outcome = self.run(request).outcome
        assert isinstance(outcome, Booked)
        return outcome.booking

    def create_team(self, first: Caller, second: UserId) -> TeamId:
        """Return a team of two, with a second user who need not exist."""
        created = self.run(teams.create(self.services, "Duo", first.user_id))
        assert isinstance(created, TeamSaved)
        joined = {"user": ObjectId(second), "since": self.pair.clock(), "number": 7}
        self.pair.database["teams"].update_one({}, {"$push": {"members": joined}})
        return created.team.id

    def wish_as_team(self, member: Caller, team_id: TeamId, *slot_ids: SlotId) -> Any:
        """Set the wishes of a team."""
        where = self.services, member, self.campaign_id
        return self.run(wishes.set_wishes(*where, slot_ids, team_id))

    def cancel(self, booking: Booking) -> None:
        """Let the organizer cancel a booking."""
        request = BookingChangeRequest(booking.slot_id, booking.id, self.organizer)
        outcome = self.run(change_booking(self.services, cancel, request)).outcome
        assert isinstance(outcome, BookingCancelled)

    def winners(self, slot_id: SlotId) -> list[Caller]:
        """Return the members to whom a draw with the usual seed gives a place in a slot."""
        leaves = [each.entry.leaf for each in self.result() if slot_id in each.granted]
        entries = self.pair.database["draw_entries"].find({"leaf": {"$in": leaves}})
        users = {str(user) for each in entries for user in each["users"]}
        return [each for each in self.members if each.user_id in users]

    def find_bookings(self, slot_id: SlotId) -> Sequence[Booking]:
        """Return the live bookings of a slot."""
        return self._roster(slot_id).bookings

    def waiting(self, slot_id: SlotId) -> list[UserId]:
        """Return the users who wait for a slot, in order."""
        return [each.user_id for each in self._roster(slot_id).waitlist]

    def _roster(self, slot_id: SlotId) -> SlotState:
        found = self.run(self.services.slots.find_with_roster(slot_id))
        assert found is not None
        return found

    def leave(self, slot_id: SlotId, user_id: UserId) -> None:
        """Let a user leave a waiting list."""
        outcome = self.run(leave(self.services, slot_id, user_id, 0)).outcome
        assert isinstance(outcome, WaitlistLeft)

    def booked(self) -> set[tuple[SlotId, UserId, str]]:
        """Return the slots, users and ids of all live bookings."""
        found = self.pair.database["slots"].find({"campaign.id": ObjectId(self.campaign_id)})
        return {
            (SlotId(str(slot["_id"])), UserId(str(each["user"])), str(each["id"]))
            for slot in found
            for each in slot["bookings"]
        }

    def own_result(self, member: Caller | None = None) -> Any:
        """Return what a member sees of their entry, by default the first one."""
        user_id = (member or self.members[0]).user_id
        return self.run(draws.find_draw_result(self.services, user_id, self.campaign_id))

    def drawn_places(self) -> set[tuple[SlotId, UserId]]:
        """Return the places that the results of all members say were granted."""
        places = set()
        for member in self.members:
            own = self.own_result(member)
            for slot_id in own.drawn.granted if own and own.drawn else ():
                places.add((slot_id, member.user_id))
        return places


def joins(*arguments: Any) -> bool:
    """Return whether these arguments of `run_with_lock` let users join a waiting list."""
    return isinstance(arguments[1][0], JoinWaitlist)


@pytest.fixture
def scene(pair: ServicePair) -> Scene:
    """Return a campaign in which six members wish for the same slots."""
    pair.reset()
    opened = Scene(pair, max_bookings=2, forbid_overlap=True)
    opened.add_wishes(0, 1, 2)
    return opened


def test_a_draw_goes_from_wishes_to_bookings_and_a_record_that_everybody_can_verify(
    scene: Scene,
) -> None:
    assert scene.close().state is DrawState.CLOSED
    assert '"wishes"' not in json.dumps(scene.record())
    assert scene.draw().state is DrawState.DRAWN
    assert scene.booked() == set()
    assert "entries" not in scene.record()
    assert scene.drawn_places() == set()
    assert scene.publish().state is DrawState.PUBLISHED
    record = scene.record()
    assert record["notBooked"] == []
    assert [act["state"] for act in record["acts"]] == [
        *("collecting", "closed", "drawn", "published")
    ]
    places = scene.drawn_places()
    assert len(places) == 6
    assert {(slot_id, user_id) for slot_id, user_id, _ in scene.booked()} == places
    by_hand = {"bookings": {"$elemMatch": {"madeAs": {"$ne": "draw"}}}}
    assert scene.pair.database["slots"].count_documents(by_hand) == 0
    assert scene.own_result().leaf in {entry["leaf"] for entry in record["entries"]}


def test_the_record_has_nothing_of_a_hidden_campaign_and_the_user_reads_what_stands_against_a_wish(
    scene: Scene,
) -> None:
    now, ada = scene.pair.clock(), scene.members[0]
    draft = CampaignDraft("Secret", now + HOUR, now + 9 * DAY, published=False, forbid_overlap=True)
    hidden = scene.run(campaigns.create(scene.services, draft, scene.organizer.user_id))
    assert isinstance(hidden, CampaignSaved)
    start, limit = now + 2 * DAY + HOUR / 4, GroupLimit("secret group", 9)
    times = {"start": start, "end": start + HOUR / 2}
    facts = {"title": "Secret choir", "terms": hidden.campaign.terms, "group_limits": (limit,)}
    secret = build_slot(2, id=new_slot_id(), **times, **facts)
    scene.run(insert_new_slots(scene.services.slot_writer._database, secret))
    scene.book_by_hand(ada, secret.id)
    scene.close()
    closed = json.dumps(scene.record())
    scene.draw()
    scene.publish()
    published = json.dumps(scene.record())
    assert len(json.loads(published)["entries"]) == 6
    for text in (closed, published):
        for each in (secret.id, hidden.campaign.id, "ecret", *map(time_text, times.values())):
            assert each not in text
    first = scene.own_result(ada).drawn.outcomes[0]
    assert (first.result, first.conflict) == (WishResult.TIME_CONFLICT, secret.id)


async def load_as_decisions_do(
    services: Services,
    _: CampaignId,
    states: Sequence[SlotState],
    user_ids: Sequence[UserId],
    *,
    slot_count: int | None = None,
) -> UserContexts:
    """Load what decisions in some of the slots need, and no more."""
    slots = {state.id: state for state in states[:slot_count]}
    queries = [SlotQuery(slot_id, services.now(), user_ids) for slot_id in slots]
    return (await services.slots.with_user_contexts(slots, queries)).users


LOADERS = {
    "all": draws._load_contexts,
    "as decisions do": load_as_decisions_do,
    "as one decision does": partial(load_as_decisions_do, slot_count=1),
}


@pytest.mark.parametrize("loader", LOADERS)
def test_a_campaign_without_limits_knows_earlier_bookings_and_the_limits_of_each_slot(
    pair: ServicePair, loader: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair.reset()
    scene = Scene(pair, member_count=3)
    ada, ben, cleo = scene.members
    slots, members = scene.pair.database["slots"], scene.pair.database["users"]
    limits = {"groupLimits": [{"group": "5a", "limit": 1}], "choiceGroup": "one of these"}
    slots.update_one({"_id": ObjectId(scene.slots[1])}, {"$set": limits})
    for each in (ada, ben):
        members.update_one({"_id": ObjectId(each.user_id)}, {"$set": {"groups": ["5a"]}})
    elsewhere, cancelled = (
        build_slot(2, id=new_slot_id(), choice_group="one of these") for _ in range(2)
    )
    scene.run(insert_new_slots(scene.services.slot_writer._database, elsewhere, cancelled))
    earlier = (
        *((ada, scene.slots[0]), (ada, scene.slots[1])),
        *((cleo, elsewhere.id), (ben, cancelled.id)),
    )
    for member, slot_id in earlier:
        scene.book_by_hand(member, slot_id)
    slots.update_one({"_id": ObjectId(cancelled.id)}, {"$set": {"status": "cancelled"}})
    for member, *ranks in ((ada, 0), (ben, 0, 1), (cleo, 1)):
        scene.wish(member, *ranks)
    monkeypatch.setattr(draws, "_load_contexts", LOADERS[loader])
    scene.close()
    scene.draw()
    scene.publish()
    results = []
    for member in scene.members:
        drawn = scene.own_result(member).drawn
        results.append([outcome.result for outcome in drawn.outcomes] if drawn else [])
    expected = [
        [WishResult.ALREADY_BOOKED],
        [WishResult.GRANTED, WishResult.GROUP_FULL],
        [WishResult.LIMIT],
    ]
    roster = {(slot_id, user_id) for slot_id, user_id, _ in scene.booked()}
    places = scene.drawn_places() | {(slot_id, member.user_id) for member, slot_id in earlier[:2]}
    is_right = results == expected and roster == places and scene.record()["notBooked"] == []
    assert is_right is (loader == "all")


@pytest.mark.parametrize("is_stored", [True, False])
def test_a_record_has_the_same_bytes_at_each_read_whatever_changes(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, is_stored: bool
) -> None:
    async def compute(_: object, draw_id: DrawId, __: str) -> str | None:
        draw = await scene.services.draws.find(draw_id)
        assert draw is not None
        basis = await scene.services.draws.load_basis(draw)
        drawn = draw_places(basis, draw.root or "", SEED)
        name = await public_records.store_result(scene.services, draw, basis, drawn)
        return await find(scene.services.draw_texts, draw_id, name)

    find = type(scene.services.draw_texts).find
    if not is_stored:
        monkeypatch.setattr(type(scene.services.draw_texts), "find", compute)
    monkeypatch.setattr(text_repository, "PART_BYTES", 1_000)
    draw = scene.close()

    async def read() -> list[str | None]:
        found = await scene.services.draws.find(draw.id)
        assert found is not None
        readers = (public_records.draw_record(each, found, scene.organizer) for each in both)
        return await asyncio.gather(*readers)

    both = scene.pair.services
    closed = scene.run(read())
    scene.draw()
    published = scene.publish()
    over = scene.run(read())
    changed = {"$set": {"slot.title": "Another title"}}
    scene.pair.database["draw_slots"].update_many({}, changed)
    assert len({*closed, *scene.run(read()), *over}) == (2 if is_stored else 3)
    record_hash = sha256((scene.run(read())[0] or "").encode()).hexdigest()
    assert (record_hash == published.record_hash) is is_stored


@pytest.mark.parametrize("readers", DrawRecordReaders)
def test_the_result_in_the_record_is_for_those_whom_the_settings_name(
    scene: Scene, readers: DrawRecordReaders
) -> None:
    assert isinstance(scene.configure(record_for=readers), Draw)
    scene.close()
    scene.draw()
    draw, stranger = scene.publish(), scene.pair.callers[0]
    is_open = readers is DrawRecordReaders.EVERYBODY
    for viewer, is_shown in (
        *((scene.members[0], True), (scene.organizer, True)),
        *((stranger, is_open), (None, is_open)),
    ):
        text = scene.run(public_records.draw_record(scene.services, draw, viewer))
        document = json.loads(text or "")
        assert verify(document) == []
        assert ("entries" in document) is is_shown
        assert document["rules"]["recordFor"] == readers.value


@pytest.mark.parametrize("is_chained", [True, False])
def test_a_further_draw_needs_a_reason_and_its_root_has_the_records_of_all_earlier_ones(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, is_chained: bool
) -> None:
    services, where = scene.services, scene.campaign_id
    scene.close()
    first = scene.draw()
    assert isinstance(scene.supersede("The room is smaller."), Draw)
    scene.close()
    scene.draw()
    scene.publish()
    assert [each.field for each in scene.open_draw(reason=" ").problems] == ["reason"]
    opened = scene.open_draw(reason="Three left.")
    assert opened.acts[0].reason == "Three left."
    if not is_chained:
        monkeypatch.setattr(Draw, "as_former", replace(first, root=None).as_former)
    scene.close()
    rules = scene.record()["rules"]
    found = scene.run(services.draws.find_all(where))
    texts = [
        scene.run(public_records.draw_record(services, each, scene.organizer)) or ""
        for each in reversed(found[1:])
    ]
    chain = [
        {
            "draw": json.loads(text)["rules"]["draw"],
            "state": state,
            "root": json.loads(text)["root"],
            "seedKnown": True,
            "reason": reason,
            "recordHash": sha256(text.encode()).hexdigest(),
        }
        for text, state, reason in zip(
            texts, ("superseded", "published"), ("The room is smaller.", None), strict=True
        )
    ]
    assert (rules["former"] == chain) is is_chained
    assert rules["acts"][0]["reason"] == "Three left."


def test_only_organizers_book_until_the_result_is_published(scene: Scene) -> None:
    scene.pair.clock.advance(DAY)

    def book(caller: Caller, slot: int) -> object:
        user_id, slot_id = scene.members[0].user_id, scene.slots[slot]
        request = book_slot(scene.services, caller, slot_id, user_id, BookingOptions())
        return scene.run(request).outcome

    assert book(scene.members[0], 3) == DrawOnly(scene.slots[3])
    assert isinstance(book(scene.organizer, 0), Booked)
    scene.close()
    scene.draw()
    assert book(scene.members[0], 3) == DrawOnly(scene.slots[3])
    scene.publish()
    assert scene.is_open_to_all()
    assert scene.own_result().drawn.outcomes[0].result is WishResult.ALREADY_BOOKED
    outcome = book(scene.members[5], 3)
    assert not isinstance(outcome, DrawOnly)


def test_wishes_of_after_closing_are_refused_and_a_second_closing_changes_nothing(
    scene: Scene,
) -> None:
    first = scene.close()
    assert isinstance(scene.wish(scene.members[0], 3), WrongDrawState)
    assert scene.close() == first


@pytest.mark.parametrize(("reads_again", "outcome"), [(True, WrongDrawState), (False, WishesSaved)])
def test_wishes_that_meet_the_closing_are_saved_only_if_they_count(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, reads_again: bool, outcome: type
) -> None:
    repository, draw_repository = type(scene.services.wishes), type(scene.services.draws)
    save, find_latest = repository.save, draw_repository.find_latest
    before = scene.latest()

    async def close_and_save(*arguments: Any, **options: Any) -> ProblemCode | None:
        closed = await draws.close_wishes(scene.services, None, scene.campaign_id)
        assert isinstance(closed, Draw)
        await draws.store_basis(scene.services, closed.id)
        if not reads_again:
            monkeypatch.setattr(draw_repository, "find", read_once)
        return await save(*arguments, **options)

    async def read_once(*_: object) -> Draw | None:
        return before

    monkeypatch.setattr(repository, "save", close_and_save)
    assert isinstance(scene.wish(scene.members[0], 3), outcome)
    after = scene.run(find_latest(scene.services.draws, scene.campaign_id))
    assert after is not None
    basis = scene.run(scene.services.draws.load_basis(after))
    assert scene.slots[3] not in {slot_id for each in basis.entries for slot_id in each.wishes}


def announce(scene: Scene, seed_at: datetime | None, source: str = "the lottery") -> Any:
    """Announce the source of the seed."""
    return scene.configure(seed_source=source, seed_at=seed_at)


def test_an_announced_seed_is_drawn_from_its_moment_on_and_none_but_it(scene: Scene) -> None:
    seed_at = scene.pair.clock() + HOUR + 10 * MINUTE
    for wrong in (seed_at - MINUTE, None):
        refused = announce(scene, wrong)
        assert [each.field for each in refused.problems] == ["seedAt"]
    assert [each.field for each in announce(scene, seed_at, " ").problems] == ["seedSource"]
    assert isinstance(announce(scene, seed_at), Draw)
    scene.pair.clock.advance(10 * MINUTE)
    later = seed_at + 10 * MINUTE
    announced = announce(scene, later, " the lottery ")
    assert announce(scene, later) == announced  # repeated
    assert [(act.seed_source, act.seed_at) for act in announced.acts] == [
        *((None, None), ("the lottery", seed_at), ("the lottery", later))
    ]
    assert announced.announcement.commitment is None
    scene.close()
    for early in (timedelta(), HOUR):
        scene.pair.clock.advance(early)
        assert scene.draw("4 17 23") == SeedTooEarly(later)
    scene.pair.clock.now = later
    assert isinstance(scene.draw(), InvalidInput)
    drawn = scene.draw(" 4 17 23 ")
    assert (drawn.seed.text, drawn.seed.source, drawn.seed.by_server) == (
        *("4 17 23", "the lottery", False),
    )
    assert scene.draw("4 17 24") == WrongDrawState(DrawState.DRAWN)


@pytest.mark.parametrize("knows_root", [True, False])
def test_a_seed_that_was_public_before_the_root_is_never_drawn(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, knows_root: bool
) -> None:
    seed_at = scene.pair.clock() + 2 * HOUR
    announce(scene, seed_at)
    if not knows_root:
        monkeypatch.setattr(
            draws, "with_root", lambda draw, root, count, _: with_root(draw, root, count, EARLY)
        )
    scene.pair.clock.now = seed_at
    closed = scene.close()
    drawn = scene.draw("4 17 23")
    assert (drawn == RootTooLate(closed.root_at)) is knows_root
    if knows_root:
        again = scene.supersede()
        assert isinstance(again, Draw)
        assert (again.settings.seed_source, again.settings.seed_at) == ("", None)


def test_a_seed_of_the_server_fits_its_commitment_and_no_preview_shows_it(scene: Scene) -> None:
    opened = scene.latest()
    assert SEED not in repr(opened)
    preview = draws.preview_draw(scene.services, scene.campaign_id)
    scene.close()
    assert isinstance(scene.draw("my seed"), InvalidInput)
    before = scene.run(preview)
    drawn = scene.draw()
    assert drawn.seed.by_server
    assert opened.announcement.commitment == commitment_of(opened.id, drawn.seed.text)
    after = scene.run(draws.preview_draw(scene.services, scene.campaign_id))
    assert isinstance(before, draws.DrawPreview)
    assert isinstance(after, draws.DrawPreview)
    assert after.drawn == scene.result()
    assert {each.lot for each in before.drawn}.isdisjoint({each.lot for each in after.drawn})


@pytest.mark.parametrize("waits", [True, False])
def test_a_save_around_the_closing_says_what_counts(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, waits: bool
) -> None:
    """Close before one of the saves is stored, and store the root after some of the others."""
    repository, closings = type(scene.services.wishes), list[asyncio.Task[object]]()
    save, lists = repository.save, [[2, 1], [3], [1, 3], [], [2], [0, 1, 2]]

    async def close_and_save(*arguments: Any, **options: Any) -> ProblemCode | None:
        if not closings:
            closed = await draws.close_wishes(scene.services, None, scene.campaign_id)
            assert isinstance(closed, Draw)
            closings.append(asyncio.create_task(draws.store_basis(scene.services, closed.id)))
        return await save(*arguments, **options)

    async def count_nothing(*_: object) -> bool:
        return False

    async def save_all() -> Sequence[object]:
        steps = (
            wishes.set_wishes(
                scene.services, member, scene.campaign_id, [scene.slots[n] for n in ranks]
            )
            for member, ranks in zip(scene.members, lists, strict=True)
        )
        saved = await asyncio.gather(*steps)
        await asyncio.gather(*closings)
        return saved

    monkeypatch.setattr(repository, "save", close_and_save)
    if not waits:
        monkeypatch.setattr(wishes, "_are_counted", count_nothing)
    outcomes = scene.run(save_all())
    draw, are_right = scene.latest(), []
    for member, ranks, outcome in zip(scene.members, lists, outcomes, strict=True):
        own = scene.run(scene.services.draws.find_result(draw, member.user_id))
        is_counted = list(own.wishes if own else ()) == [scene.slots[n] for n in ranks]
        are_right.append(isinstance(outcome, WishesSaved) is is_counted)
    assert all(are_right) is waits


def test_wishes_whose_closing_does_not_end_are_uncertain(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    save = type(scene.services.wishes).save

    async def close_and_save(*arguments: Any, **options: Any) -> ProblemCode | None:
        await draws.close_wishes(scene.services, None, scene.campaign_id)
        return await save(*arguments, **options)

    monkeypatch.setattr(type(scene.services.wishes), "save", close_and_save)
    monkeypatch.setattr(wishes, "ROOT_INTERVAL_S", wishes.ROOT_WAIT_S / 2)
    monkeypatch.setattr(asyncio, "sleep", no_pause(asyncio.sleep))
    with pytest.raises(CommitUnknownError):
        scene.wish(scene.members[0], 3)


def no_pause(sleep: Any) -> Any:
    """Return a function that does not wait."""

    async def go_on(_: float) -> None:
        await sleep(0)

    return go_on


@pytest.mark.parametrize("state", [DrawState.COLLECTING, DrawState.CLOSED, DrawState.DRAWN])
def test_a_draw_is_called_off_with_a_reason_and_everybody_books_again(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, state: DrawState
) -> None:
    if state is not DrawState.COLLECTING:
        scene.close()
    if state is DrawState.DRAWN:
        scene.draw()

    def cancel_draw(reason: str = "The trip is cancelled.") -> Any:
        step = draws.cancel_draw(scene.services, scene.organizer, scene.campaign_id, reason)
        return scene.run(step)

    assert isinstance(cancel_draw(" "), InvalidInput)
    with killed_at(Write(draws, "_free"), monkeypatch, is_written=False):
        cancel_draw()
    assert not scene.is_open_to_all()
    cancelled = cancel_draw()
    assert (cancelled.state, cancelled.acts[-1].reason) == (
        *(DrawState.CANCELLED, "The trip is cancelled."),
    )
    assert scene.is_open_to_all()
    assert cancel_draw() == cancelled
    scene.run(draw_worker.advance_draws(scene.services))
    after = scene.run(scene.services.draws.find(cancelled.id))
    assert after is not None
    assert (after.record_hash is not None) is (state is not DrawState.COLLECTING)
    if after.record_hash:
        record = scene.record()
        assert record["acts"][-1]["reason"] == "The trip is cancelled."
        assert ("entries" in record) is (state is DrawState.DRAWN)
    assert isinstance(scene.open_draw(), Draw)


def test_nobody_calls_off_a_published_draw_or_opens_its_campaign(scene: Scene) -> None:
    scene.close()
    scene.draw()
    assert isinstance(scene.start_publication(), Draw)
    where = scene.services, scene.organizer, scene.campaign_id
    step = partial(draws.cancel_draw, *where, "a reason")
    assert scene.run(step()) == WrongDrawState(DrawState.PUBLISHED)
    assert not scene.is_open_to_all()
    scene.publish()
    assert scene.run(step()) == WrongDrawState(DrawState.PUBLISHED)


def test_a_campaign_whose_draw_never_opened_is_freed(scene: Scene) -> None:
    scene.pair.database["draws"].delete_many({})
    step = draws.cancel_draw(scene.services, scene.organizer, scene.campaign_id, "a reason")
    assert scene.run(step) == DrawNotFound(scene.campaign_id)
    assert scene.is_open_to_all()


def test_two_organizers_who_close_and_draw_at_once_have_one_root_and_one_seed(
    scene: Scene,
) -> None:
    both = scene.pair.services
    announce(scene, scene.pair.clock() + 2 * HOUR)

    async def at_once(*steps: Coroutine[Any, Any, object]) -> Sequence[object]:
        return await asyncio.gather(*steps)

    caller, where = scene.organizer, scene.campaign_id

    async def close(services: Services) -> object:
        closed = await draws.close_wishes(services, caller, where)
        assert isinstance(closed, Draw)
        return await draws.store_basis(services, closed.id)

    closed = scene.run(at_once(*(close(each) for each in both)))
    roots = {each.root for each in closed if isinstance(each, Draw)}
    assert len(roots) == 1
    assert {each["root"] for each in scene.pair.database["draw_entries"].find()} == roots
    scene.pair.clock.advance(2 * HOUR)
    seeds = zip(both, ("4 17 23", "5 18 24"), strict=True)
    drawn = scene.run(at_once(*(draws.run_draw(each, caller, where, seed) for each, seed in seeds)))
    assert sorted(type(each).__name__ for each in drawn) == ["Draw", "WrongDrawState"]
    scene.publish()
    assert {(slot, user) for slot, user, _ in scene.booked()} == scene.drawn_places()


def test_a_draw_that_was_killed_anywhere_gives_the_same_bookings_when_it_runs_again(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kill the process before and after each write, in their order, one after the other."""
    assert isinstance(scene.configure(joins_waitlists=True), Draw)
    for services in scene.pair.services:
        services.sends_mail = True
    repository, outbox = type(scene.services.draws), type(scene.services.outbox)

    def books(*arguments: Any) -> bool:
        return isinstance(arguments[1][0], publication.BookDrawnPlace)

    steps: list[tuple[Callable[..., object], list[Write]]] = [
        (
            scene.close,
            [
                Write(repository, "update"),
                Write(repository, "insert_basis"),
                Write(repository, "delete_other_bases"),
            ],
        ),
        (scene.draw, [Write(repository, "update")]),
        (
            scene.publish,
            [
                Write(repository, "update"),
                Write(repository, "save_results"),
                Write(publication, "run_with_lock", books),
                Write(repository, "set_written"),
                Write(publication, "run_with_lock", joins),
                Write(outbox, "insert"),
                Write(campaigns, "edit_unless_changed"),
                Write(repository, "update"),
            ],
        ),
    ]
    for step, writes in steps:
        for number, write in enumerate(writes):
            for is_written in (False, True):
                with killed_at(write, monkeypatch, is_written=is_written):
                    step(services=number % 2) if step == scene.publish else step()
        step()
    before = scene.booked()
    assert scene.publish() == scene.publish(services=1)
    assert scene.booked() == before
    assert {(slot, user) for slot, user, _ in before} == scene.drawn_places()
    slots = list(scene.pair.database["slots"].find({"campaign.id": ObjectId(scene.campaign_id)}))
    waiting = [[each["user"] for each in slot["waitlist"]] for slot in slots]
    assert any(waiting)
    assert all(len(each) == len(set(each)) for each in waiting)
    draw = scene.latest()
    mails = scene.pair.database["outbox"].find({"_id": {"$regex": f":{draw.id}:"}})
    recipients = sorted(each["_id"].rpartition(":")[2] for each in mails)
    assert recipients == sorted(each.user_id for each in scene.members)
    assert scene.is_open_to_all()
    assert scene.record()["notBooked"] == []
    closed = scene.run(public_records.draw_record(scene.services, draw, None))
    assert verify(json.loads(closed or "")) == []


def drawn_with_waitlists(scene: Scene) -> None:
    """Close and draw; the publication will let losers join the waiting lists."""
    assert isinstance(scene.configure(joins_waitlists=True), Draw)
    scene.close()
    scene.draw()


@pytest.mark.parametrize("is_guarded", [True, False])
@pytest.mark.parametrize("is_open", [False, True])
def test_a_repeated_publication_puts_nobody_back_on_a_waiting_list(
    scene: Scene, is_open: bool, is_guarded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It dies once its waiting lists are joined, or once the campaign is open as well."""
    drawn_with_waitlists(scene)
    monkeypatch.setattr(publication.RecordProgress, "is_edit", is_guarded)
    last = (
        Write(campaigns, "edit_unless_changed")
        if is_open
        else Write(publication, "run_with_lock", joins)
    )
    with killed_at(last, monkeypatch, is_written=True):
        scene.publish()
    slot_id = next(each for each in scene.slots if scene.waiting(each))
    gone = scene.waiting(slot_id)[:2]
    scene.leave(slot_id, gone[1])
    if is_open:
        scene.pair.clock.advance(DAY)
        scene.cancel(scene.find_bookings(slot_id)[0])
        (promoted,) = (each for each in scene.find_bookings(slot_id) if each.user_id == gone[0])
        scene.cancel(promoted)
    else:
        scene.leave(slot_id, gone[0])
    waiting, booked = scene.waiting(slot_id), scene.booked()
    scene.run(draw_worker.advance_draws(scene.pair.services[1]))
    assert scene.latest().is_written
    assert (scene.waiting(slot_id) == waiting) is is_guarded
    assert scene.booked() == booked
    assert all(map(scene.waiting, scene.slots[:3]))


@pytest.mark.parametrize("is_guarded", [True, False])
def test_a_worker_that_is_late_puts_nobody_back_on_a_waiting_list(
    scene: Scene, is_guarded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn_with_waitlists(scene)
    monkeypatch.setattr(publication.RecordProgress, "is_edit", is_guarded)
    first, other = scene.pair.services
    published = scene.start_publication()
    assert isinstance(published, Draw)
    left: list[tuple[SlotId, UserId]] = []

    async def run_late(services: Services, commands: Any, wait_s: float) -> Any:
        """Let another worker do it all, and somebody leave, between a read and its write."""
        if joins(services, commands) and services is first and not left:
            await publication.finish_publication(other, published)
            entry = commands[0].entry
            left.append((entry.slot_id, entry.user_id))
            await leave(services, entry.slot_id, entry.user_id, 0)
        return await run_with_lock(services, commands, wait_s)

    monkeypatch.setattr(publication, "run_with_lock", run_late)
    scene.run(publication.finish_publication(first, published))
    assert scene.latest().is_written
    (slot_id, user_id) = left[0]
    assert scene.waiting(slot_id)
    assert (user_id not in scene.waiting(slot_id)) is is_guarded


def test_a_slot_that_stays_locked_leaves_nobody_off_its_waiting_list(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn_with_waitlists(scene)
    attempts = []

    async def run_unless_joining(services: Services, commands: Any, wait_s: float) -> Any:
        if not joins(services, commands):
            return await run_with_lock(services, commands, wait_s)
        attempts.append(commands)
        return tuple(map(locked_result, commands)) if len(attempts) % 2 else None

    with monkeypatch.context() as patch:
        patch.setattr(publication, "run_with_lock", run_unless_joining)
        patch.setattr(publication, "MAX_LOCKED_ATTEMPTS", 2)
        with pytest.raises(TimeoutError):
            scene.publish()
    assert len(attempts) == 2
    assert not scene.latest().is_written
    monkeypatch.setattr(publication, "BATCH_SIZE", 1)
    scene.publish()
    assert [len(scene.waiting(slot)) for slot in scene.slots] == [4, 4, 4, 0]


def test_a_waiting_list_that_was_full_admits_nobody_in_a_repetition(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn_with_waitlists(scene)
    scene.pair.database["slots"].update_many({}, {"$set": {"waitlistCapacity": 1}})
    monkeypatch.setattr(publication, "BATCH_SIZE", 1)
    with killed_at(Write(campaigns, "edit_unless_changed"), monkeypatch, is_written=False):
        scene.publish()
    assert [len(scene.waiting(slot)) for slot in scene.slots] == [1, 1, 1, 0]
    scene.leave(scene.slots[0], scene.waiting(scene.slots[0])[0])
    scene.publish(services=1)
    assert [len(scene.waiting(slot)) for slot in scene.slots] == [0, 1, 1, 0]


@pytest.mark.parametrize("missing", [None, "refusals that count", "records"])
def test_a_drawn_place_that_was_given_back_is_not_booked_by_a_repetition(
    scene: Scene, missing: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if missing == "refusals that count":
        monkeypatch.setattr(publication, "accept", refuse)
    monkeypatch.setattr(publication, "CONCURRENT_SLOTS", 1)
    scene.close()
    scene.draw()
    slot_id = scene.slots[0]
    by_hand, other = scene.winners(slot_id)
    users = {by_hand.user_id, other.user_id}
    assert isinstance(scene.start_publication(), Draw)
    scene.book_by_hand(by_hand, slot_id)
    with killed_at(Write(type(scene.services.draws), "set_written"), monkeypatch, is_written=False):
        scene.publish()
    bookings = scene.find_bookings(slot_id)
    assert {each.user_id for each in bookings} == users
    for booking in bookings:
        scene.cancel(booking)
    if missing == "records":
        scene.pair.database["idempotency_records"].delete_many({})
    scene.publish(services=1)
    again = {each.user_id for each in scene.find_bookings(slot_id)}
    assert again == {None: set(), "records": users}.get(missing, {by_hand.user_id})
    assert scene.record()["notBooked"] == []


def test_a_drawn_place_whose_slot_is_locked_once_is_tried_again(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.close()
    scene.draw()
    refusals = dict(zip(scene.slots, ("late", "locked", "locked"), strict=False))

    async def run_if_free(services: Services, commands: Any, wait_s: float) -> Any:
        match refusals.pop(commands[0].slot_id, None):
            case "late":
                return None  # the lock was not acquired in time
            case "locked":
                return tuple(map(locked_result, commands))
        return await run_with_lock(services, commands, wait_s)

    monkeypatch.setattr(publication, "run_with_lock", run_if_free)
    scene.publish()
    assert not refusals
    places = scene.drawn_places()
    assert len(places) == 6
    assert {(slot, user) for slot, user, _ in scene.booked()} == places
    assert scene.record()["notBooked"] == []


def test_a_process_that_dies_before_the_campaign_is_opened_leaves_it_to_the_worker(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.close()
    scene.draw()
    with killed_at(Write(campaigns, "edit_unless_changed"), monkeypatch, is_written=False):
        scene.publish()
    scene.run(draw_worker.advance_draws(scene.pair.services[1]))
    assert scene.is_open_to_all()
    assert scene.latest().is_written


def test_cancelling_what_a_user_holds_leaves_the_wishes_of_teams_in_other_campaigns(
    scene: Scene,
) -> None:
    closed, (ada, ben, *_) = Scene(scene.pair), scene.members
    team_id = scene.create_team(ada, ben.user_id)
    for each in (ada, ben):
        scene.wish(each)
    for where in (scene, closed):
        assert isinstance(where.wish_as_team(ada, team_id, *where.slots[:2]), WishesSaved)
    closed.close()
    held = scene.run(held_places.cancel_all(scene.services, ada.user_id, scene.organizer))
    assert held.wishes == 1
    found = scene.pair.database["draw_wishes"].find({"users": ObjectId(ben.user_id)})
    users = {str(each["campaign"]): [str(user) for user in each["users"]] for each in found}
    assert users == {
        scene.campaign_id: [ben.user_id],
        closed.campaign_id: sorted([ada.user_id, ben.user_id]),
    }


def result_and_record(scene: Scene, draw_id: DrawId, viewer: Caller | None) -> Any:
    """Return the result of a member, and the record of the draw if the viewer may see it."""
    own, found = scene.own_result(), scene.run(scene.services.draws.find(draw_id))
    assert found is not None
    shown = scene.run(draws.only_visible(scene.services, [found], viewer))
    read = public_records.draw_record
    records = [scene.run(read(scene.services, each, viewer)) for each in shown]
    return own, records


@pytest.mark.parametrize("finds_all", [True, False])
def test_a_result_and_its_record_outlive_further_draws_the_slots_and_the_campaign(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, finds_all: bool
) -> None:
    repository, where, by = type(scene.services.draws), scene.campaign_id, scene.organizer
    find_latest = repository.find_latest

    async def find_only_latest(*arguments: Any) -> list[Draw]:
        latest = await find_latest(*arguments)
        return [latest] if latest else []

    if not finds_all:
        monkeypatch.setattr(repository, "find_all", find_only_latest)
    member, stranger = scene.members[0], replace(scene.members[0], user_id=by.user_id)
    scene.close()
    scene.draw()
    old = scene.publish()
    before = result_and_record(scene, old.id, member)
    assert before[0]
    assert before == result_and_record(scene, old.id, by)
    opened = scene.open_draw()
    assert isinstance(opened, Draw)
    assert (opened.state, opened.supersedes) == (DrawState.COLLECTING, old.id)
    assert (result_and_record(scene, old.id, by) == before) is finds_all
    if not finds_all:
        return
    # It follows a published draw, and does not replace it.
    assert scene.supersede() == WrongDrawState(DrawState.COLLECTING)
    scene.close()
    assert isinstance(scene.supersede(), Draw)
    patch = CampaignPatch(published=False)
    scene.run(campaigns.edit(scene.services, where, patch, by.user_id))
    assert result_and_record(scene, old.id, member) == before
    scene.pair.database["slots"].delete_many({"campaign.id": ObjectId(where)})
    deleted = scene.run(campaigns.delete(scene.services, where, by.user_id))
    assert isinstance(deleted, CampaignDeleted)
    scene.run(draw_worker.advance_draws(scene.services))
    for viewer, is_shown in ((member, True), (by, True), (stranger, False), (None, False)):
        shown = before if is_shown else (before[0], [])
        assert result_and_record(scene, old.id, viewer) == shown
    found = scene.run(repository.find_all(scene.services.draws, where))
    assert [(each.state, each.record_hash is None, each.due_at) for each in found] == [
        (DrawState.CANCELLED, True, None),
        (DrawState.SUPERSEDED, False, None),
        (DrawState.PUBLISHED, False, None),
    ]


@pytest.mark.parametrize("wishes_of", ["the draw", "the campaign"])
def test_a_further_draw_opens_after_the_former_is_written_and_counts_no_wishes_of_it(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, wishes_of: str
) -> None:
    services, where = scene.services, scene.campaign_id
    scene.close()
    scene.draw()
    published = scene.start_publication()
    assert scene.open_draw() == DrawActive(where)
    assert scene.run(services.draws.find_all(where)) == [published]
    old = scene.publish()
    assert len(scene.booked()) == 6
    for member in scene.members:
        scene.run(held_places.cancel_places(services, member.user_id, scene.organizer))
    assert isinstance(scene.open_draw(), Draw)
    assert not scene.is_open_to_all()
    member = scene.members[0]
    assert scene.run(wishes.my_wishes(services, member, where)) is None
    assert scene.run(services.wishes.find_wished([where], [member.user_id])) == {where}
    if wishes_of == "the campaign":
        find_all = type(services.wishes).find_all
        monkeypatch.setattr(
            type(services.wishes), "find_all", lambda repository, _: find_all(repository, old.id)
        )
    scene.close()
    scene.draw()
    scene.publish()
    assert (scene.booked() == set()) is (wishes_of == "the draw")


@pytest.mark.parametrize("reads_draw", [True, False])
def test_a_late_worker_opens_no_campaign_in_the_middle_of_a_further_draw(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, reads_draw: bool
) -> None:
    """Stop a worker before its last write, while another one ends and a further draw opens."""
    scene.close()
    scene.draw()
    published = scene.start_publication()
    assert isinstance(published, Draw)
    edit, repository = campaigns.edit_unless_changed, type(scene.services.draws)

    async def edit_late(*arguments: Any) -> Any:
        monkeypatch.setattr(campaigns, "edit_unless_changed", edit)
        await publication.finish_publication(scene.pair.services[1], published)
        settings = DrawSettings(DrawMethod.ROUNDS, scene.pair.clock() + HOUR)
        opened = await draws.configure_draw(
            scene.services, scene.organizer, scene.campaign_id, settings, reason="a reason"
        )
        assert isinstance(opened, Draw)
        if not reads_draw:
            monkeypatch.setattr(repository, "find", read_once)
        return await edit(*arguments)

    async def read_once(*_: object) -> Draw:
        return published

    monkeypatch.setattr(campaigns, "edit_unless_changed", edit_late)
    scene.run(publication.finish_publication(scene.services, published))
    assert scene.is_open_to_all() is not reads_draw
    scene.run(publication.finish_publication(scene.services, published))
    assert scene.is_open_to_all() is not reads_draw


def test_a_busy_campaign_gets_no_draw_and_is_opened_later(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.close()
    scene.draw()

    async def lose(*_: object) -> bool:
        return False

    with monkeypatch.context() as busy:
        busy.setattr(type(scene.services.campaigns), "update", lose)
        with pytest.raises(TimeoutError):
            scene.publish()
    assert scene.open_draw() == DrawActive(scene.campaign_id)
    scene.run(draw_worker.advance_draws(scene.pair.services[1]))
    assert scene.is_open_to_all()
    before = scene.run(scene.services.draws.find_all(scene.campaign_id))
    with monkeypatch.context() as busy:
        busy.setattr(type(scene.services.campaigns), "update", lose)
        assert isinstance(scene.open_draw(), CampaignBusy)
    assert scene.run(scene.services.draws.find_all(scene.campaign_id)) == before
    assert isinstance(scene.open_draw(), Draw)


@pytest.mark.parametrize("is_killed", [True, False])
def test_a_draw_that_replaces_another_one_starts_with_its_wishes_and_new_pseudonyms(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, is_killed: bool
) -> None:
    def members_and_wishes() -> tuple[set[str], list[list[str]]]:
        entries = list(scene.pair.database["draw_entries"].find({"root": scene.close().root}))
        pseudonyms = {each["pseudonym"] for entry in entries for each in entry["members"]}
        return pseudonyms, [entry["wishes"] for entry in entries]

    pseudonyms, ranked = members_and_wishes()
    if is_killed:
        write = Write(type(scene.services.draws), "insert")
        with killed_at(write, monkeypatch, is_written=False):
            scene.supersede()
        assert isinstance(scene.open_draw(), Draw)
    assert isinstance(scene.supersede(), Draw)
    others, again = members_and_wishes()
    assert again == ranked
    assert len(others | pseudonyms) == 2 * 6


@pytest.mark.parametrize("is_guarded", [True, False])
def test_a_draw_is_replaced_only_if_another_one_can_open(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, is_guarded: bool
) -> None:
    services, where, by = scene.services, scene.campaign_id, scene.organizer
    now = scene.pair.clock()
    assert isinstance(scene.configure(leftovers_open_at=now + 5 * DAY), Draw)
    closed = scene.close()

    def edit(**fields: Any) -> None:
        patch = CampaignPatch(**fields)
        edited = scene.run(campaigns.edit(services, where, patch, by.user_id))
        assert isinstance(edited, CampaignSaved)

    async def skip(*_: object) -> None:
        return None

    async def lose(*_: object) -> bool:
        return False

    edit(closes_at=now + 5 * DAY, admission=SlotAdmission.ANY, of_draw=True)
    with monkeypatch.context() as patch:
        if not is_guarded:
            patch.setattr(draws, "_validate", skip)
            patch.setattr(draws, "_edit_admission", skip)
        patch.setattr(type(services.campaigns), "update", lose)
        late = scene.supersede()
        if not is_guarded:
            assert isinstance(late, Draw)
            assert scene.is_open_to_all()
            return
        assert isinstance(late, InvalidInput)
        assert [each.field for each in late.problems] == ["leftoversOpenAt"]
    edit(closes_at=now + 6 * DAY)
    with monkeypatch.context() as patch:
        patch.setattr(type(services.campaigns), "update", lose)
        assert isinstance(scene.supersede(), CampaignBusy)
    assert scene.run(services.draws.find_all(where)) == [closed]
    assert isinstance(scene.supersede(), Draw)
    assert not scene.is_open_to_all()


@dataclass
class Write:
    """A function that writes, by its owner and name, and which of its calls are meant."""

    owner: Any
    name: str
    is_meant: Callable[..., bool] = lambda *_: True


@contextmanager
def killed_at(write: Write, monkeypatch: pytest.MonkeyPatch, *, is_written: bool) -> Iterator[None]:
    """Kill the process before a write, or after it."""
    original = getattr(write.owner, write.name)

    async def call(*arguments: Any, **options: Any) -> Any:
        is_meant = write.is_meant(*arguments)
        result = await original(*arguments, **options) if is_written or not is_meant else None
        if is_meant:
            raise KilledError
        return result

    with monkeypatch.context() as patch:
        patch.setattr(write.owner, write.name, call)
        with pytest.raises(KilledError):
            yield


class KilledError(Exception):
    """The process is gone."""


def test_a_change_of_capacities_after_closing_needs_a_new_root(scene: Scene) -> None:
    old = scene.close()
    slots = scene.pair.database["slots"]
    smaller = {"capacity": 1, "remaining": 1}
    slots.update_one({"_id": ObjectId(scene.slots[1])}, {"$set": smaller})
    outdated = scene.draw()
    assert isinstance(outdated, DrawOutdated)
    assert outdated.slot_ids == (scene.slots[1],)
    assert isinstance(scene.supersede("The room is smaller."), Draw)
    new = scene.close()
    assert new.root != old.root
    assert new.supersedes == old.id
    scene.draw()
    slots.update_one({"_id": ObjectId(scene.slots[0])}, {"$set": smaller})
    assert scene.start_publication() == DrawOutdated((scene.slots[0],))
    larger = {"capacity": 2, "remaining": 2}
    slots.update_one({"_id": ObjectId(scene.slots[0])}, {"$set": larger})
    scene.publish()
    assert len(scene.drawn_places()) == 5
    stored = scene.run(scene.services.draws.find(old.id))
    assert stored is not None
    assert (stored.root, stored.acts[-1].reason) == (old.root, "The room is smaller.")


@pytest.mark.parametrize("is_guarded", [True, False])
def test_nothing_that_changes_after_the_closing_takes_a_drawn_place(
    pair: ServicePair, is_guarded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair.reset()
    limits = (GroupLimit("5a", 1), GroupLimit("6*", 2))
    terms: dict[str, Any] = {"max_bookings": 2, "forbid_overlap": True}
    elsewhere, scene = Scene(pair, **terms), Scene(pair, **terms, group_limits=limits)
    users = [ObjectId(each.user_id) for each in scene.members]
    scene.add_wishes(0, 1, 2)
    for user in users:
        group = "5a" if user == users[0] else "6b"
        pair.database["users"].update_one({"_id": user}, {"$set": {"groups": [group]}})
    scene.book_by_hand(scene.members[4], scene.slots[0], hold=True)
    cancelled = scene.book_by_hand(scene.members[5], scene.slots[1])
    scene.close()
    before = scene.result()
    pair.clock.advance(DAY)
    pair.database["users"].update_many({"_id": {"$in": users}}, {"$set": {"groups": ["5a"]}})
    scene.cancel(cancelled)
    for member in scene.members[:2]:
        scene.book_by_hand(member, elsewhere.slots[0])
    patch = CampaignPatch(max_bookings=1, eligible_groups=(("6b",),))
    scene.run(campaigns.edit(scene.services, scene.campaign_id, patch, scene.organizer.user_id))
    if not is_guarded:
        monkeypatch.setattr(
            publication,
            "book",
            lambda state, users, request, now: book(
                state, users, replace(request, made_as=None), now
            ),
        )
    assert isinstance(scene.draw(), Draw)
    scene.publish()
    after = scene.run(draws.preview_draw(scene.services, scene.campaign_id))
    assert isinstance(after, draws.DrawPreview)
    assert after.drawn == before
    places = scene.drawn_places()
    assert len(places) == sum(len(each.granted) for each in before) > 3
    booked = {(slot, user) for slot, user, _ in scene.booked()}
    lost = scene.pair.database["draw_slots"].count_documents({"notBooked.0": {"$exists": True}})
    assert (booked == places) is (lost == 0) is is_guarded


def test_a_place_booked_by_hand_stops_the_publication_only_if_it_was_drawn(scene: Scene) -> None:
    scene.close()
    scene.draw()
    scene.book_by_hand(scene.members[0], scene.slots[3])
    taken = scene.book_by_hand(scene.pair.callers[0], scene.slots[0])
    assert scene.start_publication() == DrawOutdated((scene.slots[0],))
    scene.cancel(taken)
    scene.book_by_hand(scene.winners(scene.slots[0])[0], scene.slots[0])
    scene.publish()
    assert scene.drawn_places() <= {(slot, user) for slot, user, _ in scene.booked()}
    assert scene.record()["notBooked"] == []


@pytest.mark.parametrize(
    ("field", "reason", "forgets"),
    [
        ("ban", "USER_BANNED", True),
        ("erased", "USER_NOT_FOUND", True),
        ("erased", "USER_NOT_FOUND", False),
    ],
)
def test_a_late_ban_or_erasure_frees_the_place_and_changes_no_other_result(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, field: str, reason: str, forgets: bool
) -> None:
    if not forgets:
        monkeypatch.setattr(public_records, "_forget_erased", AsyncMock())
    scene.close()
    result = scene.result()
    assert sum(len(each.granted) for each in result) == 6
    first = result[0].entry.leaf
    entry = scene.pair.database["draw_entries"].find_one({"leaf": first})
    assert entry is not None
    (user,) = entry["users"]
    now = scene.pair.clock()
    banned = {"banned": True, "bannedAt": now, "bannedBy": user}
    fields = {**banned, "erasedAt": now} if field == "erased" else banned
    scene.pair.database["users"].update_one({"_id": user}, {"$set": fields})
    scene.draw()
    scene.publish()
    record = scene.record()
    assert {(each["leaf"], each["reason"]) for each in record["notBooked"]} == {(first, reason)}
    assert str(user) not in {str(each) for _, each, _ in scene.booked()}
    left = scene.pair.database["draw_entries"].find_one({"leaf": first})
    assert left is not None
    is_forgotten = forgets and field == "erased"
    assert (left["users"], "salt" in left) == (([], False) if is_forgotten else ([user], True))
    by_number = sorted(record["entries"], key=lambda each: each["number"])
    assert [each["leaf"] for each in by_number] == [each.entry.leaf for each in result]


def test_a_team_is_one_entry_and_none_of_its_members_has_another(scene: Scene) -> None:
    ada, ben = scene.members[:2]
    team_id = scene.create_team(ada, ben.user_id)
    wish_as_team = partial(scene.wish_as_team, ada, team_id, scene.slots[3])
    alone = scene.run(wishes.my_wishes(scene.services, ada, scene.campaign_id))
    assert isinstance(wish_as_team(), InvalidInput)
    assert scene.run(wishes.my_wishes(scene.services, ada, scene.campaign_id)) == alone
    assert scene.wish(ben) == WishesSaved(None)
    saved = wish_as_team()
    assert isinstance(saved, WishesSaved)
    assert saved.wishes is not None
    assert alone is not None
    assert saved.wishes.salt != alone.salt
    assert isinstance(scene.wish(ben, 0), WishesSaved)
    assert scene.run(wishes.my_wishes(scene.services, ada, scene.campaign_id)) is None
    assert scene.wish(ben) == WishesSaved(None)
    assert isinstance(wish_as_team(), WishesSaved)
    scene.close()
    scene.draw()
    scene.publish()
    places = {(scene.slots[3], each.user_id) for each in (ada, ben)}
    assert places <= {(slot, user) for slot, user, _ in scene.booked()}
    sizes = [len(entry["members"]) for entry in scene.record()["entries"]]
    assert sorted(sizes) == [1, 1, 1, 1, 2]


@pytest.mark.parametrize("in_transaction", [True, False])
def test_a_member_who_is_killed_while_changing_to_a_team_has_one_list(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, in_transaction: bool
) -> None:
    ada = scene.members[0]
    team_id = scene.create_team(ada, UserId(new_slot_id()))
    before = scene.run(wishes.my_wishes(scene.services, ada, scene.campaign_id))
    if not in_transaction:
        monkeypatch.setattr(wish_repository, "in_transaction", lambda _, write: write(None))
    killed = Write(type(scene.services.wishes._wishes), "insert_one")
    with killed_at(killed, monkeypatch, is_written=False):
        scene.wish_as_team(ada, team_id, *scene.slots[3:])
    after = scene.run(wishes.my_wishes(scene.services, ada, scene.campaign_id))
    assert (after == before) is in_transaction


def test_a_list_that_two_tabs_save_first_is_one_list(scene: Scene) -> None:
    ada = scene.members[0]
    assert scene.wish(ada) == WishesSaved(None)

    async def save_all() -> Sequence[object]:
        steps = (
            wishes.set_wishes(each, ada, scene.campaign_id, [slot_id])
            for slot_id in scene.slots
            for each in scene.pair.services
        )
        return await asyncio.gather(*steps)

    saved = scene.run(save_all())
    assert all(isinstance(each, WishesSaved) for each in saved)
    found = scene.run(wishes.my_wishes(scene.services, ada, scene.campaign_id))
    assert found is not None
    (stored,) = scene.pair.database["draw_wishes"].find({"users": ObjectId(ada.user_id)})
    assert [str(each) for each in stored["slots"]] == list(found.slot_ids)


class Parents:
    """Two guardians of two children in a draw, each with a page that shows the list of a child."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.nina, self.tim, anna, ben = scene.members[:4]
        self.anna, self.ben = anna.user_id, ben.user_id
        for child in (self.anna, self.ben):
            guardians = self.nina.user_id, self.tim.user_id
            store_guardians(scene.pair.database, child, *guardians)

    def read(self, child: UserId) -> Wishes | None:
        """Return the list of a child as a page reads it, and let time pass."""
        self.scene.pair.clock.advance(timedelta(seconds=1))
        return self.scene.run(self.scene.services.wishes.find(self.scene.latest().id, child))

    def save(
        self,
        guardian: Caller,
        children: Sequence[UserId],
        shown: Wishes | None,
        *ranks: int,
        services: int = 0,
    ) -> Coroutine[Any, Any, object]:
        """Save a list from a page that shows another one."""
        return wishes.set_wishes(
            self.scene.pair.services[services],
            guardian,
            self.scene.campaign_id,
            [self.scene.slots[n] for n in ranks],
            user_ids=children,
            seen=SeenWishes(shown.at if shown else None),
        )

    def outcomes(self, *saves: Coroutine[Any, Any, object]) -> list[str]:
        """Save lists at the same time, and return what came of each."""

        async def save_all() -> Sequence[object]:
            return await asyncio.gather(*saves)

        return [
            outcome.problems[0].message.code.name
            if isinstance(outcome, InvalidInput)
            else type(outcome).__name__
            for outcome in self.scene.run(save_all())
        ]

    def ranks(self, child: UserId) -> list[int]:
        """Return the numbers of the slots that a child wishes for."""
        found = self.read(child)
        return [self.scene.slots.index(each) for each in found.slot_ids] if found else []


CHANGED = ProblemCode.WISHES_CHANGED.name


def test_a_list_replaces_only_the_one_that_the_page_showed(scene: Scene) -> None:
    parents = Parents(scene)
    nina, tim, anna = parents.nina, parents.tim, parents.anna

    def save(*given: Any) -> str:
        return parents.outcomes(parents.save(*given))[0]

    shown = parents.read(anna)
    assert save(nina, [anna], shown, 3) == "WishesSaved"
    stored = parents.read(anna)
    for ranks in ((1, 2), ()):
        assert save(tim, [anna], shown, *ranks) == CHANGED
        assert parents.read(anna) == stored
    # What is stored already is saved: a repetition after a lost response.
    assert save(nina, [anna], shown, 3) == "WishesSaved"
    stored = parents.read(anna)
    assert parents.ranks(anna) == [3]
    # A list that another one removed does not come back, and a first list is not replaced unseen.
    assert save(nina, [anna], stored) == "WishesSaved"
    assert save(tim, [anna], stored, 3, 1) == CHANGED
    assert save(tim, [anna], None, 2) == "WishesSaved"
    assert save(nina, [anna], None, 1) == CHANGED
    assert parents.ranks(anna) == [2]


@pytest.mark.parametrize("ranks", [(1,), ()])
@pytest.mark.parametrize("leaving", [0, 1])
def test_a_joint_list_that_ended_for_one_child_is_not_restored_unseen(
    scene: Scene, leaving: int, ranks: tuple[int, ...]
) -> None:
    parents = Parents(scene)
    both = [parents.anna, parents.ben]
    alone = parents.read(parents.anna)
    assert parents.outcomes(parents.save(parents.tim, both, alone, 2, 3)) == ["WishesSaved"]
    joint = parents.read(parents.anna)
    # A page that still shows a list of one child does not end the joint one.
    late = parents.save(parents.nina, [parents.anna], alone, 0)
    assert parents.outcomes(late) == [CHANGED]
    assert parents.read(parents.anna) == parents.read(parents.ben) == joint
    # A page that still shows the joint list does not restore it.
    left = parents.save(parents.nina, [both[leaving]], joint, *ranks)
    assert parents.outcomes(left) == ["WishesSaved"]
    late = parents.save(parents.tim, both, joint, 3)
    assert parents.outcomes(late) == [CHANGED]
    assert parents.ranks(both[leaving]) == list(ranks)
    assert parents.ranks(both[not leaving]) == [2, 3]


@pytest.mark.parametrize("is_guarded", [True, False])
@pytest.mark.parametrize("is_first", [False, True])
def test_of_lists_that_two_pages_save_at_the_same_time_one_is_refused(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, is_first: bool, is_guarded: bool
) -> None:
    parents = Parents(scene)
    if is_first:
        assert scene.wish(scene.members[2]) == WishesSaved(None)
    if not is_guarded:
        monkeypatch.setattr(wish_repository, "_has_changed", lambda *_: False)
    shown = parents.read(parents.anna)
    guardians = parents.nina, parents.tim
    saves = [
        parents.save(each, [parents.anna], shown, n, services=n) for n, each in enumerate(guardians)
    ]
    outcomes = parents.outcomes(*saves)
    expected = CHANGED if is_guarded else "WishesSaved"
    assert sorted(outcomes) == sorted(["WishesSaved", expected])
    if is_guarded:
        assert parents.ranks(parents.anna) == [outcomes.index("WishesSaved")]


async def copy_all_wishes(services: Services, former: Draw, draw: Draw, _: UserId) -> None:
    """Copy all lists that are stored."""
    await services.wishes.insert(draw, await services.wishes.find_all(former.id))


@pytest.mark.parametrize("is_counted", [True, False])
def test_a_further_draw_starts_with_the_counted_lists_of_an_earlier_one_under_other_pseudonyms(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, is_counted: bool
) -> None:
    services, late = scene.services, scene.members[0]

    def publish() -> set[str]:
        """Publish the result, and return the pseudonyms in the record."""
        scene.close()
        scene.pair.database["draw_wishes"].update_many(
            {"users": ObjectId(late.user_id)}, {"$set": {"slots": [ObjectId(scene.slots[3])]}}
        )
        scene.draw()
        scene.publish()
        entries = scene.record()["entries"]
        return {each["pseudonym"] for entry in entries for each in entry["members"]}

    before, old = publish(), scene.latest()
    other = Scene(scene.pair, member_count=1).close()
    for wrong in (other.id, DrawId(scene.campaign_id)):
        assert isinstance(scene.open_draw(like=wrong), InvalidInput)
    if not is_counted:
        monkeypatch.setattr(draws, "copy_wishes", copy_all_wishes)
    opened = scene.open_draw(like=old.id)
    assert isinstance(opened, Draw)
    assert isinstance(scene.open_draw(like=opened.id), InvalidInput)
    own = scene.run(wishes.my_wishes(services, late, scene.campaign_id))
    assert own is not None
    assert (own.slot_ids == tuple(scene.slots[:3])) is is_counted
    assert (len(before | publish()) == 2 * 6) is is_counted


@pytest.mark.parametrize("end", [DrawState.PUBLISHED, DrawState.CANCELLED, DrawState.DRAWN])
def test_an_erased_user_is_in_no_entry_of_a_draw_that_is_over(scene: Scene, end: DrawState) -> None:
    gone, mate = (ObjectId(each.user_id) for each in scene.members[:2])
    scene.close()
    scene.draw()
    entries, now = scene.pair.database["draw_entries"], scene.pair.clock()
    entries.update_one({"users": mate}, {"$set": {"users": [gone, mate]}})  # a team
    if end is DrawState.PUBLISHED:
        scene.publish()
    elif end is DrawState.CANCELLED:
        where = scene.services, scene.organizer, scene.campaign_id
        cancelled = scene.run(draws.cancel_draw(*where, "a reason"))
        assert isinstance(cancelled, Draw)
        scene.run(public_records.finish_record(scene.services, cancelled))
    user_id = scene.members[0].user_id
    scene.run(finish_erasure(scene.services, Erasure(user_id, "ada@x.test", None, now)))
    found = list(entries.find({"users": {"$in": [gone, mate]}}))
    if end is DrawState.DRAWN:  # its places are still to be recorded
        assert len(found) == 2
        return
    assert [(each["users"], "salt" in each) for each in found] == [([mate], True)]
    (left,) = entries.find({"users": []})
    assert "salt" not in left
    scene.record()
    further = scene.open_draw()
    draw = scene.run(scene.services.draws.find(further.supersedes))
    assert draw is not None
    scene.run(wishes.copy_wishes(scene.services, draw, further, scene.organizer.user_id))
    assert len(scene.run(scene.services.wishes.find_all(further.id))) == 5


def test_in_a_new_draw_a_former_guardian_ends_no_wishes_of_the_child_either(scene: Scene) -> None:
    ada, ben = scene.members[:2]
    store_guardians(scene.pair.database, ben.user_id, ada.user_id)
    where = scene.services, ada, scene.campaign_id, scene.slots[:2]
    scene.run(wishes.set_wishes(*where, user_ids=[ben.user_id, ada.user_id]))
    scene.close()
    scene.draw()
    scene.publish()
    further = scene.open_draw()
    former = scene.run(scene.services.draws.find(further.supersedes))
    assert former is not None
    scene.run(wishes.copy_wishes(scene.services, former, further, scene.organizer.user_id))
    store_guardians(scene.pair.database, ben.user_id)
    assert scene.wish(ada) == WishesSaved(None)
    of_child = scene.run(wishes.my_wishes(scene.services, ben, scene.campaign_id))
    assert of_child is not None
    assert (of_child.user_ids, of_child.slot_ids) == ((ben.user_id,), tuple(scene.slots[:2]))


@pytest.mark.parametrize("max_age_s", [demand.MAX_AGE_S, 0.0])
def test_a_hundred_readers_of_the_demand_in_five_seconds_make_one_aggregation(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, max_age_s: float
) -> None:
    repository, seconds, counts = scene.services.wishes, [0.0], list[object]()
    count_by_slot, fails = type(repository).count_by_slot, list[Exception]()

    async def count(*arguments: Any) -> object:
        counts.append(arguments)
        if fails:
            raise fails.pop()
        return await count_by_slot(*arguments)

    async def read_all() -> Any:
        where = scene.services, scene.organizer, scene.campaign_id
        return await asyncio.gather(*(wishes.wish_statistics(*where) for _ in range(50)))

    cache = demand.DemandCache(repository, scene.services.now, lambda: seconds[0])
    monkeypatch.setattr(demand, "MAX_AGE_S", max_age_s)
    monkeypatch.setattr(scene.services, "demand", cache)
    monkeypatch.setattr(type(repository), "count_by_slot", count)
    before = scene.run(read_all())
    scene.wish(scene.members[0], 3)
    seconds[0] = 4.9
    if not max_age_s:
        assert scene.run(read_all()) != before
        assert len(counts) > 1
        return
    assert scene.run(read_all()) == before
    assert len(counts) == 1
    seconds[0], fails[:] = 5.0, [ValueError("unreadable")]
    with pytest.raises(ValueError, match="unreadable"):
        scene.run(read_all())
    assert {each.slot_id: each.wishes for each in scene.run(read_all())[0]} == dict(
        zip(scene.slots, [5, 5, 5, 1], strict=True)
    )
    assert len(counts) == 3


@pytest.mark.parametrize("combines", [True, False])
def test_a_poll_of_the_pages_of_a_draw_costs_one_command_for_each_thing_and_scans_nothing(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, combines: bool
) -> None:
    scene.close()
    scene.draw()
    scene.publish()
    services, database, repository = scene.services, scene.pair.database, scene.services.draws
    counted_before = demand.DemandCache(services.wishes, services.now, lambda: 0.0)
    monkeypatch.setattr(services, "demand", counted_before)

    async def read_alone(campaign_id: CampaignId) -> Draw | None:
        return (await repository._read_latest([campaign_id]))[0]

    if not combines:
        monkeypatch.setattr(repository._latest_batcher, "submit", read_alone)

    async def poll() -> None:
        member, campaign_id = scene.members[0], scene.campaign_id
        await asyncio.gather(
            repository.find_latest(campaign_id),
            wishes.my_wishes(services, member, campaign_id),
            wishes.wish_statistics(services, scene.organizer, campaign_id),
            draws.find_draw_result(services, member.user_id, campaign_id),
        )

    scene.run(poll())
    database.command("profile", 2)
    try:
        scene.run(poll())
    finally:
        database.command("profile", 0)
    read = list(database["system.profile"].find({"ns": {"$regex": "draw"}}))
    database["system.profile"].drop()
    names = sorted(each["ns"].partition(".")[2] for each in read)
    latest = ["draws"] if combines else ["draws"] * 3
    assert names == ["draw_entries", "draw_slots", "draw_wishes", "draws", *latest]
    assert {each["planSummary"].split()[0] for each in read} == {"IXSCAN"}


def test_wishes_are_checked_and_counted(scene: Scene) -> None:
    member, campaign_id = scene.members[0], scene.campaign_id

    def save(*slot_ids: SlotId) -> object:
        return scene.run(wishes.set_wishes(scene.services, member, campaign_id, slot_ids))

    first = scene.slots[0]
    for wrong in ((first, first), (new_slot_id(),), tuple(new_slot_id() for _ in range(51))):
        assert isinstance(save(*wrong), InvalidInput)
    own = scene.run(wishes.my_wishes(scene.services, member, campaign_id))
    assert own is not None
    assert own.slot_ids == tuple(scene.slots[:3])
    assert isinstance(save(scene.slots[2]), WishesSaved)
    again = scene.run(wishes.my_wishes(scene.services, member, campaign_id))
    assert again is not None
    assert (again.salt, again.slot_ids) == (own.salt, (scene.slots[2],))
    campaign = scene.run(scene.services.campaigns.find(campaign_id))
    assert campaign is not None
    more = scene.run(scene.add_slots(campaign.terms))
    closed = ({"status": "draft"}, {"status": "cancelled"}, {"start": EARLY})
    for slot_id, fields in zip(more, closed, strict=False):
        of_slot = {"_id": ObjectId(slot_id)}
        scene.pair.database["slots"].update_one(of_slot, {"$set": fields})
    counted = wishes.wish_statistics(scene.services, scene.organizer, campaign_id)
    counts = {each.slot_id: (each.wishes, each.first_wishes) for each in scene.run(counted) or ()}
    shown, expected = [*scene.slots, more[3]], [(5, 5), (5, 0), (6, 1), (0, 0), (0, 0)]
    assert counts == dict(zip(shown, expected, strict=True))
    hidden = wishes.wish_statistics(scene.services, member, campaign_id)
    assert scene.run(hidden) is None
    scene.pair.clock.advance(HOUR)
    assert isinstance(save(first), WrongDrawState)
