"""Stores webhooks, and what became of their messages in the outbox.

    webhooks: {_id, url, events: [str], campaign?, createdBy, createdAt, enabledAt,
               secrets: [{text, expiresAt, keyId?}], disabledAt?, disabledReason?, failingSince?,
               requestHash?}
    outbox:   {..., data: {webhook, body}, attemptedAt?, responseStatus?, durationMs?}

The secrets are stored as they are: the sender signs with them.
"""

import logging
from collections.abc import Mapping
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

from bson import ObjectId
from pymongo import ReturnDocument

from slotlock.domain.audit.audit_notes import AuditNote
from slotlock.domain.campaigns.terms import CampaignId
from slotlock.domain.notifications.outbox import OutboxState
from slotlock.domain.notifications.webhooks import (
    Webhook,
    WebhookDelivery,
    WebhookEvent,
    WebhookId,
    WebhookSecret,
)
from slotlock.domain.shared.pagination import Page, Position
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.mongo.client import Database, Document
from slotlock.infrastructure.mongo.indexes.index import indexes_of
from slotlock.infrastructure.mongo.outbox.outbox_repository import (
    NEWEST_FIRST,
    READ_ERRORS,
    read_first,
    to_outbox_entry,
)
from slotlock.infrastructure.mongo.transactions import (
    change_with_note,
    insert_unless_taken,
)
from slotlock.infrastructure.tasks import Signal

log = logging.getLogger("slotlock.outbox")

Value = TypeVar("Value")

PARTIAL_WEBHOOK = {"partialFilterExpression": {"data.webhook": {"$exists": True}}}
DELIVERY_INDEXES = indexes_of(
    "outbox", {"webhook": ([("data.webhook", 1), *NEWEST_FIRST], PARTIAL_WEBHOOK)}
)


class WebhookRepository:
    """Stores webhooks and the responses that they gave."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._webhooks = database["webhooks"]
        self._outbox = database["outbox"]
        # Sent when this process inserts or updates one: its reader learns of the first at once.
        self.changed = Signal()
        # The ids of webhooks that cannot be read, which a reader asks for several times a second.
        self._unreadable = set[object]()

    async def insert(self, webhook: Webhook, note: AuditNote) -> bool:
        """Insert a new webhook with a note. Return False if its id is there already."""
        document = _to_document(webhook)
        is_new = await insert_unless_taken(self._database, "webhooks", document, note)
        if is_new:
            self.changed.send()
        return is_new

    async def update(self, before: Webhook, after: Webhook, note: AuditNote) -> bool:
        """Store what changed of a webhook, with a note.

        Return False if it has other secrets by now, or was deleted.
        """
        old, new = _to_document(before), _to_document(after)
        change: Document = {
            "$set": {name: value for name, value in new.items() if old.get(name) != value},
            "$unset": dict.fromkeys(old.keys() - new.keys(), ""),
        }
        query = {"_id": old["_id"], "secrets": old["secrets"]}
        update = partial(self._webhooks.find_one_and_update, query, change, {"_id": 1})
        updated = await change_with_note(self._database, update, note)
        self.changed.send()
        return updated

    async def delete(self, webhook_id: WebhookId, note: AuditNote) -> bool:
        """Delete a webhook with a note. Return False if there is no such webhook."""
        delete = partial(self._webhooks.find_one_and_delete, {"_id": ObjectId(webhook_id)})
        return await change_with_note(self._database, delete, note)

    async def find(self, webhook_id: WebhookId) -> Webhook | None:
        """Return a webhook, if it exists."""
        found = await self._webhooks.find_one({"_id": ObjectId(webhook_id)})
        return to_webhook(found) if found else None

    async def find_all(self, *, enabled_only: bool = False) -> list[Webhook]:
        """Return all webhooks, or those that are not disabled, the oldest first.

        One that cannot be read holds up no other, and is logged once.
        """
        query: Document = {"disabledAt": None} if enabled_only else {}
        webhooks = list[Webhook]()
        async for document in self._webhooks.find(query, sort=[("_id", 1)]):
            try:
                webhooks.append(to_webhook(document))
            except READ_ERRORS as error:
                if document["_id"] not in self._unreadable:
                    self._unreadable.add(document["_id"])
                    log.warning("could not read webhook %s: %r", document["_id"], error)
        return sorted(webhooks, key=lambda webhook: webhook.created_at)

    async def record_response(
        self, entry_id: str, at: datetime, status: int | None, duration_ms: int
    ) -> None:
        """Record the latest attempt to deliver an entry; without a status, it had no response."""
        change: Document = {"$set": {"attemptedAt": at, "durationMs": duration_ms}}
        if status is None:
            change["$unset"] = {"responseStatus": ""}
        else:
            change["$set"]["responseStatus"] = status
        await self._outbox.update_one({"_id": entry_id}, change)

    async def record_success(self, webhook_id: WebhookId) -> None:
        """Record that a webhook works again."""
        await self._webhooks.update_one(
            {"_id": ObjectId(webhook_id)}, {"$unset": {"failingSince": ""}}
        )

    async def record_failure(self, webhook_id: WebhookId, now: datetime) -> datetime:
        """Record that a webhook failed. Return since when it has failed."""
        found = await self._webhooks.find_one_and_update(
            {"_id": ObjectId(webhook_id)},
            [{"$set": {"failingSince": {"$ifNull": ["$failingSince", now]}}}],
            return_document=ReturnDocument.AFTER,
        )
        return found["failingSince"] if found else now

    async def disable(self, webhook_id: WebhookId, reason: str, now: datetime) -> bool:
        """Disable a webhook. Return False if it is disabled already."""
        done = await self._webhooks.update_one(
            {"_id": ObjectId(webhook_id), "disabledAt": None},
            {"$set": {"disabledAt": now, "disabledReason": reason}},
        )
        return bool(done.modified_count)

    async def page_deliveries(
        self, webhook_id: WebhookId, first: int, after: Position | None
    ) -> Page[WebhookDelivery]:
        """Return the next deliveries of a webhook, the newest first."""
        query: Document = {"data.webhook": webhook_id}
        if after is not None:
            same_time = {"at": after.start, "_id": {"$lt": after.id}}
            query["$or"] = [{"at": {"$lt": after.start}}, same_time]
        found = self._outbox.find(query, sort=NEWEST_FIRST, batch_size=first + 1)
        deliveries = await read_first(found, _to_delivery, first + 1)
        return Page.of(deliveries, first)

    async def queue_again(self, entry_id: str, now: datetime) -> WebhookDelivery | None:
        """Send an entry now, whatever became of it, unless it is being sent. Return it."""
        await self._outbox.update_one(
            {"_id": entry_id, "state": {"$ne": OutboxState.SENDING.value}},
            {
                "$set": {"state": OutboxState.QUEUED.value, "dueAt": now, "attempts": 0},
                "$unset": {"doneAt": ""},
            },
        )
        found = await self._outbox.find_one({"_id": entry_id})
        return _to_delivery(found) if found else None


def _to_document(webhook: Webhook) -> Document:
    optional: Document = {
        "campaign": webhook.campaign_id and ObjectId(webhook.campaign_id),
        "disabledAt": webhook.disabled_at,
        "disabledReason": webhook.disabled_reason,
        "failingSince": webhook.failing_since,
        "requestHash": webhook.request_hash,
    }
    return {
        "_id": ObjectId(webhook.id),
        "url": webhook.url,
        "events": [event.value for event in webhook.events],
        "createdBy": ObjectId(webhook.created_by),
        "createdAt": webhook.created_at,
        "enabledAt": webhook.enabled_at,
        "secrets": [
            {
                "text": each.text,
                "expiresAt": each.expires_at,
                **({"keyId": each.key_id} if each.key_id else {}),
            }
            for each in webhook.secrets
        ],
        **{name: value for name, value in optional.items() if value is not None},
    }


def to_webhook(document: Mapping[str, Any]) -> Webhook:
    """Return the webhook of a document. Raises: READ_ERRORS."""
    find, known = document.get, {event.value for event in WebhookEvent}
    campaign = _optional(ObjectId, find("campaign"))
    return Webhook(
        WebhookId(str(document["_id"])),
        _require(str, document["url"]),
        # An event of a newer version is left to its processes.
        tuple(WebhookEvent(event) for event in document["events"] if event in known),
        CampaignId(str(campaign)) if campaign else None,
        UserId(str(_require(ObjectId, document["createdBy"]))),
        _require(datetime, document["createdAt"]),
        _require(datetime, document["enabledAt"]),
        tuple(
            WebhookSecret(
                _require(str, each["text"]),
                _optional(datetime, each["expiresAt"]),
                each.get("keyId"),
            )
            for each in document["secrets"]
        ),
        _optional(datetime, find("disabledAt")),
        _optional(str, find("disabledReason")),
        _optional(datetime, find("failingSince")),
        find("requestHash"),
    )


def _require(type_: type[Value], value: object) -> Value:
    """Return a value of this type: others fail where it is shown. Raises: TypeError."""
    if not isinstance(value, type_):
        raise TypeError(f"{value!r} is no {type_.__name__}")
    return value


def _optional(type_: type[Value], value: object) -> Value | None:
    return None if value is None else _require(type_, value)


def _to_delivery(document: Mapping[str, Any]) -> WebhookDelivery:
    find = document.get
    return WebhookDelivery(
        to_outbox_entry(document), find("attemptedAt"), find("responseStatus"), find("durationMs")
    )
