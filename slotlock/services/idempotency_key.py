"""Idempotency keys of users, each with the request that it was sent with."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import datetime

import orjson

from slotlock.domain.admission.tickets import RequestLost, TicketRef
from slotlock.domain.booking.decision import BookingChangeRequest
from slotlock.domain.booking.slot import SlotSettings
from slotlock.domain.campaigns.campaign import CampaignDraft
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.slots.slot_patch import SlotDraft
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.mongo.idempotency.records import IdempotencyRecord
from slotlock.infrastructure.redis.admission.admission_queue import REQUEST_HASH_CHARS

# Tickets and the admission queue carry so much of the key's hash: a user has few keys.
KEY_HASH_CHARS = 32


@value_object
class IdempotencyKey:
    """A user's idempotency key together with a hash of the request that it was sent with.

    `key` is empty where only its hash is known. `requested_at` is set for a request that was
    queued.
    """

    user_id: UserId
    key: str
    key_hash: str
    request_hash: str
    # The id of the record that holds the outcome.
    record_id: str
    requested_at: datetime | None = None

    @classmethod
    def for_request(cls, user_id: UserId, key: str, *request_parts: object) -> "IdempotencyKey":
        """Return the key of a request. How long the caller waits is no part of the request."""
        key_hash = _hash([key])[:KEY_HASH_CHARS]
        return cls(user_id, key, key_hash, _hash(request_parts), record_id(user_id, key_hash))

    @classmethod
    def for_change(
        cls, request: BookingChangeRequest, *request_parts: object
    ) -> "IdempotencyKey | None":
        """Return the key of a change of a booking, if its caller sent one."""
        if not request.key:
            return None
        user_id, booking_id = request.caller.user_id, request.booking_id
        return cls.for_request(user_id, request.key, *request_parts, booking_id)

    @classmethod
    def for_creation(
        cls, user_id: UserId, key: str | None, mutation: str, *request_parts: object
    ) -> "IdempotencyKey | None":
        """Return the key of a mutation that creates or removes something, if there is one.

        Each of these mutations has keys of its own.
        """
        if key is None:
            return None
        key_hash = _hash([mutation, key])[:KEY_HASH_CHARS]
        id_ = record_id(user_id, key_hash)
        return cls(user_id, key, key_hash, _hash(request_parts), id_)

    @property
    def short_request_hash(self) -> str:
        """As much of the request hash as tickets and the admission queue carry."""
        return self.request_hash[:REQUEST_HASH_CHARS]

    def matches(self, record: IdempotencyRecord) -> bool:
        """Return whether the record belongs to the same request."""
        return self.request_hash.startswith(record.request_hash)

    def lost_record(self, now: datetime) -> IdempotencyRecord:
        """Return the record that marks this request as lost."""
        return lost_record(self.record_id, self.short_request_hash, now)


def lost_record(record_id: str, short_request_hash: str, now: datetime) -> IdempotencyRecord:
    """Return the record that marks a request as lost.

    While it exists, nothing is booked under its key, until the same request is sent again.
    """
    return IdempotencyRecord(record_id, short_request_hash, RequestLost(), now)


def cancelled_record(ref: TicketRef, now: datetime) -> IdempotencyRecord:
    """Return the record that marks a request as cancelled. Nothing is booked under its key."""
    id_, outcome = record_id(ref.requested_by, ref.key_hash), RequestLost(was_cancelled=True)
    return IdempotencyRecord(id_, ref.request_hash, outcome, now, ref.requested_at)


def record_id(user_id: UserId, key_hash: str) -> str:
    """Return the id of the record for this key of a user."""
    return _hash([user_id, key_hash])


def fields_of_draft(draft: SlotDraft | CampaignDraft) -> Mapping[str, object]:
    """Return the fields of a draft that differ from their defaults, for the hash of a request.

    A version with more fields therefore hashes a repeated request alike.
    """
    settings = _changed_fields(draft.settings) if isinstance(draft, SlotDraft) else {}
    return {**_changed_fields(draft), **({"settings": settings} if settings else {})}


def _changed_fields(of: SlotDraft | SlotSettings | CampaignDraft) -> Mapping[str, object]:
    values = {field.name: (getattr(of, field.name), field.default) for field in fields(of)}
    return {name: value for name, (value, default) in values.items() if value != default}


def _hash(values: Sequence[object]) -> str:
    return hashlib.sha256(orjson.dumps(list(values))).hexdigest()
