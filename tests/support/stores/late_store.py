"""The services of a process behind a route to MongoDB that can hold writes."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from datetime import timedelta
from functools import partial
from typing import Any, TypeVar

import pytest
from bson import ObjectId
from pymongo import timeout
from pymongo.errors import PyMongoError

from slotlock.auth import accounts
from slotlock.auth.container import Auth
from slotlock.auth.passwords import PasswordHasher
from slotlock.auth.tokens import TokenSigner
from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.booking.booking import Booking, SlotId
from slotlock.domain.booking.booking_outcomes import Booked
from slotlock.domain.booking.decision import CommandResult
from slotlock.domain.users.user import Caller, Role, User, UserId
from slotlock.infrastructure.mongo import client, transactions
from slotlock.infrastructure.mongo.client import Document, may_have_written, open_database
from slotlock.infrastructure.mongo.ids import new_slot_id
from slotlock.infrastructure.mongo.slots import booking_adder, writer
from slotlock.infrastructure.mongo.slots.write_set import CommitResult
from slotlock.services.booking.book import BookingOptions, book_slot
from slotlock.services.commands import commit, group_commit
from slotlock.services.container import Services
from tests.support.apps.processes import SECRET, database_url
from tests.support.domain.builders import NOW, build_slot
from tests.support.model.service_pair import ManualClock, open_services
from tests.support.stores.mongo_route import HoldingRoute, database_behind
from tests.support.stores.slots import insert_new_slots
from tests.support.stores.users import new_email

ADA = Caller(UserId("a" * 24), Role.MEMBER, "session", NOW)
BOB = Caller(UserId("b" * 24), Role.MEMBER, "session", NOW)
PASSWORD = "correct horse battery"
ACT_TIMEOUT_S = 0.5
MAX_READS = 8


def is_slot_update(message: bytes) -> bool:
    """Return whether a request changes bookings outside of a transaction."""
    return b"\x02update\x00" in message and b"bookings" in message


def is_update(message: bytes) -> bool:
    """Return whether a request updates documents outside of a transaction."""
    return b"\x02update\x00" in message


def is_commit(message: bytes) -> bool:
    """Return whether a request commits a transaction."""
    return b"commitTransaction" in message


def is_final_write(message: bytes) -> bool:
    """Return whether a request commits a transaction, or writes outside of one."""
    names = (b"update", b"insert", b"delete", b"findAndModify")
    is_write = any(b"\x02" + name + b"\x00" in message for name in names)
    return is_commit(message) or (is_write and b"autocommit" not in message)


def is_plain_slot_update(message: bytes) -> bool:
    """Return whether a request updates slots outside of a transaction, whatever it changes."""
    return b"\x02update\x00\x06\x00\x00\x00slots\x00" in message and b"autocommit" not in message


@pytest.fixture(autouse=True)
def short_timeouts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let writes be given up soon, and let a busy machine take its time to connect."""
    monkeypatch.setattr(client, "SELECTION_TIMEOUT_MS", 20_000)
    monkeypatch.setattr(booking_adder, "BULK_TIMEOUT_S", 0.3)
    monkeypatch.setattr(writer, "FIND_TIMEOUT_S", 0.3)
    monkeypatch.setattr(booking_adder, "SETTLE_TIMEOUT_S", 1.0)
    # All steps before the held one have to fit, also on a busy machine.
    monkeypatch.setattr(transactions, "OPERATION_TIMEOUT_MS", 1_500)


class LateStore:
    """The services behind a route that holds writes, and the stored slots."""

    def __init__(self, services: Services, auth: Auth, route: HoldingRoute) -> None:
        self.services = services
        self.auth = auth
        self.route = route

    async def new_user(self) -> User:
        """Return a new user, whose password is PASSWORD."""
        created = await accounts.create_user(self.auth, "Eve", new_email(), PASSWORD, Role.MEMBER)
        assert isinstance(created, User)
        return created

    def advance(self, by: timedelta) -> None:
        """Advance the clock of the services."""
        clock = self.services.now
        assert isinstance(clock, ManualClock)
        clock.advance(by)

    async def insert_slot(self, capacity: int = 1, *, hold_minutes: int | None = None) -> SlotId:
        """Insert an empty slot and return its id."""
        slot = build_slot(capacity, id=new_slot_id(), hold_minutes=hold_minutes)
        await insert_new_slots(self.services.slot_writer._database, slot)
        return slot.id

    async def book(self, slot_id: SlotId, *, hold: bool = False, key: str | None = None) -> object:
        """Let Ada book a slot and return the outcome."""
        options = BookingOptions(hold=hold, key=key)
        result = await book_slot(self.services, ADA, slot_id, ADA.user_id, options)
        return result.outcome

    async def new_booking(self, slot_id: SlotId, *, hold: bool = False) -> Booking:
        """Return a new booking of Ada in a slot."""
        outcome = await self.book(slot_id, hold=hold)
        assert isinstance(outcome, Booked)
        return outcome.booking

    async def find_document(self, slot_id: SlotId) -> Document:
        """Return a slot as it is stored, without its version."""
        slots = self.services.slot_writer._database["slots"]
        found = await slots.find_one({"_id": ObjectId(slot_id)}, {"version": 0})
        assert found is not None
        return found

    async def find_all(self) -> dict[str, list[Document]]:
        """Return all documents, by collection."""
        database = self.services.slot_writer._database
        names = sorted(await database.list_collection_names())
        found = await asyncio.gather(*(database[name].find().to_list() for name in names))
        return dict(zip(names, found, strict=True))

    async def count_bookings(self, slot_id: SlotId) -> int:
        """Return how many bookings a slot has."""
        return len((await self.find_document(slot_id))["bookings"])

    async def deliver_held(self) -> None:
        """Deliver the writes that the route holds, and hold no more."""
        self.route.is_held = lambda _: False
        await self.route.deliver_held()

    async def deliver_held_after(self, act: Callable[[], Awaitable[object]]) -> None:
        """Let an act happen before the writes that the route holds are delivered."""
        late, self.route.held, self.route.is_held = self.route.held, [], lambda _: False
        await act()
        self.route.held = late
        await self.deliver_held()


@pytest.fixture
async def store(servers: EmbeddedServers) -> AsyncIterator[LateStore]:
    """Yield the services of a process behind a route, which holds nothing yet."""
    async with AsyncExitStack() as stack:
        direct_url = database_url(servers, "late_writes")
        opened = open_database(direct_url)
        database = await stack.enter_async_context(opened)
        create_route = partial(HoldingRoute, is_held=lambda _: False)
        behind = database_behind(database, create_route)
        routed_client, _, route = await stack.enter_async_context(behind)
        address = await routed_client.address
        assert address is not None
        url = f"mongodb://127.0.0.1:{address[1]}/{database.name}?directConnection=true"
        clock = ManualClock(NOW)
        services = await open_services(stack, url, servers.redis_url, clock, direct_url)
        passwords = PasswordHasher()
        stack.callback(passwords.close)
        signer = TokenSigner([SECRET])
        auth = Auth(services, passwords, signer, services.now, login_throttle=None)
        yield LateStore(services, auth, route)


Act = Callable[[], Awaitable[object]]
Prepare = Callable[[LateStore], Awaitable[Act]]
Prepared = TypeVar("Prepared")


def on(
    prepare: Callable[[LateStore], Awaitable[Prepared]],
    act: Callable[[LateStore, Prepared], Awaitable[object]],
) -> Prepare:
    """Return what prepares something, and returns the act on it."""

    async def prepare_act(store: LateStore) -> Act:
        prepared = await prepare(store)
        return lambda: act(store, prepared)

    return prepare_act


async def answer_before_write(
    store: LateStore, act: Act, is_held: Callable[[bytes], bool] = is_final_write
) -> object:
    """Return the outcome of an act, or its error, while the route holds the write of the act."""
    store.route.is_held = is_held
    for _ in range(MAX_READS):  # on a busy machine, reads may need all of the time
        with timeout(ACT_TIMEOUT_S):
            try:
                outcome = await act()
            except Exception as error:
                outcome = error
        if store.route.held:
            return outcome
    raise AssertionError(f"the act wrote nothing: {outcome!r}")


async def assert_late_write_is_unknown(store: LateStore, prepare: Prepare) -> None:
    """Require an act to end with an unknown outcome if its write arrives after its answer."""
    act = await prepare(store)
    before = await store.find_all()
    outcome = await answer_before_write(store, act)
    assert isinstance(outcome, Exception), outcome
    assert may_have_written(outcome)
    assert await store.find_all() == before
    await store.deliver_held()
    assert await store.find_all() != before


async def assert_conflict_happens(store: LateStore, act: Act, refusal: type) -> None:
    """Require an act whose unknown outcome counts as a conflict to be refused and to happen."""
    before = await store.find_all()
    answer = await answer_before_write(store, act)
    assert isinstance(answer.outcome if isinstance(answer, CommandResult) else answer, refusal)
    await store.deliver_held()
    assert await store.find_all() != before


def take_unknown_for_conflict(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let an unknown result of a decision count as a conflict, after which nothing is decided."""
    decide_once = partial(commit.decide_and_commit, max_attempts=1)
    for module in (commit, group_commit):
        monkeypatch.setattr(module, "check_written", lambda result: result is CommitResult.WRITTEN)
        # A second attempt would take longer than a transaction may stay open.
        monkeypatch.setattr(module, "decide_and_commit", decide_once)


Write = Callable[..., Awaitable[Any]]


def with_conflict(write: Write, conflict: object) -> Write:
    """Return the write with an unknown result that counts as a conflict."""

    async def write_or_conflict(*arguments: object, **options: object) -> object:
        try:
            return await write(*arguments, **options)
        except PyMongoError:
            return conflict

    return write_or_conflict
