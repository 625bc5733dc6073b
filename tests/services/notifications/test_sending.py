"""Each entry is sent at least once, and its result is seen, whatever the mail server does."""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import timedelta

import pytest
from aiosmtpd.controller import Controller

from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.notifications.mail_kinds import RESET_PASSWORD, TEST, direct_mail
from slotlock.domain.notifications.outbox import (
    LEASE,
    OUTAGE_DELAY,
    RETRY_DELAYS,
    Channel,
    Delivery,
    OutboxEntry,
    OutboxState,
)
from slotlock.infrastructure.mail.addresses import MailServerAddress, parse_smtp_url
from slotlock.infrastructure.mail.mail_server import MailServer
from slotlock.infrastructure.mail.responses import SERVER_REFUSES
from slotlock.infrastructure.mongo.outbox.outbox_repository import OutboxRepository
from slotlock.infrastructure.mongo.users.privacy import Erasure, PersonalDataQueries
from slotlock.infrastructure.redis.auto_pipeline import AutoPipeline
from slotlock.infrastructure.redis.client import redis_client
from slotlock.infrastructure.redis.keys import MAX_BUDGET_MS
from slotlock.infrastructure.redis.rate_limits import ChargeMode, RateLimit, RateLimiter
from slotlock.services.erasure import finish_erasure
from slotlock.services.notifications import mailer
from slotlock.services.notifications.mailer import Mailer, MailRate
from slotlock.services.notifications.outbox_sender import OUTAGES, OutboxSender
from tests.support.apps.processes import free_port
from tests.support.notifications.mail_scene import SENDER, SITE, MailScene

MOMENT = timedelta(milliseconds=1)


async def insert_mail(scene: MailScene, member: int = 0, subject: str = "a") -> str:
    """Insert a mail that is due at once, and return its id."""
    user_id = scene.members[member].user_id
    entry = direct_mail(TEST, subject, "1", scene.clock.now, user_id=user_id)
    await scene.services.outbox.insert([entry], scene.clock.now)
    return entry.id


async def only_entry(scene: MailScene) -> OutboxEntry:
    """Return the only entry of the outbox."""
    [entry] = await scene.entries()
    return entry


async def test_a_temporary_refusal_is_retried_after_growing_delays(scene: MailScene) -> None:
    await insert_mail(scene)
    scene.trap.respond_to_recipient = lambda _: "451 greylisted"
    await scene.send(timedelta())
    for number, delay in enumerate(RETRY_DELAYS[Channel.MAIL], 1):
        entry = await only_entry(scene)
        assert (entry.state, entry.note) == (OutboxState.QUEUED, "451 greylisted")
        assert (entry.attempts, entry.due_at) == (number, scene.clock.now + delay)
        await scene.send(delay)
    entry = await only_entry(scene)
    assert (entry.state, entry.attempts) == (OutboxState.FAILED, 7)
    # An operator can send it again only if its content is still there: this one was confidential.
    assert not await scene.services.outbox.retry(entry.id, scene.clock.now)


async def test_a_rejected_address_gets_no_more_mail_until_it_changes(scene: MailScene) -> None:
    scene.trap.respond_to_recipient = lambda _: "550 no such user"
    await insert_mail(scene)
    await scene.send(timedelta())
    assert (await only_entry(scene)).state is OutboxState.FAILED
    user_id = scene.members[0].user_id
    user = await scene.services.users.find_soon(user_id)
    assert user is not None
    assert user.undeliverable_since == scene.clock.now
    scene.trap.respond_to_recipient = lambda _: None
    await insert_mail(scene, subject="b")
    await scene.send(MOMENT)
    assert {each.state for each in await scene.entries()} == {
        OutboxState.FAILED,
        OutboxState.SUPPRESSED,
    }
    await scene.database["users"].update_one(
        {"email": "0@school.test"}, {"$set": {"email": "new@school.test"}}
    )
    await insert_mail(scene, subject="c")
    await scene.send(MOMENT)
    assert [message["To"].addresses[0].addr_spec for message in scene.trap.messages] == [
        "new@school.test"
    ]


@pytest.mark.parametrize("response", ["554 5.7.1 Relay access denied", "550 5.7.1 by policy"])
async def test_an_hour_of_a_wrong_relay_costs_no_mail_and_no_address(
    scene: MailScene, caplog: pytest.LogCaptureFixture, response: str
) -> None:
    outages = OUTAGES.labels(Channel.MAIL.value)
    before = outages._value.get()
    for member in range(2):
        await insert_mail(scene, member, subject=str(member))
    scene.trap.respond_to_recipient = lambda _: response
    is_relay = "Relay" in response
    await scene.send(timedelta())
    for _ in range(60):
        await scene.send(OUTAGE_DELAY)
    entries = await scene.entries()
    assert {entry.state for entry in entries} == {OutboxState.QUEUED}
    assert {entry.attempts for entry in entries} == {1 if is_relay else 4}
    assert {entry.note for entry in entries} == {(SERVER_REFUSES if is_relay else "") + response}
    assert outages._value.get() - before == (2 * 61 if is_relay else 0)
    warnings = [each for each in caplog.messages if response in each]
    assert len(warnings) == (1 if is_relay else 0)  # not one for each attempt
    scene.trap.respond_to_recipient = lambda _: None
    await insert_mail(scene, subject="b")
    await scene.send(OUTAGE_DELAY if is_relay else RETRY_DELAYS[Channel.MAIL][3])
    assert {entry.state for entry in await scene.entries()} == {OutboxState.SENT}
    assert (await scene.services.users.count_undeliverable()).count == 0


async def test_what_another_address_responds_says_nothing_about_the_own_one(
    scene: MailScene,
) -> None:
    user_id = scene.members[0].user_id
    entry = direct_mail(
        TEST, "a", "1", scene.clock.now, user_id=user_id, recipient="former@school.test"
    )
    await scene.services.outbox.insert([entry], scene.clock.now)
    scene.trap.respond_to_recipient = lambda _: "550 5.1.1 no such user"
    await scene.send(timedelta())
    assert (await only_entry(scene)).state is OutboxState.FAILED
    assert (await scene.services.users.count_undeliverable()).count == 0


async def test_a_link_to_a_new_password_tries_a_marked_address_and_ends_the_mark(
    scene: MailScene,
) -> None:
    user_id, users = scene.members[0].user_id, scene.services.users
    user = await users.find_soon(user_id)
    assert user is not None
    await users.set_undeliverable(user, scene.clock.now)
    for kind in (TEST, RESET_PASSWORD):
        data = {"token": "0" * 32}
        entry = direct_mail(kind, user_id, "1", scene.clock.now, user_id=user_id, data=data)
        await scene.services.outbox.insert([entry], scene.clock.now)
        await scene.send(MOMENT)
    states = {entry.kind: entry.state for entry in await scene.entries()}
    assert states == {
        TEST.name: OutboxState.SUPPRESSED,
        RESET_PASSWORD.name: OutboxState.SENT,
    }
    assert (await users.count_undeliverable()).count == 0


@pytest.mark.parametrize("address", ["0@school.test", "0 0@school.test"])
async def test_a_mail_that_cannot_be_written_says_nothing_about_its_address(
    scene: MailScene, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    def fail(*_: object, **__: object) -> bytes:
        raise ValueError("a header has a line break")

    monkeypatch.setattr(mailer, "build_message", fail)
    await scene.database["users"].update_one(
        {"email": "0@school.test"}, {"$set": {"email": address}}
    )
    await insert_mail(scene)
    await scene.send(timedelta())
    assert (await only_entry(scene)).state is OutboxState.FAILED
    marked = await scene.services.users.count_undeliverable()
    assert marked.count == (1 if " " in address else 0)


async def test_a_mail_server_that_is_down_costs_no_attempt(scene: MailScene) -> None:
    await insert_mail(scene)
    address = MailServerAddress("127.0.0.1", 1, None, None, "smtp")
    down = Mailer(scene.services, MailServer(address), SENDER, SITE)
    sender = OutboxSender(scene.services, Channel.MAIL, down.deliver)
    for _ in range(10):
        assert await sender.send_due() == 1
        await sender.finish()
        scene.clock.advance(timedelta(minutes=1))
    entry = await only_entry(scene)
    assert (entry.state, entry.attempts) == (OutboxState.QUEUED, 1)
    await scene.send()
    assert (await only_entry(scene)).state is OutboxState.SENT


async def test_a_worker_that_dies_is_replaced_and_sends_the_same_mail(scene: MailScene) -> None:
    async with scene.reading():
        for title in ("Yoga", "Judo"):
            await scene.book(await scene.insert_slot(title=title), 0)
        await scene.until_entries("booked", "booked")
    outbox = scene.services.outbox
    scene.clock.advance(timedelta(minutes=1))
    [due, _] = await outbox.find_due(Channel.MAIL, scene.clock.now, 10)
    [leased] = await outbox.lease([due], scene.clock.now)
    assert (await scene.mailer.deliver(leased)).state is OutboxState.SENT
    # It dies before it records that. A later change is another mail.
    async with scene.reading():
        await scene.book(await scene.insert_slot(title="Chess"), 0)
        await scene.until_entries("booked", "booked", "booked")
    await scene.send(LEASE - MOMENT)
    await scene.send(MOMENT)
    subjects = ["2 changes to your bookings", "You have a place: Chess"]
    assert scene.trap.subjects == [*subjects, subjects[0]]
    first, _, again = scene.trap.messages
    assert first["Message-ID"] == again["Message-ID"]
    assert await outbox.find_due(Channel.MAIL, scene.clock.now + LEASE, 10) == []


@pytest.mark.parametrize("is_guarded", [True, False])
async def test_two_workers_send_an_entry_once(
    scene: MailScene, monkeypatch: pytest.MonkeyPatch, is_guarded: bool
) -> None:
    """Without the condition of the lease, both send it: the control of this test."""
    for number in range(5):
        await insert_mail(scene, subject=str(number))
    if not is_guarded:
        both_found = asyncio.Barrier(2)

        async def lease(
            _: OutboxRepository, due: Sequence[OutboxEntry], *_now: object
        ) -> list[list[OutboxEntry]]:
            await both_found.wait()  # before either has sent anything
            return [[entry] for entry in due]

        monkeypatch.setattr(OutboxRepository, "lease", lease)
    workers = [OutboxSender(scene.services, Channel.MAIL, scene.mailer.deliver) for _ in range(2)]
    await asyncio.gather(*(worker.send_due() for worker in workers))
    await asyncio.gather(*(worker.finish() for worker in workers))
    assert scene.trap.count == (5 if is_guarded else 10)


async def test_of_a_group_one_mail_is_sent_at_a_time_and_a_retry_takes_no_more_with_it(
    scene: MailScene,
) -> None:
    async def insert(subject: str) -> str:
        user_id, now = scene.members[0].user_id, scene.clock.now
        entry = replace(direct_mail(TEST, subject, "1", now, user_id=user_id), group="g")
        await scene.services.outbox.insert([entry], now)
        return entry.id

    async def deliver(entries: Sequence[OutboxEntry]) -> Delivery:
        attempts.append([entry.id for entry in entries])
        await may_end.wait()
        return Delivery(OutboxState.QUEUED, "later")

    attempts, may_end = list[list[str]](), asyncio.Event()
    sender = OutboxSender(scene.services, Channel.MAIL, deliver)
    first = await insert("a")
    assert await sender.send_due() == 1
    second = await insert("b")
    assert await sender.send_due() == 0
    may_end.set()
    await sender.finish()
    scene.clock.advance(RETRY_DELAYS[Channel.MAIL][0])
    due = await scene.services.outbox.find_due(Channel.MAIL, scene.clock.now, 10)
    again = [entry for entry in due if entry.id == first]
    [leased] = await scene.services.outbox.lease(again, scene.clock.now)
    assert [entry.id for entry in leased] == [first]
    await scene.services.outbox.finish(leased, Delivery(OutboxState.SENT, ""), scene.clock.now)
    assert await sender.send_due() == 1
    await sender.finish()
    assert attempts == [[first], [second]]


async def test_a_late_result_leaves_the_lease_of_another_worker(scene: MailScene) -> None:
    await insert_mail(scene)
    outbox = scene.services.outbox
    leases = []
    for _ in range(2):
        leases.append(await outbox.lease([await only_entry(scene)], scene.clock.now))
        scene.clock.advance(LEASE)
    [[late], [latest]] = leases
    await outbox.finish(late, Delivery(OutboxState.QUEUED, "451"), scene.clock.now)
    assert [await only_entry(scene)] == latest


async def test_a_result_that_is_not_recorded_at_once_is_not_sent_again(
    scene: MailScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    await insert_mail(scene)
    failures = iter([True, True])
    finish = OutboxRepository.finish

    async def finish_later(
        outbox: OutboxRepository, entries: list[OutboxEntry], delivery: Delivery, *now: object
    ) -> OutboxState:
        if next(failures, False):
            raise OSError("an election")
        return await finish(outbox, entries, delivery, scene.clock.now)

    monkeypatch.setattr(OutboxRepository, "finish", finish_later)
    await scene.send(timedelta())
    assert scene.trap.count == 1
    assert (await only_entry(scene)).state is OutboxState.SENT


async def test_what_expired_is_not_sent(scene: MailScene) -> None:
    now = scene.clock.now
    link = direct_mail(
        TEST, "a", "1", now, recipient="a@school.test", data={"token": "x"}, expires_at=now + MOMENT
    )
    await scene.services.outbox.insert([link], now)
    await scene.send(MOMENT)
    entry = await only_entry(scene)
    assert (entry.state, dict(entry.data), scene.trap.count) == (OutboxState.SUPPRESSED, {}, 0)


LONGEST = f"{'a' * 64}@{'b' * 63}.{'c' * 63}.{'d' * 57}.test"
DELIVERED = {
    "a+b=c@school.test": "a+b=c@school.test",
    '"a b"@school.test': '"a b"@school.test',
    "üser@school.test": "üser@school.test",
    "ada@bücher.test": "ada@xn--bcher-kva.test",
    LONGEST: LONGEST,
}
REJECTED = (
    *("nobody", "@school.test", "a b@school.test", "a@b@school.test", "a@school.test>", "a@"),
    *("a@school.test\r\nRCPT TO:<b@x.test>", "a@school.test SIZE=1", "a\x00@school.test"),
)


async def insert_to(scene: MailScene, *recipients: str) -> None:
    """Insert a mail to each of these addresses, due at once."""
    entries = [
        direct_mail(TEST, str(number), "1", scene.clock.now, recipient=recipient)
        for number, recipient in enumerate(recipients)
    ]
    await scene.services.outbox.insert(entries, scene.clock.now)


async def states_by_recipient(scene: MailScene) -> dict[str | None, OutboxState]:
    """Return the state of each entry by its recipient."""
    return {entry.recipient: entry.state for entry in await scene.entries()}


async def test_every_address_gets_its_mail_or_fails_and_none_blocks_another(
    scene: MailScene,
) -> None:
    await insert_to(scene, *REJECTED, *DELIVERED)
    broken = replace(
        direct_mail(TEST, "broken", "1", scene.clock.now, recipient="x@school.test"), kind="none"
    )
    await scene.services.outbox.insert([broken], scene.clock.now)
    await scene.send(timedelta())
    assert await states_by_recipient(scene) == {
        **dict.fromkeys(DELIVERED, OutboxState.SENT),
        **dict.fromkeys(REJECTED, OutboxState.FAILED),
        "x@school.test": OutboxState.QUEUED,
    }
    assert {mail.recipients for mail in scene.trap.mails} == {(to,) for to in DELIVERED.values()}
    for message in scene.trap.messages:
        assert not message.defects
        [recipient] = message["To"].addresses
        # With SMTPUTF8, headers are UTF-8.
        shown = recipient.addr_spec.encode(errors="surrogateescape").decode()
        assert shown in DELIVERED.values()


async def test_an_address_that_the_mail_server_does_not_understand_fails(scene: MailScene) -> None:
    controller = Controller(scene.trap, "127.0.0.1", free_port(), enable_SMTPUTF8=False)
    controller.start()
    try:
        address = MailServerAddress("127.0.0.1", controller.port, None, None, "smtp")
        other = Mailer(scene.services, MailServer(address), SENDER, SITE)
        await insert_to(scene, "üser@school.test", "ada@bücher.test")
        sender = OutboxSender(scene.services, Channel.MAIL, other.deliver)
        assert await sender.send_due() == 2
        await sender.finish()
    finally:
        controller.stop()
    assert await states_by_recipient(scene) == {
        "üser@school.test": OutboxState.FAILED,
        "ada@bücher.test": OutboxState.SENT,
    }


# The first one is as aiosmtplib decodes a byte that is not UTF-8.
NOTES = {
    "taken \udcff": "taken ?",
    "250 ok\0": "250 ok?",
    "\x1b[31mred\x1b]0;title\x07": "?[31mred?]0;title?",
    "550 no\r\nsuch\t user\u2028": "550 no such user",
    "\u202eabc\u200b": "?abc?",
    "größer \U0001f600": "größer \U0001f600",
    "x" * 600: "x" * 500,
}


@pytest.mark.parametrize("text", NOTES)
async def test_a_response_with_any_characters_is_recorded_as_one_line(
    scene: MailScene, text: str
) -> None:
    await insert_mail(scene)
    entry = await only_entry(scene)
    delivery = Delivery(OutboxState.SENT, text, "a@school.test")
    await scene.services.outbox.finish([entry], delivery, scene.clock.now)
    assert (await only_entry(scene)).note == NOTES[text]


async def test_all_that_another_worker_did_not_lease_is_leased(scene: MailScene) -> None:
    for number in range(4):
        await insert_mail(scene, subject=str(number))
    outbox = scene.services.outbox
    due = await outbox.find_due(Channel.MAIL, scene.clock.now, 10)
    first = await outbox.lease(due[1:2], scene.clock.now)
    rest = await outbox.lease(due, scene.clock.now)
    assert [entry.id for [entry] in first] == [due[1].id]
    assert [entry.id for [entry] in rest] == [due[0].id, due[2].id, due[3].id]
    assert {entry.attempts for [entry] in rest} == {1}


async def test_all_processes_together_send_at_most_the_rate(servers: EmbeddedServers) -> None:
    async with AsyncExitStack() as stack:
        pipelines = [AutoPipeline(redis_client(servers.redis_url), MAX_BUDGET_MS) for _ in range(2)]
        for pipeline in pipelines:
            stack.push_async_callback(pipeline.close)
        limiter, limit = RateLimiter(pipelines[0]), RateLimit("mail", 5)
        limiter.reset("outbox", limit)
        one, other = (MailRate(pipeline, 5) for pipeline in pipelines)
        assert [await one.wait(3), await other.wait(9)] == [3, 2]
        assert await limiter.charge([("outbox", limit, 1)], ChargeMode.PEEK) > 0


async def test_without_redis_each_process_limits_the_rate() -> None:
    pipeline = AutoPipeline(redis_client(f"redis://127.0.0.1:{free_port()}"), MAX_BUDGET_MS)
    try:
        assert await MailRate(pipeline, 5).wait(9) == 5
    finally:
        await pipeline.close()


async def test_what_is_being_sent_is_erased_with_its_user_and_stays_so(scene: MailScene) -> None:
    await insert_mail(scene)
    await insert_mail(scene, subject="b")
    outbox, user_id = scene.services.outbox, scene.members[0].user_id
    exported = [
        document
        for name, read in PersonalDataQueries(scene.database).sections(user_id)
        if name == "mails"
        async for document in read()
    ]
    assert {document["state"] for document in exported} == {"queued"}
    assert len(exported) == 2
    [due, _] = await outbox.find_due(Channel.MAIL, scene.clock.now, 10)
    [leased] = await outbox.lease([due], scene.clock.now)
    erasure = await scene.services.erasures.erase_account(user_id, None, scene.clock.now)
    assert isinstance(erasure, Erasure)
    await finish_erasure(scene.services, erasure)
    assert await scene.entries() == []
    assert (await scene.mailer.deliver(leased)).state is OutboxState.SUPPRESSED
    # The attempt ends after the erasure, and leaves no trace of the address.
    sent = Delivery(OutboxState.SENT, "taken", "0@school.test")
    await outbox.finish(leased, sent, scene.clock.now)
    assert await scene.entries() == []


@pytest.mark.parametrize(
    "url", ["http://x", "smtp://", "smtp://host:99999", "smtp://host/path", "mail.example.org"]
)
def test_other_urls_are_no_mail_servers(url: str) -> None:
    with pytest.raises(ValueError, match="is not like smtp://"):
        parse_smtp_url(url)


def test_passwords_leave_the_host_only_with_tls() -> None:
    assert parse_smtp_url("smtp://u:p%40@mail.test").start_tls is True
    assert parse_smtp_url("smtp://u:p%40@mail.test").password == "p@"
    assert parse_smtp_url("smtp://127.0.0.1:25").start_tls is None
    assert parse_smtp_url("smtp+insecure://10.0.0.7").start_tls is None
