"""One effect a key: the same key by the same person is answered the same, however often sent."""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

import orjson

from slotlock.desk.desk import Desk
from slotlock.desk.telling import as_told
from slotlock.domain.bookings import SlotId
from slotlock.domain.outcomes import Done, Written
from slotlock.domain.people import UserId
from slotlock.domain.refusals import KeyReused, Locked
from slotlock.domain.tickets import RequestLost
from slotlock.stores.answers import Answers, KeptAnswer
from slotlock.stores.queue import QUESTION_CHARS

Outcome = TypeVar("Outcome")

# Whoever sends a key again waits for the first answer, even who would not wait for a place.
KEY_WAIT_S = 5.0
RETRY_AFTER_MS = 250
# Of the hash of a key that tickets and the queue name it by; a person's keys are few.
KEY_HASH_CHARS = 32


@dataclass(frozen=True, slots=True)
class Slip:
    """A person's idempotency key with a fingerprint of what they asked for under it.

    `key` is empty where only its hash is known any more. `asked_at` is of a request that stood in
    line.
    """

    user_id: UserId
    key: str
    key_hash: str
    fingerprint: str
    asked_at: datetime | None = None

    @classmethod
    def of(cls, user_id: UserId, key: str, *asked: Any) -> "Slip":
        """The slip for a question; how long its sender is willing to wait is no part of it."""
        return cls(user_id, key, _hash([key])[:KEY_HASH_CHARS], _hash(list(asked)))

    @property
    def key_id(self) -> str:
        """The id under which the answer is kept."""
        return key_id_of(self.user_id, self.key_hash)

    @property
    def question(self) -> str:
        """The fingerprint as far as tickets and the queue know it."""
        return self.fingerprint[:QUESTION_CHARS]

    def asks_for(self, kept: KeptAnswer) -> bool:
        """Whether what is kept under the key belongs to the same question."""
        return self.fingerprint.startswith(kept.fingerprint)

    def lost(self, now: datetime) -> KeptAnswer:
        """The mark that this request was lost."""
        return lost_mark(self.key_id, self.question, now)


def lost_mark(key_id: str, question: str, now: datetime) -> KeptAnswer:
    """What is kept under the key of a request that was lost: until the same question is asked
    again, nobody is granted anything under this key.
    """
    return KeptAnswer(key_id, question, RequestLost(), now)


def key_id_of(user_id: UserId, key_hash: str) -> str:
    """The id under which the answer to this key of a person is kept."""
    return _hash([user_id, key_hash])


def _hash(values: list[Any]) -> str:
    return hashlib.sha256(orjson.dumps(values)).hexdigest()


async def once(
    desk: Desk,
    slip: Slip | None,
    slot_id: SlotId,
    wait_s: float,
    run: Callable[[float], Awaitable[Outcome]],
) -> Outcome | KeyReused | Locked:
    """The answer kept under the key, or the outcome of running it now.

    `run` is given what is left of the time that the caller waits.

    Sends of one key are served one after the other, in every process: the second finds what the
    first left. Should that order be lost with Redis, only one of them can be written, and the
    others find its answer then. A refusal changed nothing and is not kept.
    """
    if slip is None:
        return await run(wait_s)
    until = asyncio.get_running_loop().time() + wait_s
    key = SlotId(f"key:{slip.key_id}")
    lease = await desk.locks.acquire(key, wait_s=max(wait_s, KEY_WAIT_S))
    if lease is None:
        return Locked(slot_id, RETRY_AFTER_MS)
    try:
        kept: Any = await kept_answer(desk.answers, slip)
        # Who asks again forgets that the request was lost; who still has it, and would serve it,
        # does not.
        again = isinstance(kept, RequestLost) and slip.asked_at is None
        if again:
            await desk.answers.forget_lost(slip.key_id, slip.question)
        elif kept is not None:
            answer: Outcome | KeyReused = kept
            return answer
        left = max(until - asyncio.get_running_loop().time(), 0.0)
        outcome: Outcome | KeyReused = await run(left)
        if not isinstance(outcome, Written):
            # Redis may have lost their order: then this is the answer to what the same key did.
            outcome = await _kept_meanwhile(desk, slip, outcome)
            if again:  # refused, it stays lost, unless something is kept by now
                await desk.answers.keep(slip.lost(desk.now()))
        # Or a ticket of the same key was told meanwhile that its request is lost.
        lost_now = isinstance(outcome, RequestLost)
        return Locked(slot_id, RETRY_AFTER_MS) if lost_now else outcome
    finally:
        await desk.locks.release(lease)


async def _kept_meanwhile(
    desk: Desk, slip: Slip, outcome: Outcome | KeyReused
) -> Outcome | KeyReused:
    kept: Outcome | KeyReused | None = await kept_answer(desk.answers, slip)
    if kept is None and isinstance(outcome, Done):
        # It was done before, by whatever means; the key is used up all the same.
        told = as_told(outcome, (slip.user_id,))
        await desk.answers.keep(KeptAnswer(slip.key_id, slip.fingerprint, told, desk.now()))
        kept = await kept_answer(desk.answers, slip)
    return outcome if kept is None else kept


async def kept_answer(answers: Answers, slip: Slip) -> Any:
    """What was answered under the key; KeyReused if the question was another; None if nothing.

    RequestLost when a ticket was told so: whoever still has the request must not serve it.
    """
    kept = await answers.find(slip.key_id)
    if kept is None:
        return None
    return kept.outcome if slip.asks_for(kept) else KeyReused(slip.key)
