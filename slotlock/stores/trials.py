"""Whether MongoDB takes a write at all: an error of one write may be its own, or that of all.

The one file that knows the document that is written for it: {_id: "write", at: when last}.
"""

from pymongo.errors import PyMongoError

from slotlock.stores.gate import Gate, GateTimeoutError, gated
from slotlock.stores.mongo import TRIALS_GATE, Database


class Trials:
    """Writes that do no harm."""

    def __init__(self, database: Database) -> None:
        self.gate = Gate(TRIALS_GATE)
        self._trials = database["trials"]

    async def succeed(self) -> bool:
        """Whether one is written now: not by a MongoDB that is away, full or closed to writes."""
        try:
            await self._write()
        except (PyMongoError, GateTimeoutError):
            return False
        return True

    @gated
    async def _write(self) -> None:
        now = {"$currentDate": {"at": True}}
        await self._trials.update_one({"_id": "write"}, now, upsert=True)
