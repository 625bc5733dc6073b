"""The limit on the bytes that the clients of a process have not read.

A response stays in memory until its client reads it. A process holds at most `max_bytes` of them,
and a quarter of that for one address. Beyond a limit it cuts the connection with the most unread
bytes. To reject new requests instead would let one client lock out all others at its address.
"""

import asyncio
import collections
from collections.abc import Iterable
from typing import NamedTuple

from prometheus_client import Counter

MAX_UNREAD_BYTES = 256 * 1024 * 1024
# So many addresses fill a process.
ADDRESSES_PER_PROCESS = 4

UNREAD_CUTS = Counter(
    "slotlock_unread_cuts_total",
    "Connections that were cut because too many bytes in this process were not read",
)


class _Unread(NamedTuple):
    """What the client of a connection has not read."""

    address: str | None
    size: int
    # The part of the size that is not in the buffer of the transport.
    waiting_bytes: int


class UnreadBytes:
    """The unread bytes of the connections of this process."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        # Only connections with unread bytes; the one that was counted longest ago comes first.
        self._connections: dict[asyncio.Transport, _Unread] = {}
        self._by_address: collections.Counter[str | None] = collections.Counter()
        self.total = 0

    def update(
        self, transport: asyncio.Transport, address: str | None, waiting_bytes: int = 0
    ) -> None:
        """Count what the transport of a connection holds and what waits until its client reads.

        Cut connections beyond a limit. A connection without an address counts towards the limit of
        the process only. The only connection that has unread bytes is not cut.
        """
        if self._count(transport, address, waiting_bytes) > 0:
            self._cut_beyond_limits(address)

    def forget(self, transport: asyncio.Transport) -> int:
        """Count nothing for a connection from now on, and return what counted until now."""
        forgotten = self._connections.pop(transport, None)
        if forgotten is None:
            return 0
        address, size, _ = forgotten
        self.total -= size
        self._by_address[address] -= size
        if not self._by_address[address]:
            del self._by_address[address]
        return size

    def _count(self, transport: asyncio.Transport, address: str | None, waiting_bytes: int) -> int:
        """Count the bytes of a connection, and return how many more these are than before."""
        before = self.forget(transport)
        size = transport.get_write_buffer_size() + waiting_bytes
        if size:
            self._connections[transport] = _Unread(address, size, waiting_bytes)
            self._by_address[address] += size
            self.total += size
        return size - before

    def _recount(self, transports: Iterable[asyncio.Transport]) -> None:
        """Count again what clients have left, as they may have read since."""
        for transport in tuple(transports):
            address, _, waiting_bytes = self._connections[transport]
            self._count(transport, address, waiting_bytes)

    def _cut_beyond_limits(self, address: str | None) -> None:
        max_bytes = self._max_bytes // ADDRESSES_PER_PROCESS
        if address is not None and self._by_address[address] > max_bytes:
            self._recount(self._connections_of(address))
            while self._by_address[address] > max_bytes:
                connections = self._connections_of(address)
                if len(connections) == 1:
                    break
                self._cut_largest(connections)
        if self.total > self._max_bytes:
            self._recount(self._connections)
        while self.total > self._max_bytes and len(self._connections) > 1:
            address = max(self._by_address, key=self._by_address.__getitem__)
            self._cut_largest(self._connections_of(address))

    def _connections_of(self, address: str | None) -> list[asyncio.Transport]:
        return [each for each, unread in self._connections.items() if unread.address == address]

    def _cut_largest(self, transports: Iterable[asyncio.Transport]) -> None:
        transport = max(transports, key=lambda each: self._connections[each].size)
        self.forget(transport)
        UNREAD_CUTS.inc()
        transport.abort()  # close() would wait until the client has read the rest
