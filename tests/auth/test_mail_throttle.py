"""Limits on codes and links by mail: no client ends the mails of others, nor floods strangers."""

import asyncio
import re
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta

import pytest
from pymongo import AsyncMongoClient, monitoring

from slotlock.auth.accounts import (
    PasswordChanged,
    TooManyAttempts,
    change_password,
    throttle_login,
)
from slotlock.auth.authentication import authenticate
from slotlock.auth.container import Auth
from slotlock.auth.email_verification import (
    EmailVerificationSent,
    EmailVerified,
    mail_first_code,
    request_email_verification,
    verify_email,
)
from slotlock.auth.invitations import NOBODY, PasswordResetRequested, request_password_reset
from slotlock.auth.login_throttle import LoginThrottle
from slotlock.auth.mails import mail_throttle
from slotlock.auth.mails.mail_throttle import (
    ACCOUNT_MAILS,
    MailFate,
    MailPurpose,
    MailThrottle,
    ResetRequest,
)
from slotlock.auth.passwords import PasswordHasher
from slotlock.auth.sessions import VerificationMail, open_session
from slotlock.auth.tokens import TokenSigner
from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.users.user import Caller, Role, User
from slotlock.infrastructure.mongo.client import Document
from slotlock.infrastructure.mongo.outbox.outbox_repository import OutboxRepository
from slotlock.infrastructure.mongo.repositories import Repositories
from slotlock.infrastructure.mongo.users.credentials import InvitationRepository, MailedReset
from slotlock.infrastructure.redis.auto_pipeline import AutoPipeline
from slotlock.infrastructure.redis.client import redis_client
from slotlock.infrastructure.redis.keys import MAX_BUDGET_MS
from slotlock.infrastructure.redis.known_addresses import KnownAddresses
from slotlock.infrastructure.redis.paces import Pace, Paces
from slotlock.infrastructure.redis.rate_limits import ChargeMode, RateLimit, RateLimiter
from tests.support.apps.processes import SECRET
from tests.support.notifications.mail_scene import MailScene, open_mail_scene
from tests.support.stores.cheap_hashes import NO_PASSWORD

PASSWORD = "correct horse battery"
REQUESTED = PasswordResetRequested(30)
AT_ONCE, DAY_MS = timedelta(), 24 * 3600 * 1000
QUARTER = timedelta(minutes=15)


@dataclass(frozen=True)
class Site:
    """A site that requires verified addresses, with the limits of a server."""

    auth: Auth
    scene: MailScene
    pipeline: AutoPipeline

    async def user(self, address: str | None = None, *, self_registered: bool = False) -> User:
        """Return a new user, who signed in from an address."""
        user = await self.auth.repositories.users.insert(
            "Ada",
            f"{secrets.token_hex(8)}@school.test",
            Role.MEMBER,
            NO_PASSWORD,
            self.scene.clock.now,
            self_registered=self_registered,
        )
        assert user is not None
        if address is not None:
            await throttle_login(self.auth, user.login_name, address, lambda _: asyncio.sleep(0))
        return user

    async def register(self, address: str) -> tuple[User, VerificationMail]:
        """Register a user, and return what became of the first mail."""
        user = await self.user(address, self_registered=True)
        return user, await mail_first_code(self.auth, user, address)

    async def request_code(self, user: User, address: str) -> object:
        """Request another code."""
        return await request_email_verification(self.auth, self.caller(user), address)

    async def reset(self, login_name: str, address: str) -> object:
        """Request a link for a new password."""
        return await request_password_reset(self.auth, login_name, address)

    async def reset_of_nobody(self, address: str, times: int) -> None:
        """Request links for addresses without an account, each by itself."""
        for _ in range(times):
            assert await self.reset(f"{secrets.token_hex(8)}@evil.test", address) == REQUESTED
            await self.auth.finish_background()

    def caller(self, user: User) -> Caller:
        """Return a user who is signed in."""
        return Caller(user.id, user.role, "session", self.scene.clock.now)

    async def delays(self) -> dict[str | None, timedelta]:
        """Return when the mails of the outbox leave, from now on, by recipient."""
        await self.auth.finish_background()
        now = self.scene.clock.now
        return {each.recipient: each.due_at - now for each in await self.scene.entries()}

    async def recipients(self) -> list[str | None]:
        """Return the recipients of the mails of the outbox; notices name the account only."""
        users = await self.auth.repositories.users.find_many(
            [each.user_id for each in await self.scene.entries() if each.user_id]
        )
        return [users[e.user_id].email for e in await self.scene.entries() if e.user_id]

    async def codes(self) -> dict[str, str]:
        """Send what is due within a quarter of an hour. Return the codes by recipient."""
        await self.scene.send(QUARTER)
        found = {}
        for mail in self.scene.trap.mails:
            text = mail.message.get_body(("plain",))
            code = re.search(r"#/\w+/([0-9a-f]{64})", text.get_content() if text else "")
            found[mail.recipients[0]] = code[1] if code else ""
        return found


@pytest.fixture(autouse=True)
def endless_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Count all that a test does in one window of each rate limit."""
    endless = property(lambda _: 1_000_000_000, lambda _, __: None)
    monkeypatch.setattr(RateLimit, "window_s", endless)


@pytest.fixture
async def site(servers: EmbeddedServers) -> AsyncIterator[Site]:
    async with open_mail_scene(servers, member_count=0) as scene, open_site(scene) as opened:
        yield opened


@asynccontextmanager
async def open_site(scene: MailScene) -> AsyncIterator[Site]:
    pipeline = AutoPipeline(redis_client(scene.redis_url), MAX_BUDGET_MS)
    logins = LoginThrottle(RateLimiter(pipeline), KnownAddresses(pipeline), secrets.token_bytes(32))
    hasher = PasswordHasher()
    auth = Auth(
        scene.services,
        hasher,
        TokenSigner([SECRET]),
        scene.clock,
        login_throttle=logins,
        mail_throttle=MailThrottle(logins, Paces(pipeline)),
        sends_mail=True,
    )
    yield Site(auth, scene, pipeline)
    hasher.close()
    await pipeline.close()


def new_address() -> str:
    return f"address {secrets.token_hex(8)}"


def limit_to(monkeypatch: pytest.MonkeyPatch, name: str, count: int) -> None:
    """Replace limits by one that nothing was counted for yet."""
    monkeypatch.setattr(mail_throttle, name, (RateLimit(secrets.token_hex(8), count),))


def slow_down(monkeypatch: pytest.MonkeyPatch, burst: int, max_delay_ms: int) -> None:
    """Let one mail a day leave after the burst."""
    monkeypatch.setattr(mail_throttle, "PACE", Pace("slow", DAY_MS, burst, max_delay_ms))


def counted(purpose: MailPurpose, fate: MailFate) -> float:
    """Return the value of the metric."""
    return float(ACCOUNT_MAILS.labels(purpose.value, fate.value)._value.get())


@pytest.mark.parametrize("is_guarded", [True, False], ids=["guarded", "control"])
async def test_all_pupils_behind_one_address_verify_theirs_during_a_flood_of_requests(
    site: Site, monkeypatch: pytest.MonkeyPatch, is_guarded: bool
) -> None:
    limit_to(monkeypatch, "PER_CLIENT", 30)
    school, count = new_address(), MailThrottle.count_reset_request

    async def count_as_mail(
        throttle: MailThrottle, login_name: str, client: str | None
    ) -> ResetRequest:
        charges = mail_throttle._stranger_charges(client, is_first=True)
        await throttle._logins.charge(charges, ChargeMode.CHARGE)
        return await count(throttle, login_name, client)

    if not is_guarded:
        monkeypatch.setattr(MailThrottle, "count_reset_request", count_as_mail)
    known, delayed = await site.user(school), counted(MailPurpose.FIRST_CODE, MailFate.DELAYED)
    flood = (site.reset(f"{secrets.token_hex(8)}@evil.test", school) for _ in range(60))
    assert await asyncio.gather(*flood) == [REQUESTED] * 60
    assert await site.reset(known.login_name, school) == REQUESTED
    pupils = [await site.register(school) for _ in range(20)]
    due = [mail.due_at for _, mail in pupils]
    if not is_guarded:
        assert None in due
        return
    assert None not in due
    assert due == sorted(due, key=str)  # in the order of arrival
    assert counted(MailPurpose.FIRST_CODE, MailFate.DELAYED) > delayed
    await site.auth.finish_background()
    codes = await site.codes()
    assert known.login_name in codes
    for user, _ in pupils:
        verified = await verify_email(site.auth, site.caller(user), codes[user.login_name], school)
        assert isinstance(verified, EmailVerified)


@pytest.mark.parametrize("is_guarded", [True, False], ids=["guarded", "control"])
async def test_links_of_other_accounts_hold_up_neither_known_users_nor_first_mails(
    site: Site, monkeypatch: pytest.MonkeyPatch, is_guarded: bool
) -> None:
    slow_down(monkeypatch, burst=2, max_delay_ms=DAY_MS)
    school = new_address()
    await site.reset_of_nobody(school, 3)
    others = [await site.user() for _ in range(3)]
    known, late = await site.user(school), await site.user()
    assert [await site.reset(user.login_name, school) for user in others] == [REQUESTED] * 3
    delays = await site.delays()
    assert [round(delays[user.login_name] / timedelta(days=1)) for user in others] == [0, 0, 1]
    # The queue is full: that is said, and the same of an address without an account.
    for login_name in (late.login_name, f"{secrets.token_hex(8)}@evil.test"):
        refused = await site.reset(login_name, school)
        assert isinstance(refused, TooManyAttempts)
        assert 0 < refused.retry_after_ms <= DAY_MS
    if not is_guarded:
        monkeypatch.setattr(LoginThrottle, "is_known", lambda *_: asyncio.sleep(0, result=False))
    outcome = await site.reset(known.login_name, school)
    assert (outcome == REQUESTED) is is_guarded
    if is_guarded:
        user, mail = await site.register(school)
        delays = await site.delays()
        assert (delays[known.login_name], delays[user.login_name]) == (AT_ONCE, AT_ONCE)
        assert mail == VerificationMail(due_at=site.scene.clock.now)


@pytest.mark.parametrize("is_guarded", [True, False], ids=["guarded", "control"])
async def test_a_later_request_from_elsewhere_does_not_delay_the_link_of_a_known_user(
    site: Site, monkeypatch: pytest.MonkeyPatch, is_guarded: bool
) -> None:
    slow_down(monkeypatch, burst=1, max_delay_ms=DAY_MS)
    school, elsewhere = new_address(), new_address()
    other, known = await site.user(), await site.user(school)
    if not is_guarded:
        monkeypatch.setattr(LoginThrottle, "is_known", lambda *_: asyncio.sleep(0, result=False))
    # All of them wait for the same task.
    assert await site.reset(other.login_name, elsewhere) == REQUESTED
    for address in (school, elsewhere):
        assert await site.reset(known.login_name, address) == REQUESTED
    delays = await site.delays()
    assert delays[other.login_name] == AT_ONCE
    assert (delays[known.login_name] == AT_ONCE) is is_guarded


async def test_each_link_that_a_response_has_promised_leaves(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow_down(monkeypatch, burst=1, max_delay_ms=DAY_MS // 2)
    users, school = [await site.user() for _ in range(3)], new_address()
    assert [await site.reset(each.login_name, school) for each in users] == [REQUESTED] * 3
    assert (await site.delays()).keys() == {each.login_name for each in users}
    # The next one learns that it has to wait.
    late = await site.user()
    assert isinstance(await site.reset(late.login_name, school), TooManyAttempts)


async def test_requests_from_elsewhere_use_up_no_link_of_a_user_at_a_known_address(
    site: Site,
) -> None:
    school, elsewhere = new_address(), new_address()
    known, nobody = await site.user(school), f"{secrets.token_hex(8)}@school.test"
    for login_name in (known.login_name, nobody):
        outcomes = [await site.reset(login_name, elsewhere) for _ in range(6)]
        assert outcomes[:5] == [REQUESTED] * 5
        assert isinstance(outcomes[5], TooManyAttempts)
        assert isinstance(await site.reset(login_name, new_address()), TooManyAttempts)
    outcomes = [await site.reset(known.login_name, school) for _ in range(6)]
    assert outcomes[:5] == [REQUESTED] * 5
    assert isinstance(outcomes[5], TooManyAttempts)


async def test_a_client_and_the_site_mail_to_so_many_strangers_until_some_of_them_answer(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit_to(monkeypatch, "PER_CLIENT", 2)
    limit_to(monkeypatch, "PER_SITE", 3)
    spammer, other = new_address(), new_address()
    await site.reset_of_nobody(spammer, 3)
    first, _ = await site.register(spammer)
    await site.register(spammer)
    _, refused = await site.register(spammer)
    assert refused.due_at is None
    assert refused.retry_after_ms
    # Links for an address that its user did not verify count as well, also where it is known.
    for _ in range(3):
        assert await site.reset(first.login_name, spammer) == REQUESTED
        await site.auth.finish_background()
    assert len(await site.recipients()) == 4
    _, mail = await site.register(other)
    assert mail.due_at is not None
    _, refused = await site.register(new_address())
    assert refused.due_at is None  # nothing is left for the site
    codes = [each.data.get("code") for each in await site.scene.entries() if each.data.get("code")]
    assert len(codes) == 3
    assert isinstance(
        await verify_email(site.auth, site.caller(first), codes[-1] or "", spammer), EmailVerified
    )
    _, mail = await site.register(spammer)
    assert mail.due_at is not None


@pytest.mark.parametrize("is_guarded", [True, False], ids=["guarded", "control"])
async def test_other_mails_to_strangers_use_up_no_first_code(
    site: Site, monkeypatch: pytest.MonkeyPatch, is_guarded: bool
) -> None:
    """A few accounts could end the first codes of a school, which counted together: the control."""
    limit_to(monkeypatch, "PER_CLIENT", 3)
    if not is_guarded:
        charges = mail_throttle._stranger_charges
        monkeypatch.setattr(mail_throttle, "_stranger_charges", lambda client, **_: charges(client))
    school = new_address()
    attacker, _ = await site.register(school)
    for _ in range(3):
        assert await site.reset(attacker.login_name, school) == REQUESTED
        await site.auth.finish_background()
    _, mail = await site.register(school)
    assert (mail.due_at is not None) is is_guarded


async def test_a_user_who_registered_an_address_sends_it_few_mails_about_new_passwords(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PasswordHasher, "matches", lambda *_: asyncio.sleep(0, result=True))
    monkeypatch.setattr(PasswordHasher, "hash", lambda *_: asyncio.sleep(0, result=NO_PASSWORD))
    address = new_address()
    for user, count in ((await site.user(self_registered=True), 5), (await site.user(), 6)):
        session = await open_session(site.auth, user)
        caller = await authenticate(site.auth, f"Bearer {session.access_token}")
        assert caller is not None
        for _ in range(6):
            change = await change_password(site.auth, caller, "old", PASSWORD, address)
            assert change == PasswordChanged(0)
        assert [*await site.recipients()].count(user.email) == count


async def test_a_mail_that_has_no_time_uses_up_nothing_of_its_recipient(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow_down(monkeypatch, burst=1, max_delay_ms=0)
    school, refused = new_address(), counted(MailPurpose.CODE, MailFate.REFUSED)
    assert isinstance(await site.request_code(await site.user(), school), EmailVerificationSent)
    user = await site.user()
    for _ in range(6):
        assert isinstance(await site.request_code(user, school), TooManyAttempts)
    assert counted(MailPurpose.CODE, MailFate.REFUSED) == refused + 6
    assert isinstance(await site.request_code(user, new_address()), EmailVerificationSent)


async def test_a_request_while_a_code_waits_for_its_time_does_not_end_this_code(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow_down(monkeypatch, burst=1, max_delay_ms=DAY_MS)
    school = new_address()
    await site.register(school)
    user, mail = await site.register(school)
    again = await site.request_code(user, school)
    assert isinstance(again, EmailVerificationSent)
    assert again.due_at == mail.due_at
    assert len(await site.scene.entries()) == 2
    site.scene.clock.advance(timedelta(days=1))
    again = await site.request_code(user, new_address())
    assert isinstance(again, EmailVerificationSent)
    assert again.due_at == site.scene.clock.now


async def test_an_account_is_registered_though_its_mail_cannot_be_stored(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def die(*_: object) -> int:
        raise RuntimeError

    monkeypatch.setattr(OutboxRepository, "insert", die)
    assert (await site.register(new_address()))[1] == VerificationMail(retry_after_ms=0)


class Commands(monitoring.CommandListener):
    """Records the names of all commands."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def started(self, event: monitoring.CommandStartedEvent) -> None:
        """Record a command."""
        self.names.append(event.command_name)

    def succeeded(self, event: monitoring.CommandSucceededEvent) -> None:
        """Ignore the reply."""

    def failed(self, event: monitoring.CommandFailedEvent) -> None:
        """Ignore the failure."""


@pytest.mark.parametrize("is_guarded", [True, False], ids=["guarded", "control"])
async def test_a_request_for_a_link_causes_the_same_commands_with_and_without_an_account(
    site: Site, monkeypatch: pytest.MonkeyPatch, is_guarded: bool
) -> None:
    commands, send, save = Commands(), AutoPipeline.send, InvitationRepository.save_mailed_resets

    def record_and_send(pipeline: AutoPipeline, *command: str | bytes | int) -> object:
        if pipeline is site.pipeline:
            commands.names.append(f"Redis {command[0]!r}")
        return send(pipeline, *command)

    async def save_for_somebody(repository: object, resets: list[MailedReset], now: object) -> None:
        if resets[0].user_id != NOBODY:
            await save(repository, resets, now)  # type: ignore[arg-type]

    monkeypatch.setattr(AutoPipeline, "send", record_and_send)
    if not is_guarded:
        monkeypatch.setattr(InvitationRepository, "save_mailed_resets", save_for_somebody)
    school = new_address()
    login_names = [
        (await site.user(school)).login_name,
        (await site.user()).login_name,
        (await site.user(self_registered=True)).login_name,
        f"{secrets.token_hex(8)}@school.test",
        "a-user-name",
    ]
    found = []
    client = AsyncMongoClient[Document](
        site.scene.mongo_url, tz_aware=True, w="majority", event_listeners=[commands]
    )
    async with client:
        auth = replace(site.auth, repositories=Repositories(client.get_default_database()))
        for login_name in login_names:
            commands.names.clear()
            assert await request_password_reset(auth, login_name, school) == REQUESTED
            in_request = [*commands.names]
            await auth.finish_background()
            ends = ("commitTransaction", "abortTransaction")
            found.append((in_request, ["end" if n in ends else n for n in commands.names]))
    assert all(each == found[0] for each in found) is is_guarded
    assert (len(found[0][0]), found[0][1][-1]) == (4, "end")
    assert all(each.user_id != NOBODY for each in await site.scene.entries())
