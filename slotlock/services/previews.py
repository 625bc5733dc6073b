"""Deciding commands without a lock, and without a write.

A refusal needs no lock: the caller of a full slot learns that it is full, not to retry. The
commands of concurrent callers share one read, and those for one slot share its state.
"""

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.decision import CommandResult
from slotlock.domain.booking.slot_state import SlotState
from slotlock.infrastructure.batching import Batcher, GroupBatcher
from slotlock.infrastructure.mongo.client import is_unavailable
from slotlock.infrastructure.mongo.slots.slot_repository import SlotRepository
from slotlock.services.batch_decision import preview_each
from slotlock.services.slot_command import SlotCommand, slot_query

AnyCommand = SlotCommand[object]
Preview = CommandResult[object] | None


class Previews:
    """The previews of this process."""

    def __init__(self, slots: SlotRepository, now: Callable[[], datetime]) -> None:
        self._slots = slots
        self._now = now
        self._batcher = Batcher(self._decide_batch, is_outage=is_unavailable)
        self._group_batcher = GroupBatcher(self._decide_batch, is_outage=is_unavailable)

    def decide(self, command: AnyCommand) -> Awaitable[Preview]:
        """Decide a command for one slot on its present state. None if the command needs a write."""
        return self._batcher.submit_nowait(command)

    async def decide_all(self, commands: Sequence[AnyCommand]) -> Sequence[Preview]:
        """Decide several commands as `decide` does each: with one future, and one error."""
        return await self._group_batcher.submit(commands)

    async def _decide_batch(self, commands: list[AnyCommand]) -> Sequence[Preview | Exception]:
        try:
            return await self._decide_each(commands)
        except Exception as error:
            if is_unavailable(error) or len(commands) == 1:
                raise
        # What cannot be decided is the failure of its own callers only.
        return [await self._decide_alone(command) for command in commands]

    async def _decide_alone(self, command: AnyCommand) -> Preview | Exception:
        try:
            return (await self._decide_each([command]))[0]
        except Exception as error:
            return error

    async def _decide_each(self, commands: Sequence[AnyCommand]) -> list[Preview | Exception]:
        now = self._now()
        by_slot: dict[SlotId, list[AnyCommand]] = {}
        for command in commands:
            by_slot.setdefault(command.slot_ids[0], []).append(command)
        queries = [slot_query(slot_id, each, now) for slot_id, each in by_slot.items()]
        found = await self._slots.find_each_for_update(queries)
        slots, errors = dict[SlotId, SlotState](), dict[SlotId, Exception]()
        for slot_id, state in found.items():
            if isinstance(state, Exception):
                errors[slot_id] = state
            else:
                slots[slot_id] = state
        loaded = await self._slots.with_user_contexts(slots, queries)
        results = preview_each(loaded, commands, now)
        if not errors:
            return results
        # A slot that cannot be read is the failure of its own callers only.
        return [
            errors.get(command.slot_ids[0], result)
            for command, result in zip(commands, results, strict=True)
        ]
