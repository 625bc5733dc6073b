"""The desk and its stores, wired for as long as a process lives, with or without an endpoint."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial

from slotlock.api.settings import Settings
from slotlock.auth.auth import Auth
from slotlock.auth.throttling import Throttle
from slotlock.desk.admitting import TURN_TTL_MS, admitting
from slotlock.desk.availability import AvailabilityBoard
from slotlock.desk.desk import Desk, utc_now
from slotlock.desk.line import Lines
from slotlock.desk.personal import PersonalBoard
from slotlock.desk.ticket_board import TicketBoard
from slotlock.desk.tickets import read_tickets
from slotlock.graphql.rates import Rates
from slotlock.stores import mongo
from slotlock.stores.announcements import Announcements
from slotlock.stores.answers import Answers
from slotlock.stores.campaigns import Campaigns
from slotlock.stores.familiar_addresses import FamiliarAddresses
from slotlock.stores.locks import Locks
from slotlock.stores.mongo import Database
from slotlock.stores.queue import Queue
from slotlock.stores.rate_limits import RateLimits
from slotlock.stores.redis import RedisLine, redis_client
from slotlock.stores.redis_clients import Client
from slotlock.stores.resources import Resources
from slotlock.stores.sign_outs import SignOuts
from slotlock.stores.slots import Slots
from slotlock.stores.teams import Teams
from slotlock.stores.trials import Trials
from slotlock.stores.users import Users
from slotlock.stores.writes import Writes


@dataclass(frozen=True, slots=True)
class Office:
    """A desk with what is behind it."""

    desk: Desk
    database: Database
    redis: Client
    line: RedisLine


@asynccontextmanager
async def open_office(settings: Settings) -> AsyncIterator[Office]:
    """Open the stores and set up the desk; a Redis that is away is no error."""
    async with AsyncExitStack() as closing:
        client, database = mongo.connect(settings.mongo_url or "")
        closing.push_async_callback(client.close)
        redis = redis_client(settings.redis_url or "")
        line = RedisLine(redis)
        closing.push_async_callback(line.close)
        slots = Slots(database)
        board, personal = AvailabilityBoard(slots, utc_now), PersonalBoard(slots, utc_now)
        tickets = TicketBoard()
        desk = Desk(
            slots=slots,
            writes=Writes(database),
            answers=Answers(database),
            users=Users(database),
            teams=Teams(database),
            campaigns=Campaigns(database),
            resources=Resources(database),
            trials=Trials(database),
            locks=Locks(line),
            lines=Lines(),
            queue=Queue(line, settings.queue_partitions, settings.queue_length),
            board=board,
            personal=personal,
            tickets=tickets,
            announcements=Announcements(
                redis, line, heard=board.tell, poked=personal.poke, moved=tickets.moved
            ),
        )
        for store in (slots, desk.answers, desk.users, desk.teams, desk.campaigns):
            await store.prepare()
        await line.check()
        await desk.locks.start()
        closing.push_async_callback(desk.locks.stop)
        yield Office(desk, database, redis, line)


def throttle(settings: Settings, line: RedisLine) -> Throttle:
    """The limits on signing in, which hold whether or not rates are limited."""
    key = settings.secret_key[0].get_secret_value().encode()
    return Throttle(RateLimits(line), FamiliarAddresses(line), key)


def rates(settings: Settings, line: RedisLine) -> Rates:
    """The rate limits that the settings want."""
    return Rates(
        RateLimits(line) if settings.rate_limits else None,
        settings.rate_reads,
        settings.rate_writes,
        settings.rate_people_per_address,
    )


@asynccontextmanager
async def boards(desk: Desk) -> AsyncIterator[None]:
    """Keep the notice boards up to date for those who watch in this process."""
    async with AsyncExitStack() as closing:
        desk.announcements.start()
        closing.push_async_callback(desk.announcements.stop)
        desk.board.start(desk.announcements)
        closing.push_async_callback(desk.board.stop)
        desk.personal.start(desk.announcements)
        closing.push_async_callback(desk.personal.stop)
        desk.tickets.start(desk.announcements, desk.queue, partial(read_tickets, desk))
        closing.push_async_callback(desk.tickets.stop)
        yield


@asynccontextmanager
async def streams(office: Office, auth: Auth) -> AsyncIterator[None]:
    """End the streams that are open in this process when their sessions end, wherever they do."""
    sign_outs = SignOuts(office.redis, office.line, heard=auth.streams.look_at)
    sign_outs.start()
    auth.streams.start(auth.sessions, sign_outs.tell)
    try:
        yield
    finally:
        await auth.streams.stop()
        await sign_outs.stop()


@asynccontextmanager
async def clerks(office: Office) -> AsyncIterator[None]:
    """Serve the admission queue, in turn with the other processes that do."""
    turns = Locks(office.line, ttl_ms=TURN_TTL_MS, measured=False)
    await turns.start()
    try:
        async with admitting(office.desk, turns):
            yield
    finally:
        await turns.stop()
