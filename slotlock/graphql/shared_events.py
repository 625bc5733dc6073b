"""Sources of events that are the same for every viewer, so that subscribers share the responses."""

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, aclosing
from typing import Any, Generic, TypeVar

from slotlock.services.live.latest_states import LatestStates

State = TypeVar("State")


class SharedEvents(ABC, Generic[State]):
    """The events of one subscription.

    Iterating yields one event for each state. `open` gives access to the states before they are
    events, for subscribers who share the response to each.
    """

    @abstractmethod
    def open(self) -> AbstractAsyncContextManager[LatestStates[Any, State]]:
        """Subscribe to the states. Errors: those of the field."""

    @staticmethod
    @abstractmethod
    def to_event(state: State) -> object:
        """Return the state as clients see it."""

    async def __aiter__(self) -> AsyncGenerator[object, None]:
        async with self.open() as subscription, aclosing(subscription.states()) as states:
            async for state in states:
                yield self.to_event(state)
