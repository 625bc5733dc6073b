"""Operators and organizers see what became of each mail, and send it again."""

import asyncio
import json
import re
from dataclasses import replace
from datetime import timedelta

import pytest

from slotlock.cli.main import main
from slotlock.domain.notifications.mail_kinds import TEST, direct_mail
from slotlock.domain.notifications.outbox import Channel, OutboxState
from slotlock.services.notifications.outbox_sender import outbox_sender
from tests.support.cli.command_line import replace_environment
from tests.support.notifications.mail_scene import MailScene


@pytest.fixture
def environment(scene: MailScene, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let commands use the database of the scene."""
    replace_environment(monkeypatch, {"SLOTLOCK_MONGO_URL": scene.mongo_url})


@pytest.mark.usefixtures("environment")
async def test_a_failed_mail_is_listed_and_retried(
    scene: MailScene, capsys: pytest.CaptureFixture[str]
) -> None:
    slot_id = await scene.insert_slot()
    async with scene.reading():
        [booking_id] = await scene.book(slot_id, 0)
        await scene.until_entries("booked")
    scene.trap.respond_to_recipient = lambda _: "550 no such user"
    await scene.send()
    assert await asyncio.to_thread(main, ["outbox", "list", "--state", "failed"]) == 0
    line = capsys.readouterr().out.splitlines()[1]
    columns = ["failed", "1", f"booked:{booking_id}:0", "0@school.test", "550 no such user"]
    assert re.split(" {2,}", line)[1:] == columns
    assert await asyncio.to_thread(main, ["outbox", "retry"]) == 0
    assert capsys.readouterr().out == "queued: 1\n"
    [entry] = await scene.entries()
    assert (entry.state, entry.done_at) == (OutboxState.QUEUED, None)
    scene.trap.respond_to_recipient = lambda _: None
    await scene.send(timedelta())
    [entry] = await scene.entries()
    assert entry.state is OutboxState.SENT
    user = await scene.services.users.find_soon(scene.members[0].user_id)
    assert user is not None
    assert user.undeliverable_since is None
    assert await asyncio.to_thread(main, ["outbox", "retry", entry.id]) == 1
    assert f"{entry.id} cannot be sent again: it is sent" in capsys.readouterr().err
    assert await asyncio.to_thread(main, ["outbox", "retry", "booked:nothing:0"]) == 1
    assert "no entry has the id booked:nothing:0" in capsys.readouterr().err


@pytest.mark.usefixtures("environment")
async def test_a_test_mail_prints_the_response_and_fails_unless_it_was_taken(
    scene: MailScene, capsys: pytest.CaptureFixture[str]
) -> None:
    async with outbox_sender(scene.services, Channel.MAIL, scene.mailer.deliver):
        testing = ["outbox", "send-test", "a@school.test"]
        assert await asyncio.to_thread(main, [*testing, "--json"]) == 0
        printed = capsys.readouterr()
        entry = json.loads(printed.out)
        assert (entry["state"], entry["note"]) == ("sent", "caught")
        assert "which sends the mail by its own SLOTLOCK_SMTP_URL" in printed.err
        for response in ("550 no such user", "451 later"):
            scene.trap.respond_to_recipient = {"a@school.test": response}.get
            assert await asyncio.to_thread(main, testing) == 1
            printed = capsys.readouterr()
            assert printed.out == ""
            assert f": {response}\n" in printed.err
    assert scene.trap.subjects == ["Test of mail"]
    assert await asyncio.to_thread(main, ["outbox", "send-test", "nobody"]) == 1
    assert "not an email address" in capsys.readouterr().err


@pytest.mark.usefixtures("environment")
async def test_what_was_suppressed_by_a_mark_is_sent_again_and_the_marks_end(
    scene: MailScene, capsys: pytest.CaptureFixture[str]
) -> None:
    async def insert(member: int) -> str:
        scene.clock.advance(timedelta(seconds=1))
        now, user_id = scene.clock.now, scene.members[member].user_id
        entry = direct_mail(TEST, now.isoformat(), "1", now, user_id=user_id)
        await scene.services.outbox.insert([replace(entry, is_confidential=False)], now)
        return entry.id

    async def states() -> dict[str, OutboxState]:
        return {entry.id: entry.state for entry in await scene.entries()}

    scene.trap.respond_to_recipient = lambda _: "550 5.1.1 no such user"
    before = await insert(2)
    await scene.send()
    since = scene.clock.now.isoformat()
    failed = await insert(0)
    await scene.send(timedelta())
    suppressed = [await insert(0) for _ in range(2)]
    expired = direct_mail(TEST, "x", "1", scene.clock.now, expires_at=scene.clock.now)
    await scene.services.outbox.insert([expired], scene.clock.now)
    await scene.send(timedelta())
    unsent = {each.id for each in await scene.entries() if each.can_retry}
    assert unsent == {before, failed, *suppressed}
    assert (await scene.services.users.count_undeliverable()).count == 2
    scene.trap.respond_to_recipient = lambda _: None
    retry = ["outbox", "retry", "--since"]
    assert await asyncio.to_thread(main, [*retry, since]) == 0
    assert capsys.readouterr().out == "queued: 3\n"
    marked = await scene.services.users.count_undeliverable()
    assert (marked.count, marked.first_at) == (1, marked.last_at)
    latest = await insert(0)
    await scene.send(timedelta())
    assert await states() == {
        before: OutboxState.FAILED,
        expired.id: OutboxState.SUPPRESSED,
        **dict.fromkeys([failed, *suppressed, latest], OutboxState.SENT),
    }
    for time in ("yesterday", "2026-09-01", "2026-09-01T08:00"):
        with pytest.raises(SystemExit):
            await asyncio.to_thread(main, [*retry, time])
        assert "a time with an offset" in capsys.readouterr().err
