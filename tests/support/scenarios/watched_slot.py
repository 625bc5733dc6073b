"""Processes that watch one slot, whose changes no message reports."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from slotlock.api.backend import Backend, open_backend, run_live_hubs
from slotlock.api.settings.settings import Settings
from slotlock.domain.booking.slot_state import SlotState
from slotlock.infrastructure.mongo.ids import new_slot_id
from slotlock.infrastructure.shared_change_feed import SharedChangeFeed
from slotlock.services.live.availability_hub import AvailabilitySubscription
from tests.support.domain.builders import build_slot
from tests.support.polling import poll_until
from tests.support.stores.slots import edit_silently, insert_new_slots


@dataclass
class Watcher:
    """A process with a subscription to the slot."""

    backend: Backend
    subscription: AvailabilitySubscription
    stack: AsyncExitStack

    @property
    def feed(self) -> SharedChangeFeed:
        """The changes that the process receives."""
        return self.backend.services.change_feed

    @property
    def has_stream(self) -> bool:
        """Whether the process has a change stream open."""
        return self.feed._feed.stream._cursor_id != 0

    @property
    def has_compared(self) -> bool:
        """Whether no comparison of all slots is under way."""
        hub = self.backend.services.availability
        return self.feed._comparison is None and hub._compared_gap_count == hub._gap_count

    @property
    def version(self) -> int:
        """The latest version of the slot that the process received."""
        return self.subscription._latest[self.subscription.slot_ids[0]].version


@dataclass
class Watched:
    """A slot and two processes that watch it."""

    slot: SlotState
    watchers: tuple[Watcher, Watcher]

    async def until_shared(self) -> tuple[Watcher, Watcher]:
        """Wait until only one of the processes has a stream; return it, and then the other."""

        def is_shared() -> bool:
            roles = [(watcher.has_stream, watcher.feed._next) for watcher in self.watchers]
            return sorted((has, next_ is None) for has, next_ in roles) == [
                (False, False),
                (True, True),
            ] and all(watcher.has_compared for watcher in self.watchers)

        await until(is_shared, "one process reads the stream, the other one its digests")
        first, second = self.watchers
        return (first, second) if first.has_stream else (second, first)

    async def edit(self) -> None:
        """Change the slot without a message."""
        self.slot = await edit_silently(self.watchers[0].backend.database, self.slot)

    async def until_received(self, *watchers: Watcher) -> None:
        """Wait until these processes have the latest version."""
        await until(
            lambda: all(watcher.version == self.slot.version for watcher in watchers),
            "the lost message is replaced",
        )


async def until(condition: Callable[[], bool], description: str) -> None:
    """Wait until the condition holds."""

    async def check() -> bool:
        return condition()

    await poll_until(check, bool, description)


@asynccontextmanager
async def two_processes(settings: Settings) -> AsyncIterator[Watched]:
    """Run the live updates of two processes that watch one slot."""
    slot = build_slot(5, id=new_slot_id())
    async with AsyncExitStack() as stack:
        watchers: list[Watcher] = []
        for _ in range(2):
            backend = await stack.enter_async_context(open_backend(settings))
            await stack.enter_async_context(run_live_hubs(backend.services))
            if not watchers:
                await insert_new_slots(backend.database, slot)
            own = await stack.enter_async_context(AsyncExitStack())
            subscribing = backend.services.availability.subscribe([slot.id])
            watchers.append(Watcher(backend, await own.enter_async_context(subscribing), own))
        yield Watched(slot, (watchers[0], watchers[1]))
