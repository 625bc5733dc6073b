"""Password hashes, and logins during concurrent changes."""

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from pymongo.asynchronous.client_session import AsyncClientSession

import slotlock.auth.passwords
from slotlock.auth.accounts import login
from slotlock.auth.admin import account_admin
from slotlock.auth.authentication import authenticate
from slotlock.auth.container import Auth
from slotlock.auth.invitations import create_password_reset, set_password
from slotlock.auth.passwords import PasswordHasher
from slotlock.auth.sessions import InvalidSession, SignedInSession, open_session, refresh_session
from slotlock.auth.tokens import BadTokenError
from slotlock.domain.users.user import Caller, Role, User, UserId
from slotlock.infrastructure.fair_scheduler import SchedulerFullError
from slotlock.infrastructure.mongo.concurrency_limiter import ConcurrencyLimiter
from slotlock.infrastructure.mongo.users import credentials, sessions
from slotlock.infrastructure.mongo.users.sessions import SessionRepository
from slotlock.infrastructure.request_deadline import RequestDeadlines, within_deadline
from tests.support.polling import eventually
from tests.support.stores.cheap_hashes import REAL_CONTEXT, REAL_UNKNOWN_HASH
from tests.support.stores.users import insert_user

PASSWORD = "correct horse battery"
ORGANIZER_ID = UserId("a" * 24)
OLD_HASH, NEW_HASH = "the hash of the old password", "the hash of the new password"


@pytest.fixture
def passwords() -> Iterator[PasswordHasher]:
    started = PasswordHasher(threads=1)
    yield started
    started.close()


@pytest.fixture
def real_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let passwords be hashed as in production."""
    monkeypatch.setattr(slotlock.auth.passwords, "_CONTEXT", REAL_CONTEXT)
    monkeypatch.setattr(slotlock.auth.passwords, "_UNKNOWN_HASH", REAL_UNKNOWN_HASH)


@pytest.mark.usefixtures("real_costs")
async def test_a_hash_is_argon2id_with_a_random_salt(passwords: PasswordHasher) -> None:
    first, second = await passwords.hash(PASSWORD), await passwords.hash(PASSWORD)
    assert first.startswith("$argon2id$v=19$m=19456,t=2,p=1$")
    assert first != second
    assert PASSWORD not in first


async def test_only_the_same_password_matches(passwords: PasswordHasher) -> None:
    password_hash = await passwords.hash(PASSWORD)
    assert await passwords.matches(PASSWORD, password_hash)
    for other in ("", PASSWORD + " ", PASSWORD.upper(), PASSWORD[:-1]):
        assert not await passwords.matches(other, password_hash)


@pytest.mark.parametrize(
    ("decomposed", "composed"), [("cafe\u0301 noir", "caf\u00e9 noir"), ("\uff41" * 8, "a" * 8)]
)
async def test_composed_and_decomposed_passwords_are_equal(
    passwords: PasswordHasher, decomposed: str, composed: str
) -> None:
    assert await passwords.matches(decomposed, await passwords.hash(composed))
    assert await passwords.matches(composed, await passwords.hash(decomposed))


@pytest.mark.parametrize("password", ["\u0000" * 8, "nul\u0000byte", "\U0001f511" * 128, " " * 8])
async def test_all_characters_of_a_password_count(passwords: PasswordHasher, password: str) -> None:
    password_hash = await passwords.hash(password)
    assert await passwords.matches(password, password_hash)
    assert not await passwords.matches(password[:-1], password_hash)


@pytest.mark.usefixtures("real_costs")
async def test_an_unknown_account_costs_the_same_work_and_never_matches(
    passwords: PasswordHasher, monkeypatch: pytest.MonkeyPatch
) -> None:
    verified = []
    verify = slotlock.auth.passwords._CONTEXT.verify

    def recording_verify(password: str, password_hash: str) -> bool:
        verified.append((password, password_hash.split("$")[1:4]))
        return bool(verify(password, password_hash))

    monkeypatch.setattr(slotlock.auth.passwords._CONTEXT, "verify", recording_verify)
    assert not await passwords.matches(PASSWORD, await passwords.hash("another password"))
    assert not await passwords.matches(PASSWORD, None)
    known, unknown = verified
    assert known == unknown


@pytest.mark.usefixtures("real_costs")
async def test_hashing_does_not_block_the_event_loop(passwords: PasswordHasher) -> None:
    hashing = asyncio.gather(*(passwords.hash(PASSWORD) for _ in range(5)))
    ticks = 0
    while not hashing.done():
        ticks += 1
        await asyncio.sleep(0)
    await hashing
    assert ticks > 100


@pytest.fixture
def short_queue(monkeypatch: pytest.MonkeyPatch) -> Iterator[PasswordHasher]:
    """Return a hasher with two permits, for which two others may wait."""
    monkeypatch.setattr(slotlock.auth.passwords, "PERMITS_PER_THREAD", 2)
    monkeypatch.setattr(slotlock.auth.passwords, "MAX_WAIT_S", 120.0)
    monkeypatch.setattr(slotlock.auth.passwords, "EXPECTED_HASH_S", 60.0)
    started = PasswordHasher(threads=1)
    yield started
    started.close()


async def hash_permitted(hasher: PasswordHasher, address: str | None = None) -> str:
    """Hash a password as a client that registers."""
    async with hasher.permit(address):
        return await hasher.hash(PASSWORD)


async def test_the_queue_is_bounded_and_accepts_passwords_again(
    short_queue: PasswordHasher,
) -> None:
    for _ in range(2):
        hashing = [hash_permitted(short_queue) for _ in range(6)]
        outcomes = await asyncio.gather(*hashing, return_exceptions=True)
        assert [type(each) for each in outcomes] == [*[str] * 4, *[SchedulerFullError] * 2]


async def test_a_cancelled_password_leaves_the_queue(short_queue: PasswordHasher) -> None:
    hashing = [asyncio.create_task(hash_permitted(short_queue)) for _ in range(4)]
    await asyncio.sleep(0)
    with pytest.raises(SchedulerFullError):
        await hash_permitted(short_queue)
    hashing.pop().cancel()
    await asyncio.sleep(0)
    assert await hash_permitted(short_queue)
    await asyncio.gather(*hashing)


async def test_the_time_in_which_a_password_waits_does_not_count_for_the_deadline(
    passwords: PasswordHasher,
) -> None:
    release = asyncio.Event()
    passwords._scheduler._max_running = 1

    async def hold_permit() -> None:
        async with passwords.permit(None):
            await release.wait()

    blocker = asyncio.create_task(hold_permit())
    await asyncio.sleep(0)
    deadline = RequestDeadlines().begin()
    with within_deadline():
        ends_at = deadline.at
        waiting = asyncio.create_task(hash_permitted(passwords))
        await eventually(lambda: deadline.at == math.inf, "the time does not count")
        release.set()
        await asyncio.gather(blocker, waiting)
        assert ends_at < deadline.at < math.inf


async def test_a_sign_in_goes_before_registrations_of_anyone(passwords: PasswordHasher) -> None:
    finished: list[str] = []
    password_hash = await passwords.hash(PASSWORD)
    passwords._scheduler._max_running = 1

    async def register(number: int) -> None:
        await hash_permitted(passwords, f"192.0.2.{number}")
        finished.append("register")

    async def sign_in() -> None:
        async with passwords.permit("192.0.2.1", "ada"):
            assert await passwords.matches(PASSWORD, password_hash)
        finished.append("sign in")

    await asyncio.gather(*map(register, range(6)), sign_in())
    assert finished[:2] == ["register", "sign in"]


SignIn = Callable[[], Coroutine[Any, Any, object]]


async def known_user(auth: Auth) -> SignIn:
    """Insert a user with a password. Return what signs the user in."""
    user = await insert_user(auth, password_hash=await auth.password_hasher.hash(PASSWORD))
    return lambda: login(auth, user.login_name, PASSWORD)


async def user_with_token(auth: Auth) -> SignIn:
    """Insert a user with a token. Return what sets the password."""
    reset = await create_password_reset(auth, await insert_user(auth))
    assert reset is not None
    return lambda: set_password(auth, reset.token, PASSWORD)


NewUser = Callable[[Auth], Coroutine[Any, Any, SignIn]]


async def most_commands_of_a_crowd(
    auth: Auth, new_user: NewUser, monkeypatch: pytest.MonkeyPatch
) -> int:
    """Let 20 users sign in at once. Return how many of them were at MongoDB at a time, at most."""
    users = [await new_user(auth) for _ in range(20)]
    run, now, most = ConcurrencyLimiter.run, 0, 0

    async def counted_run(*arguments: Any) -> Any:
        nonlocal now, most
        now += 1
        most = max(most, now)
        try:
            return await run(*arguments)
        finally:
            now -= 1

    monkeypatch.setattr(ConcurrencyLimiter, "run", counted_run)
    outcomes = await asyncio.gather(*(sign_in() for sign_in in users))
    assert {type(each) for each in outcomes} == {SignedInSession}
    return most


@pytest.mark.parametrize("new_user", [known_user, user_with_token])
async def test_a_crowd_waits_for_permits_and_not_for_mongodb(
    auth: Auth, monkeypatch: pytest.MonkeyPatch, new_user: NewUser
) -> None:
    permits = auth.password_hasher._scheduler._max_running
    assert await most_commands_of_a_crowd(auth, new_user, monkeypatch) <= permits < 20


async def test_control_without_permits_a_crowd_waits_for_mongodb(
    auth: Auth, monkeypatch: pytest.MonkeyPatch
) -> None:
    @asynccontextmanager
    async def permit(*_: object, **_options: object) -> AsyncIterator[None]:
        yield

    monkeypatch.setattr(PasswordHasher, "permit", permit)
    assert await most_commands_of_a_crowd(auth, known_user, monkeypatch) == 20


async def caller_of(auth: Auth, session: SignedInSession) -> Caller | None:
    """Return the caller of the session's access token; None if it is rejected."""
    try:
        return await authenticate(auth, f"Bearer {session.access_token}")
    except BadTokenError:
        return None


async def change_password(auth: Auth, user: User, own_caller: Caller) -> None:
    ended = await auth.repositories.password_writer.update(
        user.id, own_caller.session_id, OLD_HASH, NEW_HASH, now=auth.now()
    )
    assert ended is not None


async def ban(auth: Auth, user: User, own_caller: Caller) -> None:
    assert await auth.repositories.bans.ban(user, ORGANIZER_ID, None, auth.now())


async def demote(auth: Auth, user: User, own_caller: Caller) -> None:
    assert await account_admin.set_role(auth, None, user.id, Role.MEMBER)


Change = Callable[[Auth, User, Caller], Coroutine[Any, Any, None]]


class PausedLogin:
    """Pauses the next login before its last step until `resume` is set."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reached = reached = asyncio.Event()
        self.resume = resume = asyncio.Event()
        monkeypatch.setattr(sessions, "MAX_SESSIONS", 0)

        async def paused_end_oldest(
            self: SessionRepository, user_id: UserId, session: AsyncClientSession
        ) -> None:
            reached.set()
            await resume.wait()

        monkeypatch.setattr(SessionRepository, "_end_oldest", paused_end_oldest)


def disable_serialization(monkeypatch: pytest.MonkeyPatch) -> None:
    async def do_nothing(*_: Any) -> int:
        return 1

    for module in (sessions, credentials):
        monkeypatch.setattr(module, "serialize_user_sessions", do_nothing)


def watch_serialization(monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Return an event that is set when a change waits for the user's serialization."""
    reached, serialize = asyncio.Event(), sessions.serialize_user_sessions

    async def recording_serialize(*arguments: Any) -> int:
        reached.set()
        return await serialize(*arguments)

    end_sessions = sessions.end_sessions_of_all

    async def recording_end(*arguments: Any) -> None:
        reached.set()
        await end_sessions(*arguments)

    for module in (sessions, credentials):
        monkeypatch.setattr(module, "serialize_user_sessions", recording_serialize)
    monkeypatch.setattr(sessions, "end_sessions_of_all", recording_end)
    return reached


async def pause_second_login(
    auth: Auth, monkeypatch: pytest.MonkeyPatch
) -> tuple[User, Caller, asyncio.Task[SignedInSession], PausedLogin]:
    """Return an organizer with a session, and a paused login that opens a second one."""
    user = await insert_user(auth, Role.ORGANIZER, OLD_HASH)
    own_caller = await caller_of(auth, await open_session(auth, user, OLD_HASH))
    assert own_caller is not None
    paused = PausedLogin(monkeypatch)
    login = asyncio.create_task(open_session(auth, user, OLD_HASH))
    await paused.reached.wait()
    return user, own_caller, login, paused


def ignores_change(change: Change, caller: Caller | None) -> bool:
    """Return whether the session is as if the change had not happened."""
    return caller is not None and (change is not demote or caller.role is Role.ORGANIZER)


@pytest.mark.parametrize("change", [change_password, ban, demote])
async def test_a_login_in_progress_sees_a_concurrent_change(
    auth: Auth, monkeypatch: pytest.MonkeyPatch, change: Change
) -> None:
    user, own_caller, login, paused = await pause_second_login(auth, monkeypatch)
    reached = watch_serialization(monkeypatch)
    changing = asyncio.create_task(change(auth, user, own_caller))
    await reached.wait()
    paused.resume.set()
    session, _ = await asyncio.gather(login, changing)
    caller = await caller_of(auth, session)
    assert not ignores_change(change, caller)
    if change is not demote:
        assert await refresh_session(auth, session.refresh_token) == InvalidSession()


@pytest.mark.parametrize("change", [change_password, ban, demote])
async def test_control_without_serialization_a_login_in_progress_ignores_the_change(
    auth: Auth, monkeypatch: pytest.MonkeyPatch, change: Change
) -> None:
    disable_serialization(monkeypatch)
    user, own_caller, login, paused = await pause_second_login(auth, monkeypatch)
    await change(auth, user, own_caller)
    paused.resume.set()
    assert ignores_change(change, await caller_of(auth, await login))


@pytest.mark.parametrize("change", [change_password, ban, demote])
async def test_a_login_that_loaded_before_the_change_sees_it(auth: Auth, change: Change) -> None:
    user = await insert_user(auth, Role.ORGANIZER, OLD_HASH)
    own_caller = await caller_of(auth, await open_session(auth, user, OLD_HASH))
    assert own_caller is not None
    await change(auth, user, own_caller)
    session = await open_session(auth, user, OLD_HASH)
    assert not ignores_change(change, await caller_of(auth, session))


async def test_the_oldest_sessions_end_above_the_maximum_number(
    auth: Auth, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "MAX_SESSIONS", 3)
    user = await insert_user(auth)
    opened = [await open_session(auth, user) for _ in range(4)]
    concurrent = await asyncio.gather(*(open_session(auth, user) for _ in range(6)))
    assert [await caller_of(auth, session) for session in opened] == [None] * 4
    callers = [await caller_of(auth, session) for session in concurrent]
    assert sum(caller is not None for caller in callers) == 3
