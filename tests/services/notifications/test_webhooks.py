"""Each event reaches the webhooks that want it: signed, again after a failure, once after all."""

import asyncio
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import ClassVar

import pytest
from aiohttp import web
from standardwebhooks import webhooks

from slotlock.api.backend import open_backend, run_workers
from slotlock.api.settings.fields import SecretStr
from slotlock.api.settings.settings import DECLARATIONS, Settings
from slotlock.cli.commands.declared import COMMANDS
from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.booking.booking import BookingId, SlotId
from slotlock.domain.booking.decision import BookingChangeRequest
from slotlock.domain.booking.rules import booking_changes
from slotlock.domain.booking.slot import SlotStatus
from slotlock.domain.campaigns.campaign import CampaignDraft, CampaignPatch, CampaignSaved
from slotlock.domain.notifications.mail_kinds import TEST, direct_mail
from slotlock.domain.notifications.outbox import (
    LEASE,
    RETRY_DELAYS,
    Channel,
    OutboxState,
)
from slotlock.domain.notifications.webhooks import (
    DISABLED_AFTER,
    MAX_SECRETS,
    ROTATION_PERIOD,
    Webhook,
    WebhookCreated,
    WebhookEvent,
    WebhookNotFound,
    WebhookQueued,
    WebhookSaved,
)
from slotlock.domain.shared.validation import InvalidInput
from slotlock.domain.users.user import Caller, Role
from slotlock.infrastructure.mongo.outbox.outbox_repository import OutboxRepository
from slotlock.infrastructure.mongo.outbox.webhook_repository import WebhookRepository
from slotlock.infrastructure.mongo.users.privacy import Erasure
from slotlock.services import teams
from slotlock.services.booking import waitlist
from slotlock.services.booking.booking_changes import change_booking
from slotlock.services.booking.move import move
from slotlock.services.campaigns import campaigns
from slotlock.services.container import utc_now
from slotlock.services.erasure import RECENT_REQUESTS, finish_erasure, finish_erasures
from slotlock.services.notifications import webhook_admin
from slotlock.services.notifications.webhook_sender import FAILURE_PAUSE
from slotlock.services.slots import editing
from tests.support.domain.builders import build_patch
from tests.support.notifications.webhook_scene import ReceivedMessage, WebhookScene
from tests.support.polling import eventually

EXAMPLE = Path(__file__).parents[3] / "examples" / "python"
HOUR = timedelta(hours=1)
BOOKED_ONLY = (WebhookEvent.BOOKING_CONFIRMED,)


async def test_a_booking_is_a_signed_message_with_ids_and_a_version(hooks: WebhookScene) -> None:
    webhook, _ = await hooks.create(BOOKED_ONLY)
    site = hooks.site
    async with hooks.reading():
        slot_id = await site.insert_slot()
        [booking_id] = await site.book(slot_id, 0)
        await site.until_entries("booking.confirmed")
    await hooks.send()
    [message] = hooks.receiver.messages
    assert message.headers["content-type"] == "application/json"
    assert message.headers["webhook-id"] == f"booking_confirmed:{booking_id}:0:{webhook.id}"
    assert message.content == {
        "type": "booking.confirmed",
        "timestamp": "2040-01-02T08:00:01.000Z",
        "data": {
            "bookingId": f"booking_{slot_id}{booking_id}",
            "slotId": f"slot_{slot_id}",
            "userId": f"user_{site.members[0].user_id}",
            "version": 1,
        },
    }


async def test_a_receiver_verifies_a_message_and_no_other_one(hooks: WebhookScene) -> None:
    webhook, secret = await hooks.create()
    hooks.site.clock.now = utc_now()
    await hooks.ping(webhook)
    [message] = hooks.receiver.messages
    verify(message, secret)
    for forged in (
        replace(message, body=message.body + b" "),
        replace(message, headers={**message.headers, "webhook-id": "another"}),
    ):
        with pytest.raises(webhooks.WebhookVerificationError):
            verify(forged, secret)


async def test_a_secret_signs_for_a_day_after_its_replacement_however_often_that_happens(
    hooks: WebhookScene,
) -> None:
    webhook, first = await hooks.create()
    found = [first]

    async def signing() -> list[int]:
        await hooks.ping(webhook)
        message = hooks.receiver.messages[-1]
        return [number for number, secret in enumerate(found) if is_signed(message, secret)]

    while len(found) < MAX_SECRETS:
        hooks.site.clock.advance(HOUR)
        found.append(await rotate(hooks, webhook))
    assert await signing() == [*range(MAX_SECRETS)]
    # One more would end a secret that a receiver may use.
    refused = await webhook_admin.rotate_secret(hooks.site.services, webhook.id, hooks.admin)
    assert isinstance(refused, InvalidInput)
    hooks.site.clock.advance(ROTATION_PERIOD - (MAX_SECRETS - 2) * HOUR)
    assert await signing() == [*range(1, MAX_SECRETS)]
    found.append(await rotate(hooks, webhook))
    hooks.site.clock.advance(HOUR)
    assert await signing() == [*range(2, MAX_SECRETS + 1)]
    hooks.site.clock.advance(ROTATION_PERIOD)
    assert await signing() == [MAX_SECRETS]
    assert len(hooks.receiver.messages[-1].headers["webhook-signature"].split()) == 1


async def test_all_that_happens_to_bookings_and_slots_is_a_message(hooks: WebhookScene) -> None:
    site = hooks.site
    services, organizer = site.services, site.organizer
    await hooks.create()
    async with hooks.reading():
        slot_id, other_id = await site.insert_slot(1), await site.insert_slot(2)
        [first] = await site.book(slot_id, 0)
        await waitlist.join(services, slot_id, site.members[1].user_id, 0)
        await waitlist.join(services, slot_id, site.members[2].user_id, 0)
        await hooks.until("booking.confirmed", "slot.full", "waitlist.joined")
        cancelled = request(slot_id, first, site.members[0])
        await change_booking(services, booking_changes.cancel, cancelled)
        await hooks.until("booking.cancelled", "booking.promoted")
        [held] = await site.book(other_id, 0, hold=True)
        await hooks.until("booking.held")
        confirmed = request(other_id, held, site.members[0])
        await change_booking(services, booking_changes.confirm, confirmed)
        await hooks.until("booking.confirmed")
        third = await site.insert_slot(2)
        await move(services, request(other_id, held, organizer), third)
        await hooks.until("booking.moved")
        await editing.edit(services, other_id, build_patch(title="Judo"), organizer.user_id)
        await hooks.until("slot.edited")
        await editing.cancel(services, slot_id, organizer.user_id)
        await hooks.until("slot.cancelled", "waitlist.left")
        draft = await site.insert_slot(1, status=SlotStatus.DRAFT)
        await editing.publish(services, draft, organizer.user_id)
        await hooks.until("slot.published")
    found = sorted(hooks.receiver.types)
    assert found == sorted(
        [
            *("booking.confirmed", "booking.confirmed", "booking.cancelled", "booking.promoted"),
            *("booking.held", "booking.moved", "booking.cancelled"),
            *("slot.full", "slot.edited", "slot.cancelled", "slot.published"),
            *("waitlist.joined", "waitlist.joined", "waitlist.left"),
        ]
    )
    by_type = {each.content["type"]: each.content["data"] for each in hooks.receiver.messages}
    assert by_type["booking.moved"]["movedFromId"] == f"booking_{other_id}{held}"
    assert by_type["waitlist.left"]["version"] == 2


async def test_campaigns_that_are_published_open_and_close_are_messages(
    hooks: WebhookScene,
) -> None:
    site = hooks.site
    now = site.clock.now
    campaign_draft = CampaignDraft("Spring", opens_at=now + HOUR, closes_at=now + 2 * HOUR)
    saved = await campaigns.create(site.services, campaign_draft, site.organizer.user_id)
    assert isinstance(saved, CampaignSaved)
    campaign_id = saved.campaign.id
    await hooks.create((WebhookEvent.CAMPAIGN_PUBLISHED,), campaign_id)
    await hooks.create((WebhookEvent.CAMPAIGN_OPENED, WebhookEvent.CAMPAIGN_CLOSED))
    async with hooks.reading():
        published = CampaignPatch(published=True)
        await campaigns.edit(site.services, campaign_id, published, site.organizer.user_id)
        await hooks.until("campaign.published")
        site.clock.advance(HOUR)
        await hooks.until("campaign.opened")
        site.clock.advance(HOUR)
        await hooks.until("campaign.closed")
    assert hooks.receiver.types == ["campaign.published", "campaign.opened", "campaign.closed"]
    versions = [message.content["data"]["version"] for message in hooks.receiver.messages]
    assert versions == sorted(versions)


async def test_new_and_erased_users_are_messages(hooks: WebhookScene) -> None:
    site = hooks.site
    await hooks.create((WebhookEvent.USER_CREATED, WebhookEvent.USER_ERASED))
    async with hooks.reading():
        site.clock.advance(timedelta(seconds=1))
        user = await site.services.users.insert(
            "New", "new@school.test", Role.MEMBER, "no password", site.clock.now
        )
        assert user is not None
        await hooks.until("user.created")
        await site.services.erasures.erase_account(user.id, site.organizer.user_id, site.clock.now)
        await hooks.until("user.erased")
    assert {each.content["data"]["userId"] for each in hooks.receiver.messages} == {
        f"user_{user.id}"
    }


async def test_an_erasure_that_dies_and_is_repeated_leaves_the_messages_about_the_user(
    hooks: WebhookScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    site, user_id = hooks.site, hooks.site.members[0].user_id
    await hooks.create((WebhookEvent.BOOKING_CANCELLED, WebhookEvent.USER_ERASED))
    async with hooks.reading():
        await site.book(await site.insert_slot(), 0)
        erasure = await site.services.erasures.erase_account(user_id, None, site.clock.now)
        assert isinstance(erasure, Erasure)
        with monkeypatch.context() as patch:
            patch.setattr(teams, "remove_user", die)
            with pytest.raises(MemoryError):
                await finish_erasure(site.services, erasure)
        await site.until_entries("booking.cancelled", "user.erased")
        await finish_erasure(site.services, erasure)
        # The worker that sends them dies, and the erasure is repeated until it is over.
        due = await site.services.outbox.find_due(Channel.WEBHOOK, site.clock.now, 10)
        await site.services.outbox.lease(due, site.clock.now)
        await finish_erasures(site.services)
    site.clock.advance(RECENT_REQUESTS + LEASE)
    await finish_erasures(site.services)
    assert await site.services.erasures.find_unfinished(10) == []
    await hooks.send()
    assert sorted(hooks.receiver.types) == ["booking.cancelled", "user.erased"]


async def test_a_webhook_gets_what_happens_while_it_is_enabled(hooks: WebhookScene) -> None:
    site = hooks.site
    slot_id = await site.insert_slot()
    await site.book(slot_id, 0)
    webhook, _ = await hooks.create(BOOKED_ONLY)
    async with hooks.reading():
        await site.book(slot_id, 1)
        await hooks.until("booking.confirmed")
        await enable(hooks, webhook, False)
        site.clock.advance(timedelta(seconds=1))
        await site.book(slot_id, 2)
        site.clock.advance(timedelta(seconds=1))
        await enable(hooks, webhook, True)
    async with hooks.reading():
        await site.book(await site.insert_slot(), 0)
        await hooks.until("booking.confirmed")
    users = [message.content["data"]["userId"] for message in hooks.receiver.messages]
    assert users == [f"user_{site.members[number].user_id}" for number in (1, 0)]


async def test_a_disabled_webhook_can_be_tried_out_and_gets_nothing_else(
    hooks: WebhookScene,
) -> None:
    webhook, _ = await hooks.create(BOOKED_ONLY)
    async with hooks.reading():
        await hooks.site.book(await hooks.site.insert_slot(), 0)
        await hooks.site.until_entries("booking.confirmed")
    await enable(hooks, webhook, False)
    await hooks.ping(webhook)
    assert hooks.receiver.types == ["ping"]


async def test_a_webhook_that_is_enabled_again_has_all_its_time_to_work(
    hooks: WebhookScene,
) -> None:
    webhook, _ = await hooks.create()
    hooks.receiver.respond = lambda: web.Response(status=500)
    for after in (timedelta(), DISABLED_AFTER):
        hooks.site.clock.advance(after)
        await hooks.ping(webhook)
    assert (await hooks.stored(webhook)).disabled_at is not None
    await enable(hooks, webhook, True)
    hooks.site.clock.advance(FAILURE_PAUSE)
    await hooks.ping(webhook)
    assert (await hooks.stored(webhook)).disabled_at is None


async def test_a_user_who_is_written_late_is_a_message(hooks: WebhookScene) -> None:
    site = hooks.site
    await hooks.create((WebhookEvent.USER_CREATED,))
    site.clock.advance(timedelta(minutes=1))

    async def has_read() -> bool:
        read = {"_id": Channel.WEBHOOK.value, "at": site.clock.now}
        return await site.database["outbox_checkpoints"].find_one(read) is not None

    async with hooks.reading():
        await eventually(has_read, "all until now was read")
        late = site.clock.now - timedelta(seconds=10)
        await site.services.users.insert(
            "Late", "late@school.test", Role.MEMBER, "no password", late
        )
        await hooks.until("user.created")


async def test_what_is_due_for_many_webhooks_is_found_page_by_page(hooks: WebhookScene) -> None:
    expected = []
    for count in (2, 2, 1):
        webhook, _ = await hooks.create()
        await hooks.queue(webhook, count)
        expected += [webhook.id] * count
    outbox, now = hooks.site.services.outbox, hooks.site.clock.now
    found = await outbox.find_due_by_webhook(now, set(), 3)
    assert sorted(entry.data["webhook"] for entry in found) == sorted(expected)
    assert len({entry.id for entry in found}) == len(expected)


async def test_no_proxy_of_the_environment_gets_a_message(
    hooks: WebhookScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    for name in ("http_proxy", "HTTP_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    webhook, _ = await hooks.create()
    await hooks.ping(webhook)
    assert hooks.receiver.types == ["ping"]


async def test_of_two_rotations_at_once_both_secrets_sign(hooks: WebhookScene) -> None:
    webhook, first = await hooks.create()
    new = await asyncio.gather(*(rotate(hooks, webhook) for _ in range(2)))
    stored = {secret.text for secret in (await hooks.stored(webhook)).secrets}
    assert stored == {first, *new}


async def test_what_is_read_again_is_no_second_message(hooks: WebhookScene) -> None:
    await hooks.create(BOOKED_ONLY)
    site = hooks.site
    slot_id = await site.insert_slot()
    await site.book(slot_id, 0, 1)
    async with hooks.reading():
        await hooks.until("booking.confirmed")
    # The checkpoint is lost, so that another reader begins anew.
    await site.database["outbox_checkpoints"].update_one({}, {"$set": {"token": None}})
    async with hooks.reading():
        await site.book(slot_id, 2)
        await hooks.until("booking.confirmed")
    assert hooks.receiver.types == ["booking.confirmed"] * 3


async def test_a_failed_message_is_sent_again_after_the_delays_with_the_same_id(
    hooks: WebhookScene,
) -> None:
    webhook, _ = await hooks.create()
    hooks.receiver.respond = lambda: web.Response(status=503)
    await hooks.ping(webhook)
    for number, delay in enumerate(RETRY_DELAYS[Channel.WEBHOOK], 1):
        await hooks.send(delay - timedelta(milliseconds=1))
        assert len(hooks.receiver.messages) == number
        await hooks.send(timedelta(milliseconds=1))
    assert len({message.headers["webhook-id"] for message in hooks.receiver.messages}) == 1
    [delivery] = await hooks.deliveries(webhook)
    assert (delivery.entry.state, delivery.entry.attempts) == (OutboxState.FAILED, 10)
    assert delivery.response_status == 503
    hooks.receiver.respond = lambda: web.Response(status=200)
    again = await webhook_admin.redeliver(hooks.site.services, delivery.entry.id, hooks.admin)
    assert isinstance(again, WebhookQueued)
    await hooks.send(FAILURE_PAUSE)
    [delivery] = await hooks.deliveries(webhook)
    assert (delivery.entry.state, delivery.response_status) == (OutboxState.SENT, 200)
    assert (await hooks.stored(webhook)).failing_since is None


@pytest.mark.parametrize(
    "response",
    [
        lambda: web.Response(status=302, headers={"location": "/hook"}),
        lambda: web.Response(status=400),
        lambda: web.Response(status=500),
    ],
)
async def test_whatever_is_no_2xx_is_a_failure_and_redirects_are_not_followed(
    response: Callable[[], web.Response], hooks: WebhookScene
) -> None:
    webhook, _ = await hooks.create()
    hooks.receiver.respond = response
    await hooks.ping(webhook)
    [delivery] = await hooks.deliveries(webhook)
    assert delivery.entry.state is OutboxState.QUEUED
    assert len(hooks.receiver.messages) == 1


async def test_retry_after_is_honored(hooks: WebhookScene) -> None:
    webhook, _ = await hooks.create()
    hooks.receiver.respond = lambda: web.Response(status=429, headers={"retry-after": "600"})
    await hooks.ping(webhook)
    await hooks.send(timedelta(seconds=599))
    assert len(hooks.receiver.messages) == 1
    await hooks.send(timedelta(seconds=1))
    assert len(hooks.receiver.messages) == 2


async def test_410_and_five_days_of_failures_disable_a_webhook_and_its_creator_gets_a_mail(
    hooks: WebhookScene,
) -> None:
    site = hooks.site
    for status, wait in ((410, timedelta()), (500, DISABLED_AFTER)):
        webhook, _ = await hooks.create()
        hooks.receiver.respond = lambda status=status: web.Response(status=status)  # type: ignore[misc]
        for after in (timedelta(), wait):
            site.clock.advance(after)
            await hooks.ping(webhook)
        found = await hooks.stored(webhook)
        assert found.disabled_at is not None
        await site.send(after=timedelta())
    assert site.trap.subjects == ["A webhook was disabled"] * 2
    assert hooks.receiver.url in str(site.trap.messages[0].get_body(["plain"]))


@pytest.mark.parametrize(
    ("repository", "step"), [(OutboxRepository, "insert"), (WebhookRepository, "disable")]
)
async def test_the_mail_about_a_webhook_is_sent_once_though_the_worker_dies_as_it_disables_it(
    repository: type, step: str, hooks: WebhookScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    webhook, _ = await hooks.create()
    hooks.receiver.respond = lambda: web.Response(status=410)
    await webhook_admin.ping(hooks.site.services, webhook.id, hooks.admin)
    with monkeypatch.context() as patch:
        patch.setattr(repository, step, die)
        await hooks.send()
    assert (await hooks.stored(webhook)).disabled_at is None
    await hooks.ping(webhook)
    assert (await hooks.stored(webhook)).disabled_at is not None
    await hooks.site.send(after=timedelta())
    assert hooks.site.trap.subjects == ["A webhook was disabled"]


async def test_organizers_manage_the_webhooks_of_campaigns_only(hooks: WebhookScene) -> None:
    site, organizer = hooks.site, hooks.site.organizer
    webhook, _ = await hooks.create(BOOKED_ONLY)
    refused = await webhook_admin.create(
        site.services, hooks.receiver.url, BOOKED_ONLY, None, organizer, allow_http=True
    )
    assert isinstance(refused, InvalidInput)
    assert await webhook_admin.list_all(site.services, organizer) == []
    pinged = await webhook_admin.ping(site.services, webhook.id, organizer)
    assert pinged == WebhookNotFound()
    await hooks.ping(webhook)
    (delivery,) = await hooks.deliveries(webhook)
    again = await webhook_admin.redeliver(site.services, delivery.entry.id, organizer)
    assert again == WebhookNotFound()
    draft = CampaignDraft("Spring", site.clock.now, site.clock.now + HOUR)
    saved = await campaigns.create(site.services, draft, organizer.user_id)
    assert isinstance(saved, CampaignSaved)
    created = await webhook_admin.create(
        site.services,
        hooks.receiver.url,
        BOOKED_ONLY,
        saved.campaign.id,
        organizer,
        allow_http=True,
    )
    assert isinstance(created, WebhookCreated)
    assert await webhook_admin.list_all(site.services, organizer) == [created.webhook]
    # Bookings of other slots are none of its business.
    async with hooks.reading():
        await site.book(await site.insert_slot(), 0)
        await site.until_entries("ping", "booking.confirmed")
    booked = [entry for entry in await site.entries() if entry.kind == "booking.confirmed"]
    assert [entry.data["webhook"] for entry in booked] == [webhook.id]


async def test_while_nothing_is_to_be_sent_the_reader_reads_nothing(hooks: WebhookScene) -> None:
    site = hooks.site
    async with hooks.reading():
        await site.book(await site.insert_slot(), 0)
        assert await site.database["outbox_checkpoints"].count_documents({}) == 0
        # A first webhook gets what happens from then on, although the reader notices it later.
        await hooks.create(BOOKED_ONLY)
        await site.book(await site.insert_slot(), 1)
        await site.until_entries("booking.confirmed")


class ReadSettings(Settings):
    """Settings that know which of them were read."""

    read: ClassVar[set[str]] = set()

    def __getattribute__(self, name: str) -> object:
        """Return a setting."""
        ReadSettings.read.add(name)
        return super().__getattribute__(name)


@pytest.mark.parametrize("has_mail", [True, False])
@pytest.mark.parametrize("has_webhook", [True, False])
async def test_a_worker_sends_mails_and_calls_webhooks_also_without_the_other(
    has_mail: bool, has_webhook: bool, hooks: WebhookScene, servers: EmbeddedServers
) -> None:
    site = hooks.site
    settings = ReadSettings(
        mongo_url=site.mongo_url,
        redis_url=site.redis_url,
        smtp_url=SecretStr(site.smtp_url) if has_mail else None,
        mail_from="noreply@school.test",
        webhook_private_addresses=True,
    )
    site.clock.now = utc_now() - timedelta(seconds=1)
    if has_webhook:
        await hooks.create(BOOKED_ONLY)
    mail = direct_mail(TEST, "a", "1", site.clock.now, recipient="a@school.test")
    kinds = ["test", *["booked"] * has_mail, *["booking.confirmed"] * has_webhook]
    async with open_backend(settings) as backend, run_workers(backend, settings):
        for channel, is_on in ((Channel.MAIL, has_mail), (Channel.WEBHOOK, has_webhook)):
            if is_on:
                await eventually(partial(site.has_checkpoint, channel), "the reader has begun")
        site.clock.now = utc_now()
        await site.services.outbox.insert([mail], site.clock.now)
        await site.book(await site.insert_slot(), 0)
        await site.until_entries(*kinds)
        await eventually(
            lambda: (
                hooks.receiver.types == ["booking.confirmed"] * has_webhook
                and site.trap.subjects == ["Test of mail"] * has_mail
            ),
            "what is due was sent",
        )
    read = ReadSettings.read & DECLARATIONS.keys()
    assert [name for name in read if not COMMANDS["worker"].reads(name)] == []


async def test_the_receiver_of_the_examples_accepts_what_is_signed_and_nothing_else(
    hooks: WebhookScene,
) -> None:
    hooks.site.clock.now = utc_now()
    webhook, secret = await hooks.create()
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "slotlock_example.webhooks",
        "0",
        cwd=EXAMPLE,
        env={**os.environ, "SLOTLOCK_WEBHOOK_SECRET": secret},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    assert process.stdout is not None
    try:
        url = (await process.stdout.readline()).decode().strip()
        await webhook_admin.update(
            hooks.site.services, webhook.id, url, None, None, hooks.admin, allow_http=True
        )
        await hooks.ping(webhook)
        assert (await process.stdout.readline()).startswith(b"ping ")
        for _ in range(2):
            await rotate(hooks, webhook)
            await hooks.ping(webhook)
        hooks.site.clock.advance(ROTATION_PERIOD)
        await hooks.ping(webhook)
    finally:
        process.kill()
        await process.wait()
    statuses = sorted(each.response_status or 0 for each in await hooks.deliveries(webhook))
    assert statuses == [204, 204, 204, 400]


async def die(*_: object) -> bool:
    """Fail as a process that is killed here."""
    raise MemoryError


def verify(message: ReceivedMessage, secret: str) -> None:
    """Verify a message as its receiver does. Raises: WebhookVerificationError."""
    webhooks.Webhook(secret).verify(message.body, message.headers)


def is_signed(message: ReceivedMessage, secret: str) -> bool:
    """Return whether a message has a signature of this secret, whatever the time."""
    id_, at = message.headers["webhook-id"], int(message.headers["webhook-timestamp"])
    signature = webhooks.Webhook(secret).sign(
        id_, datetime.fromtimestamp(at, UTC), message.body.decode()
    )
    return signature in message.headers["webhook-signature"].split()


async def rotate(hooks: WebhookScene, webhook: Webhook) -> str:
    """Return a new secret of a webhook."""
    rotated = await webhook_admin.rotate_secret(hooks.site.services, webhook.id, hooks.admin)
    assert isinstance(rotated, WebhookCreated)
    return rotated.secret


async def enable(hooks: WebhookScene, webhook: Webhook, enabled: bool) -> None:
    """Enable a webhook, or disable it."""
    saved = await webhook_admin.update(
        hooks.site.services, webhook.id, None, None, enabled, hooks.admin, allow_http=True
    )
    assert isinstance(saved, WebhookSaved)


def request(slot_id: SlotId, booking_id: BookingId, caller: Caller) -> BookingChangeRequest:
    """Return the request of a caller to change a booking."""
    return BookingChangeRequest(slot_id, booking_id, caller)
