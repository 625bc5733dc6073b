"""What a real worker sends when processes are killed: each mail once, and none is missing."""

from collections import Counter
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import httpx
import pytest
from bson import ObjectId

from slotlock.devserver.embedded import EmbeddedServers
from slotlock.devserver.mail_catcher import catching_mail
from slotlock.infrastructure.mongo.client import Database, open_database
from tests.support.apps.fork_server import forked_app, forked_worker
from tests.support.apps.processes import app_environment
from tests.support.clients.booking_client import backdate_bookings, create_booking_clients
from tests.support.clients.campaigns import create_campaign
from tests.support.notifications.mail_scene import MailTrap
from tests.support.polling import eventually, poll_until

SEND = """mutation($input: SendAnnouncementInput!) { sendAnnouncement(input: $input) {
  ... on AnnouncementSent { recipientCount } ... on Refusal { code } } }"""
HOUR, MINUTE, MOMENT = timedelta(hours=1), timedelta(minutes=1), timedelta(seconds=10)


@pytest.fixture
def trap() -> MailTrap:
    """Return the mail server."""
    return MailTrap()


@pytest.fixture
def settings(trap: MailTrap, servers: EmbeddedServers) -> Iterator[dict[str, str]]:
    """Yield the settings of a site with mail that only its worker sends."""
    with catching_mail(trap) as port:
        yield {
            **app_environment(servers, f"deaths{ObjectId()}"),
            # In the others, processes of other tests have the leases.
            "SLOTLOCK_REDIS_URL": f"{servers.redis_url.rpartition('/')[0]}/2",
            "SLOTLOCK_QUEUE_WORKER": "off",
            "SLOTLOCK_SMTP_URL": f"smtp://127.0.0.1:{port}",
            "SLOTLOCK_MAIL_FROM": "School <noreply@school.test>",
        }


@pytest.fixture
async def database(settings: dict[str, str]) -> AsyncIterator[Database]:
    """Yield the database of the site."""
    async with open_database(settings["SLOTLOCK_MONGO_URL"]) as database:
        yield database


async def until_scheduled(database: Database, after: datetime) -> None:
    """Wait until a worker has inserted what is due."""

    async def is_done() -> bool:
        done = {"_id": "schedule", "at": {"$gt": after}}
        return await database["outbox_checkpoints"].find_one(done) is not None

    await eventually(is_done, "a worker has inserted what is due")


async def counts(database: Database) -> Counter[str]:
    """Return the numbers of entries by kind and state."""
    return Counter([f"{each['kind']} {each['state']}" async for each in database["outbox"].find()])


@pytest.mark.parametrize("is_guarded", [True, False])
async def test_a_worker_that_is_killed_and_started_again_reminds_once(
    settings: dict[str, str],
    database: Database,
    trap: MailTrap,
    http: httpx.AsyncClient,
    tmp_path: Path,
    is_guarded: bool,
) -> None:
    """With an id of its own for each reminder, the second worker sends another: the control."""
    now = datetime.now(UTC)
    start, opens_at = now + 10 * MINUTE - MOMENT, now + HOUR - MOMENT
    with forked_app(settings, tmp_path / "app") as app:
        (member,), organizer = create_booking_clients(http, 1, app)
        campaign_id = await create_campaign(organizer, reminderMinutes=10)
        times = {"startTime": start.isoformat(), "endTime": (start + HOUR).isoformat()}
        slot_id = await organizer.add_slot(campaignId=campaign_id, title="Yoga", **times)
        assert (await member.book_slot(slot_id))["__typename"] == "Booked"
        backdate_bookings(settings["SLOTLOCK_MONGO_URL"], slot_id, 5)
        times = {"opensAt": opens_at.isoformat(), "closesAt": (opens_at + HOUR).isoformat()}
        await create_campaign(organizer, name="Week", openingMailHours=1, **times)
    variant = {**settings, "VARIANT_WITHOUT_GUARDS": "" if is_guarded else "reminder-ids"}
    with forked_worker(variant, tmp_path / "first") as worker:
        await eventually(
            lambda: {"Reminder: Yoga", "Booking opens soon: Week"} <= set(trap.subjects), "mails"
        )
        worker.kill()
    restarted_at = datetime.now(UTC)
    with forked_worker(variant, tmp_path / "second"):
        await until_scheduled(database, restarted_at)
    reminders = await database["outbox"].count_documents({"kind": "reminder"})
    assert reminders == (1 if is_guarded else 2)
    assert trap.subjects.count("Reminder: Yoga") <= reminders
    recipients = [str(m["To"]) for m in trap.messages if "Week" in m["Subject"]]
    assert len(set(recipients)) == len(recipients)


@pytest.mark.parametrize("is_guarded", [True, False])
async def test_a_worker_finishes_an_announcement_whose_request_was_killed(
    settings: dict[str, str],
    database: Database,
    trap: MailTrap,
    http: httpx.AsyncClient,
    tmp_path: Path,
    is_guarded: bool,
) -> None:
    """Without that, some of the users get nothing: the control."""
    dying = {**settings, "VARIANT_WITHOUT_GUARDS": "announcements-kill"}
    with forked_app(dying, tmp_path / "app") as app:
        members, organizer = create_booking_clients(http, 3, app)
        slot_id = await organizer.add_slot(capacity=3)
        for member in members:
            await member.book_slot(slot_id)
        message = {"subject": "Pool", "text": "Towels", "idempotencyKey": "1", "slotId": slot_id}
        with pytest.raises(httpx.TransportError):
            await organizer.execute(SEND, input=message)
    earlier = {"$set": {"at": datetime.now(UTC) - 2 * MINUTE}}
    assert (await database["announcements"].update_one({}, earlier)).matched_count == 1
    assert await counts(database) == {"announcement queued": 1}
    variant = {
        **settings,
        "VARIANT_WITHOUT_GUARDS": "" if is_guarded else "unfinished-announcements",
    }
    started_at = datetime.now(UTC)
    count = 3 if is_guarded else 1
    with forked_worker(variant, tmp_path / "worker"):
        await until_scheduled(database, started_at)
        await poll_until(
            partial(counts, database), {"announcement sent": count}.__eq__, "all mails"
        )
        # The worker writes its note after the mails, which may be sent by then.
        note = {"action": "announcement_sent"}
        await poll_until(
            partial(database["audit_notes"].count_documents, note),
            int(is_guarded).__eq__,
            "the note of the worker that finished it",
        )
    assert Counter(str(m["To"]) for m in trap.messages).most_common(1)[0][1] == 1
    assert trap.subjects == ["Pool"] * count
