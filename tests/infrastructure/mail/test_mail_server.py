"""A mail server that refuses, hangs or closes connections costs each mail as little as possible."""

import asyncio
from collections import Counter
from typing import cast

import pytest
from aiosmtpd.smtp import SMTP, Envelope, Session

from slotlock.devserver.embedded import EmbeddedServers
from slotlock.devserver.mail_catcher import catching_mail
from slotlock.domain.notifications.mail_kinds import TEST, direct_mail
from slotlock.domain.notifications.outbox import Channel, Delivery, OutboxState
from slotlock.infrastructure.mail import mail_server
from slotlock.infrastructure.mail.addresses import parse_smtp_url
from slotlock.infrastructure.mail.mail_server import MailServer
from slotlock.infrastructure.mail.responses import Stage
from slotlock.infrastructure.tasks import cancel_and_wait
from slotlock.services.notifications.mailer import Mailer
from slotlock.services.notifications.outbox_sender import CONCURRENCY, OutboxSender
from tests.support.notifications.mail_scene import (
    SENDER,
    SITE,
    MailScene,
    MailTrap,
    open_mail_scene,
)
from tests.support.polling import eventually

MESSAGE = b"Subject: Hello\r\n\r\nHello\r\n"
QUEUED, SENT, FAILED = OutboxState.QUEUED, OutboxState.SENT, OutboxState.FAILED


class StubbornTrap(MailTrap):
    """A mail server that hangs for some recipients, and takes one mail over each connection.

    It answers the command `ending` of a second mail with `response`, or resets the connection.
    """

    def __init__(self, ending: str = "", response: str = "") -> None:
        super().__init__()
        self.ending, self.response = ending, response
        self.taken: Counter[Session] = Counter()
        # Those whose connection is open, and that get no response.
        self.hanging: list[str] = []

    async def _end(self, command: str, server: SMTP, session: Session) -> str:
        if self.ending != command or not self.taken[session]:
            return ""
        if not self.response:
            cast("asyncio.Transport", server.transport).abort()
        return self.response or "250 lost"

    async def _hang(self, address: str) -> None:
        self.hanging.append(address)
        try:
            await asyncio.Event().wait()
        finally:
            self.hanging.remove(address)

    async def handle_MAIL(  # noqa: N802 - the library calls it
        self, server: SMTP, session: Session, envelope: Envelope, address: str, _: list[str]
    ) -> str:
        """Accept a sender, unless the connection ends here."""
        envelope.mail_from = address
        return await self._end("MAIL", server, session) or "250 OK"

    async def handle_RCPT(  # noqa: N802 - the library calls it
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        """Accept a recipient, unless the connection ends here, or it hangs."""
        if address.startswith("hangs"):
            await self._hang(address)
        ended = await self._end("RCPT", server, session)
        return ended or await super().handle_RCPT(server, session, envelope, address, options)

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802 - the library calls it
        """Take a mail, unless the connection ends here; a reset comes after the mail was taken."""
        if envelope.rcpt_tos[0].startswith("content"):
            await self._hang(envelope.rcpt_tos[0])
        if self.ending == "DATA" and self.taken[session] and self.response:
            return self.response
        response = await super().handle_DATA(server, session, envelope)
        await self._end("DATA", server, session)
        self.taken[session] += 1
        return response


async def send_all(trap: StubbornTrap, *recipients: str) -> list[Delivery]:
    """Send a mail to each recipient, one after the other, and return what they led to."""
    with catching_mail(trap) as port:
        server = MailServer(parse_smtp_url(f"smtp://127.0.0.1:{port}"))
        try:
            return [await server.send(MESSAGE, SENDER.address, each) for each in recipients]
        finally:
            await server.close()


@pytest.mark.parametrize("is_guarded", [True, False])
@pytest.mark.parametrize(
    ("command", "response"),
    [
        *((each, "421 4.7.0 too many mails") for each in ("MAIL", "RCPT", "DATA")),
        ("MAIL", ""),
        ("RCPT", ""),
    ],
)
async def test_a_connection_that_ends_after_a_mail_costs_a_connection_only(
    monkeypatch: pytest.MonkeyPatch, command: str, response: str, is_guarded: bool
) -> None:
    if not is_guarded:
        monkeypatch.setattr(mail_server, "_has_ended", lambda *_: False)
    trap = StubbornTrap(command, response)
    deliveries = await send_all(trap, "a@school.test", "b@school.test", "c@school.test")
    states = [each.state for each in deliveries]
    assert states == ([SENT] * 3 if is_guarded else [SENT, QUEUED, SENT])
    assert [mail.recipients for mail in trap.mails] == [
        (each.recipient,) for each in deliveries if each.state is SENT
    ]


@pytest.mark.parametrize(
    ("name", "limit", "expected"),
    [("MAX_IDLE_S", 0.0, [1, 1, 1]), ("MAX_MAILS_PER_CONNECTION", 2, [2, 1])],
)
async def test_a_connection_ends_at_rest_and_after_some_mails(
    monkeypatch: pytest.MonkeyPatch, name: str, limit: float, expected: list[int]
) -> None:
    recipients = ("a@school.test", "b@school.test", "c@school.test")
    for allowed, counts in ((100, [3]), (limit, expected)):
        monkeypatch.setattr(mail_server, name, allowed)
        trap = StubbornTrap()
        await send_all(trap, *recipients)
        assert list(trap.taken.values()) == counts


async def test_a_mail_that_may_have_been_taken_is_not_sent_again_at_once() -> None:
    trap = StubbornTrap("DATA", "")
    deliveries = await send_all(trap, "a@school.test", "b@school.test")
    assert [(each.state, each.is_outage) for each in deliveries] == [(SENT, False), (QUEUED, False)]
    assert trap.count == 2


async def test_the_first_mail_of_a_connection_is_no_reason_for_another_one() -> None:
    trap = MailTrap()
    trap.respond_to_recipient = lambda _: "421 4.3.2 shutting down"
    with catching_mail(trap) as port:
        server = MailServer(parse_smtp_url(f"smtp://127.0.0.1:{port}"))
        delivery = await server.send(MESSAGE, SENDER.address, "a@school.test")
    assert (delivery.state, delivery.is_outage) == (QUEUED, True)


async def test_what_cannot_be_written_is_about_the_sender_or_the_recipient() -> None:
    trap = StubbornTrap()
    [bad] = await send_all(trap, "a b@school.test")
    assert (bad.state, bad.is_undeliverable, bad.recipient) == (FAILED, True, "a b@school.test")
    with catching_mail(trap) as port:
        server = MailServer(parse_smtp_url(f"smtp://127.0.0.1:{port}"))
        no_sender = await server.send(MESSAGE, "no reply@school.test", "a@school.test")
        idn = await server.send(MESSAGE, "noreply@b\u00fccher.test", "a@school.test")
        await server.close()
    assert (no_sender.state, no_sender.is_outage) == (QUEUED, True)
    assert idn.state is SENT


@pytest.mark.parametrize("is_guarded", [True, False])
async def test_recipients_that_hang_do_not_delay_the_first_mails_of_others(
    servers: EmbeddedServers, monkeypatch: pytest.MonkeyPatch, is_guarded: bool
) -> None:
    """If they need not give way, they take all places for their whole time: the control."""
    patience_s = 0.1 if is_guarded else mail_server.TIMEOUT_S
    monkeypatch.setattr(mail_server, "MIN_PATIENCE_S", patience_s)
    monkeypatch.setattr(mail_server, "MAX_PATIENCE_S", patience_s)
    # If the first ones held their places, all places were taken.
    monkeypatch.setattr(mail_server, "MAX_SLOW_CONNECTIONS", mail_server.MAX_CONNECTIONS)
    trap = StubbornTrap()
    async with open_mail_scene(servers) as scene:
        await check_recipients_that_hang(scene, trap, is_guarded=is_guarded)


async def check_recipients_that_hang(
    scene: MailScene, trap: StubbornTrap, *, is_guarded: bool
) -> None:
    """Check that the others are sent while the first ones hang, or are not if they are stuck."""
    outbox, now = scene.services.outbox, scene.clock.now
    hanging = [
        direct_mail(TEST, f"{n}", "1", now, recipient=f"hangs.{n}@{n}.test") for n in range(40)
    ]
    others = [direct_mail(TEST, f"{n}", "2", now, recipient=f"a@{n}.test") for n in range(5)]

    async def are_hanging() -> bool:
        return len(trap.hanging) == mail_server.MAX_CONNECTIONS

    async def are_stuck() -> bool:
        return await are_hanging() and len(sender._sending) == CONCURRENCY

    async def are_sent() -> bool:
        found = [await outbox.find(each.id) for each in others]
        return all(each and each.state is SENT for each in found)

    with catching_mail(trap) as port:
        server = MailServer(parse_smtp_url(f"smtp://127.0.0.1:{port}"))
        deliver = Mailer(scene.services, server, SENDER, SITE).deliver
        sender = OutboxSender(scene.services, Channel.MAIL, deliver)
        await outbox.insert(hanging, now)
        task = asyncio.create_task(sender.run())
        await eventually(are_hanging, "the first recipients hang")
        first = set(trap.hanging)
        await outbox.insert(others, now)
        await eventually(are_sent if is_guarded else are_stuck, "the others are sent")
        assert await are_sent() is is_guarded
        assert first & set(trap.hanging)
        # All at once: none connects in the place of another while the trap ends.
        await asyncio.gather(*map(cancel_and_wait, (task, *sender._sending)))
        # The thread of the trap would leave their sockets to a later test.
        await eventually(lambda: not trap.hanging, "their connections have ended")
        await server.close()


@pytest.mark.parametrize("is_guarded", [True, False])
async def test_contents_that_hang_leave_their_places_to_others_and_are_not_sent_at_once_again(
    monkeypatch: pytest.MonkeyPatch, is_guarded: bool
) -> None:
    """If they need not give way, they take all places for their whole time: the control."""
    patience_s = 0.1 if is_guarded else mail_server.TIMEOUT_S
    monkeypatch.setattr(mail_server, "MIN_PATIENCE_S", patience_s)
    monkeypatch.setattr(mail_server, "MAX_PATIENCE_S", 2 * patience_s)
    trap, slow_count = StubbornTrap(), mail_server.MAX_SLOW_CONNECTIONS
    with catching_mail(trap) as port:
        server = MailServer(parse_smtp_url(f"smtp://127.0.0.1:{port}"))
        server._slow_rooms[Stage.RECIPIENT] = asyncio.Semaphore(100)  # on a busy machine
        addresses = [f"content.{number}@school.test" for number in range(17)]
        tasks = [
            asyncio.create_task(server.send(MESSAGE, SENDER.address, each)) for each in addresses
        ]
        await eventually(server._room.locked, "all places are taken")
        other = asyncio.create_task(server.send(MESSAGE, SENDER.address, "a@school.test"))
        if is_guarded:
            assert (await other).state is SENT
            most = len(tasks) - slow_count
            await eventually(lambda: sum(each.done() for each in tasks) == most, "most gave way")
            given_up = [await each for each in tasks if each.done()]
            assert {(each.state, each.is_outage) for each in given_up} == {(QUEUED, False)}
            assert all("no response to the content" in each.note for each in given_up)
            assert not server._room.locked()
        else:
            count = mail_server.MAX_CONNECTIONS
            await eventually(lambda: len(trap.hanging) == count, "all places hang")
            assert not any(task.done() for task in (*tasks, other))
        await server.close()
        await asyncio.gather(*map(cancel_and_wait, (other, *tasks)))
        await eventually(lambda: not trap.hanging, "their connections have ended")
    assert trap.count == is_guarded


async def test_a_content_gets_more_time_than_a_recipient_before_it_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(mail_server, "MIN_PATIENCE_S", 0.01)
    with catching_mail(SlowTrap(Stage.CONTENT)) as port:
        server = MailServer(parse_smtp_url(f"smtp://127.0.0.1:{port}"))
        server._slow_rooms[Stage.CONTENT] = asyncio.Semaphore(0)
        assert (await server.send(MESSAGE, SENDER.address, "a@school.test")).state is SENT
        await server.close()


async def test_a_server_that_is_slow_for_everybody_gets_the_time_it_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(mail_server, "MIN_PATIENCE_S", 0.01)
    monkeypatch.setattr(mail_server, "MAX_SLOW_CONNECTIONS", 1)
    with catching_mail(SlowTrap(Stage.RECIPIENT)) as port:
        server = MailServer(parse_smtp_url(f"smtp://127.0.0.1:{port}"))
        addresses = [f"{number}@school.test" for number in range(30)]
        # The only slow connection takes the first ones, one after the other.
        for address in addresses[:10]:
            assert (await server.send(MESSAGE, SENDER.address, address)).state is SENT
        together = [server.send(MESSAGE, SENDER.address, each) for each in addresses[10:]]
        assert {each.state for each in await asyncio.gather(*together)} == {SENT}
        await server.close()


class SlowTrap(MailTrap):
    """A mail server that takes some time for each recipient, or for each content."""

    def __init__(self, stage: Stage) -> None:
        super().__init__()
        self.stage = stage

    async def handle_RCPT(  # noqa: N802 - the library calls it
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        """Accept a recipient, perhaps after a while."""
        await asyncio.sleep(0.05 if self.stage is Stage.RECIPIENT else 0)
        return await super().handle_RCPT(server, session, envelope, address, options)

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802 - the library calls it
        """Take a mail, perhaps after a while."""
        await asyncio.sleep(0.05 if self.stage is Stage.CONTENT else 0)
        return await super().handle_DATA(server, session, envelope)
