"""Answers kept under idempotency keys: the one file that knows the shape of their documents.

    {_id: hash of the caller and the key, print: hash of what was asked, outcome, at, asked?}

An answer is written in the transaction of what it answers, so that a key has one effect or none.
`asked` is when a request that stood in line was asked for. Of one that was lost `print` is the
beginning of the hash, which is all that its ticket knows.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import Any

from pymongo.errors import BulkWriteError

from slotlock.domain import bookings, meetings, outcomes, record, refusals, slots, terms, tickets
from slotlock.domain.tickets import RequestLost
from slotlock.stores.batches import Batches
from slotlock.stores.gate import Gate, gated
from slotlock.stores.mongo import ANSWERS_GATE, Database, Document

# The promise is a day; the second is for clocks and for clients that are late.
KEPT_FOR = timedelta(hours=48)
DUPLICATE = 11000


@dataclass(frozen=True, slots=True)
class KeptAnswer:
    """What was answered to whom, and to which question."""

    key_id: str
    fingerprint: str
    outcome: Any
    at: datetime
    asked_at: datetime | None = None


class Answers:
    """The answers given under keys lately."""

    def __init__(self, database: Database) -> None:
        self.gate = Gate(ANSWERS_GATE)
        self._answers = database["answers"]
        self._reads = Batches(self._read)
        self._keeps = Batches(self._keep_together)

    async def prepare(self) -> None:
        """Create the index that forgets old answers."""
        seconds = int(KEPT_FOR.total_seconds())
        await self._answers.create_index("at", name="forget", expireAfterSeconds=seconds)

    async def find(self, key_id: str) -> KeptAnswer | None:
        """The answer given under this key, if there is one."""
        return await self._reads.do(key_id)

    async def keep(self, answer: KeptAnswer) -> None:
        """Keep an answer that needed no write, unless the key was answered before."""
        await self._keeps.do(answer)

    async def _keep_together(self, answers: list[KeptAnswer]) -> list[None]:
        await self.keep_all(answers)
        return [None] * len(answers)

    @gated
    async def keep_all(self, answers: Sequence[KeptAnswer]) -> None:
        """Keep answers that needed no write, but for those of keys that were answered before."""
        try:
            documents = [answer_document(answer) for answer in answers]
            await self._answers.insert_many(documents, ordered=False)
        except BulkWriteError as error:
            failed = error.details["writeErrors"]
            if error.details["writeConcernErrors"] or any(e["code"] != DUPLICATE for e in failed):
                raise

    @gated
    async def forget_lost(self, key_id: str, question: str) -> None:
        """Forget that the request under this key was lost, if that was what it asked for."""
        mark = {"_id": key_id, "print": question, "outcome._is": RequestLost.__name__}
        await self._answers.delete_one(mark)

    async def _read(self, key_ids: list[str]) -> list[KeptAnswer | Exception | None]:
        found: dict[str, KeptAnswer | Exception] = {}
        async for document in self._answers.find({"_id": {"$in": key_ids}}):
            try:
                found[document["_id"]] = _answer(document)
            except (KeyError, ValueError, TypeError) as error:  # its readers' alone
                found[document["_id"]] = error
        return [found.get(key_id) for key_id in key_ids]


def answer_document(answer: KeptAnswer) -> Document:
    """The document of a kept answer."""
    asked = {"asked": answer.asked_at} if answer.asked_at else {}
    return {
        "_id": answer.key_id,
        "print": answer.fingerprint,
        "outcome": _kept(answer.outcome),
        "at": answer.at,
        **asked,
    }


def _answer(document: Document) -> KeptAnswer:
    outcome = _value(document["outcome"])
    return KeptAnswer(
        document["_id"], document["print"], outcome, document["at"], document.get("asked")
    )


_KINDS = {
    kind.__name__: kind
    for module in (record, meetings, terms, bookings, slots, refusals, outcomes, tickets)
    for kind in vars(module).values()
    if isinstance(kind, type) and kind.__module__ == module.__name__
}


def _kept(value: Any) -> Any:
    # Values of the domain by the names of their types and fields, as they are.
    if is_dataclass(value):
        values = {field.name: _kept(getattr(value, field.name)) for field in fields(value)}
        return {"_is": type(value).__name__, **values}
    if isinstance(value, Enum):
        return {"_is": type(value).__name__, "_value": value.value}
    return [_kept(each) for each in value] if isinstance(value, tuple) else value


def _value(kept: Any) -> Any:
    if isinstance(kept, list):
        return tuple(_value(each) for each in kept)
    if not isinstance(kept, dict) or "_is" not in kept:
        return kept
    kind = _KINDS[kept["_is"]]
    if "_value" in kept:
        return kind(kept["_value"])
    # A field that this version does not know is left out, one that it adds has its default.
    known = {field.name for field in fields(kind)}
    return kind(**{name: _value(value) for name, value in kept.items() if name in known})
