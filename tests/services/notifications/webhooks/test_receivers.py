"""A receiver that hangs or fails delays the messages of no other one."""

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from aiohttp import web
from bson import ObjectId

from slotlock.domain.notifications.outbox import Channel, OutboxState
from slotlock.domain.notifications.webhooks import Webhook, WebhookNotFound
from slotlock.domain.shared.validation import InvalidInput
from slotlock.infrastructure.mongo.client import Document
from slotlock.infrastructure.mongo.outbox.outbox_repository import UNREADABLE_DELAY, OutboxFilter
from slotlock.infrastructure.webhooks import webhook_client
from slotlock.services.notifications import outbox_sender, webhook_admin, webhook_sender
from slotlock.services.notifications.outbox_retry import retry_entry
from slotlock.services.notifications.outbox_sender import CONCURRENCY, OutboxSender, sending
from slotlock.services.notifications.webhook_sender import (
    FAILURE_PAUSE,
    MAX_FAILURE_PAUSE,
    OWN_PLACES,
    SHARED_PLACES,
)
from tests.support.notifications.webhook_scene import Receiver, WebhookScene, open_receiver
from tests.support.polling import eventually

HANGING_COUNT = 20
BACKLOG = 10
MOMENT = timedelta(milliseconds=1)


@pytest.fixture
async def hanging(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Receiver]:
    """Yield a receiver that responds to nothing until the test is over, however long it takes."""
    monkeypatch.setattr(webhook_client, "TIMEOUT_S", 600.0)
    monkeypatch.setattr(webhook_sender, "PROMPT_MS", 600_000)
    async with open_receiver() as receiver:
        receiver.is_responsive.clear()
        yield receiver
        receiver.is_responsive.set()


async def queue_for_hanging(hooks: WebhookScene, hanging: Receiver) -> list[Webhook]:
    """Create webhooks of the hanging receiver, for each of which messages are due."""
    found = []
    for _ in range(HANGING_COUNT):
        webhook, _ = await hooks.create(receiver=hanging)
        await hooks.queue(webhook, BACKLOG)
        found.append(webhook)
    return found


async def test_all_messages_of_a_receiver_arrive_while_twenty_others_hang(
    hooks: WebhookScene, hanging: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What waits for a place leaves as soon as there is one.
    monkeypatch.setattr(outbox_sender, "IDLE_POLL_S", (3600, 3600))
    others = await queue_for_hanging(hooks, hanging)
    webhook, _ = await hooks.create()
    await hooks.queue(webhook, 100)
    async with sending(hooks.sender):
        await eventually(
            lambda: len(hooks.receiver.messages) == 100, "the receiver has all of its messages"
        )
        await eventually(
            lambda: len(hanging.messages) == HANGING_COUNT * OWN_PLACES, "all of the others hang"
        )
        # What waits for them lies in the outbox as it was inserted.
        attempted = [await hooks.count_attempted(each) for each in others]
        assert attempted == [OWN_PLACES] * HANGING_COUNT
        hanging.is_responsive.set()
        await eventually(
            lambda: len(hanging.messages) == HANGING_COUNT * BACKLOG,
            "the others have theirs as soon as they respond",
        )


async def test_with_common_places_the_receivers_that_hang_take_all(
    hooks: WebhookScene, hanging: Receiver
) -> None:
    """The control of the test above: the mails' way of sending, for webhooks."""
    await queue_for_hanging(hooks, hanging)
    webhook, _ = await hooks.create()
    await hooks.queue(webhook, 1)
    sender = OutboxSender(hooks.site.services, Channel.WEBHOOK, hooks.sender.deliver)
    async with sending(sender):
        await eventually(lambda: len(hanging.messages) == CONCURRENCY, "no place is left")
        assert await hooks.count_attempted(webhook) == 0
        hanging.is_responsive.set()


async def test_a_receiver_that_worked_and_then_hangs_leaves_each_other_its_places(
    hooks: WebhookScene, hanging: Receiver
) -> None:
    webhook, _ = await hooks.create(receiver=hanging)
    other, _ = await hooks.create()
    hanging.is_responsive.set()
    await hooks.ping(webhook)
    hanging.is_responsive.clear()
    await hooks.queue(webhook, 2 * SHARED_PLACES)
    async with sending(hooks.sender):
        all_places = 1 + OWN_PLACES + SHARED_PLACES
        await eventually(lambda: len(hanging.messages) == all_places, "it takes the shared places")
        await hooks.queue(other, BACKLOG)
        await eventually(lambda: len(hooks.receiver.messages) == BACKLOG, "the other has its own")
        assert len(hanging.messages) == all_places
        hanging.is_responsive.set()
        await eventually(lambda: len(hanging.messages) == 1 + 2 * SHARED_PLACES, "the rest follows")


@pytest.mark.parametrize(
    ("status", "prompt_ms"), [(204, 600_000), (500, 600_000), (204, -1)], ids=["", "500", "slow"]
)
async def test_only_a_receiver_whose_latest_response_was_a_prompt_success_takes_shared_places(
    status: int,
    prompt_ms: int,
    hooks: WebhookScene,
    hanging: Receiver,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(webhook_sender, "PROMPT_MS", prompt_ms)
    is_prompt_success = status == 204 and prompt_ms > 0
    webhook, _ = await hooks.create(receiver=hanging)
    hanging.is_responsive.set()
    await hooks.ping(webhook)
    hanging.respond = lambda: web.Response(status=status)
    await hooks.ping(webhook)
    hanging.is_responsive.clear()
    await hooks.queue(webhook, SHARED_PLACES)
    begun = await hooks.sender.send_due() + await hooks.sender.send_due()
    assert begun == (SHARED_PLACES if is_prompt_success else OWN_PLACES)
    hanging.is_responsive.set()
    await hooks.sender.finish()


async def test_receivers_share_the_common_places_evenly(
    hooks: WebhookScene, hanging: Receiver
) -> None:
    both = [(await hooks.create(receiver=hanging))[0] for _ in range(2)]
    hanging.is_responsive.set()
    for webhook in both:
        await hooks.ping(webhook)
    hanging.is_responsive.clear()
    for webhook in both:
        await hooks.queue(webhook, SHARED_PLACES)
    await hooks.sender.send_due()
    found = [await hooks.count_attempted(webhook) for webhook in both]
    assert found == [1 + OWN_PLACES + SHARED_PLACES // 2] * 2
    hanging.is_responsive.set()
    await hooks.sender.finish()


def assert_few_are_sent(counts: list[int]) -> None:
    """Check the messages that a receiver that fails has at once, before its pause ends, and then.

    The first attempts may fail because of their messages; those that begin later show that the
    receiver fails. An attempt may begin after another one of the same round failed.
    """
    first = counts[0]
    assert first in (OWN_PLACES, 2 * OWN_PLACES)
    assert counts == [first, first, first + OWN_PLACES]


@pytest.mark.parametrize("is_guarded", [True, False])
async def test_a_receiver_that_fails_at_once_gets_few_of_many_due_messages(
    hooks: WebhookScene, is_guarded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a pause, all of them are sent one after the other: the control."""
    if not is_guarded:
        monkeypatch.setattr(webhook_sender, "FAILURE_PAUSE", timedelta())
    webhook, _ = await hooks.create()
    hooks.receiver.respond = lambda: web.Response(status=500)
    await hooks.queue(webhook, BACKLOG)
    counts = []
    for after in (timedelta(), FAILURE_PAUSE - MOMENT, MOMENT):
        await hooks.send(after)
        counts.append(len(hooks.receiver.messages))
    if not is_guarded:
        assert counts[0] == BACKLOG
        return
    assert_few_are_sent(counts)
    hooks.receiver.respond = lambda: web.Response(status=204)
    await hooks.send(FAILURE_PAUSE)
    assert len(hooks.receiver.messages) == BACKLOG + counts[-1]


async def test_a_message_that_is_refused_alone_delays_no_other(hooks: WebhookScene) -> None:
    webhook, _ = await hooks.create()
    refusals = [400]
    hooks.receiver.respond = lambda: web.Response(status=refusals.pop() if refusals else 204)
    await hooks.queue(webhook, BACKLOG)
    await hooks.send()
    assert len(hooks.receiver.messages) == BACKLOG


async def test_a_receiver_that_asks_for_a_pause_gets_one_of_a_minute_at_most(
    hooks: WebhookScene,
) -> None:
    webhook, _ = await hooks.create()
    hooks.receiver.respond = lambda: web.Response(status=429, headers={"retry-after": "86400"})
    await hooks.queue(webhook, BACKLOG)
    counts = []
    for after in (timedelta(), MAX_FAILURE_PAUSE - MOMENT, MOMENT):
        await hooks.send(after)
        counts.append(len(hooks.receiver.messages))
    assert_few_are_sent(counts)


async def test_a_webhook_that_cannot_be_read_holds_up_no_other(
    hooks: WebhookScene, caplog: pytest.LogCaptureFixture
) -> None:
    damages: list[Document] = [
        {"$unset": {"secrets": ""}},
        {"$set": {"secrets": [{"text": 7, "expiresAt": None}]}},
        *({"$set": {name: "today"}} for name in ("enabledAt", "failingSince", "createdBy")),
        {"$set": {"url": 7}},
        {"$set": {"campaign": "7"}},
    ]
    damaged = [(await hooks.create())[0] for _ in damages]
    webhook, _ = await hooks.create()
    for each, damage in zip(damaged, damages, strict=True):
        await hooks.site.database["webhooks"].update_one({"_id": ObjectId(each.id)}, damage)
    slot_id = await hooks.site.insert_slot()
    async with hooks.reading():
        await hooks.site.book(slot_id, 0)
        await hooks.until("booking.confirmed")
    listed = await webhook_admin.list_all(hooks.site.services, hooks.admin)
    assert [each.id for each in listed] == [webhook.id]
    lines = [each.message for each in caplog.records if each.name == "slotlock.outbox"]
    said = [line.partition(":")[0] for line in lines]  # the receiver logs its requests as well
    assert said == [f"could not read webhook {each.id}" for each in damaged]
    for each in damaged:
        outcome = await webhook_admin.delete(hooks.site.services, each.id, hooks.admin)
        assert outcome == WebhookNotFound()


async def test_lists_leave_out_what_cannot_be_read(
    hooks: WebhookScene, caplog: pytest.LogCaptureFixture
) -> None:
    webhook, _ = await hooks.create()
    await hooks.queue(webhook, BACKLOG)
    documents, outbox = hooks.site.database["outbox"], hooks.site.services.outbox
    ids = [each["_id"] async for each in documents.find({}, sort=[("at", -1), ("_id", -1)])]
    damage = {"$set": {"state": "of a newer release"}}
    await documents.update_many({"_id": {"$in": ids[:4]}}, damage)
    page = await outbox.page(OutboxFilter(), 2)
    assert ([each.id for each in page.items], page.has_more) == (ids[4:6], True)
    deliveries = await webhook_admin.list_deliveries(hooks.site.services, webhook.id, 100, None)
    assert [each.entry.id for each in deliveries.items] == ids[4:]
    assert await outbox.find(ids[0]) is None
    refused = await retry_entry(outbox, hooks.site.services.users, ids[0], hooks.site.clock.now)
    assert isinstance(refused, InvalidInput)
    assert "of a newer release" in caplog.text


async def test_an_entry_that_cannot_be_read_holds_up_no_other(
    hooks: WebhookScene, caplog: pytest.LogCaptureFixture
) -> None:
    webhook, _ = await hooks.create()
    await hooks.queue(webhook, 30)
    outbox = hooks.site.database["outbox"]
    ids = [each["_id"] async for each in outbox.find({}, sort=[("dueAt", 1)], limit=25)]
    await outbox.update_many({"_id": {"$in": ids}}, {"$set": {"state": "of a newer release"}})
    await hooks.send()
    await hooks.send()
    assert len(hooks.receiver.messages) == 5
    logged = [each for each in caplog.messages if each.startswith("could not read ")]
    assert sorted(map(logged.count, logged)) == [1] * 25, logged
    damaged = await outbox.find({"_id": {"$in": ids}}).to_list()
    assert {each["state"] for each in damaged} == {"of a newer release"}
    assert all("of a newer release" in each["note"] for each in damaged)
    # A process that understands them sends them.
    await outbox.update_many({"_id": {"$in": ids}}, {"$set": {"state": OutboxState.QUEUED.value}})
    await hooks.send(2 * UNREADABLE_DELAY)
    assert len(hooks.receiver.messages) == 30
