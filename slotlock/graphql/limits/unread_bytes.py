"""The limit on the bytes that the clients of a process have not read.

A response stays in memory until its client reads it. A process holds at most `max_bytes` of them,
and a quarter of that for one address. Beyond a limit it cuts the connection with the most unread
bytes. To reject new requests instead would let one client lock out all others at its address.
"""

import asyncio

from prometheus_client import Counter

MAX_UNREAD_BYTES = 256 * 1024 * 1024
# So many addresses fill a process.
ADDRESSES_PER_PROCESS = 4

UNREAD_CUTS = Counter(
    "slotlock_unread_cuts_total",
    "Connections that were cut because too many bytes in this process were not read",
)


class _Connections:
    """The connections of one address with unread bytes, and how many; the oldest comes first."""

    __slots__ = ("counts", "total", "waiting")

    def __init__(self) -> None:
        self.counts: dict[asyncio.Transport, int] = {}
        # The part of each count that is not in the buffer of the transport.
        self.waiting: dict[asyncio.Transport, int] = {}
        self.total = 0


class UnreadBytes:
    """The unread bytes of the connections of this process, by address."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._addresses: dict[str | None, _Connections] = {}
        self.total = 0

    def update(
        self, transport: asyncio.Transport, address: str | None, waiting_bytes: int = 0
    ) -> None:
        """Count what the transport of a connection holds and what waits until its client reads.

        Cut connections beyond a limit. A connection without an address counts towards the limit of
        the process only. The only connection that has unread bytes is not cut.
        """
        count = transport.get_write_buffer_size() + waiting_bytes
        if self._set_count(transport, address, count, waiting_bytes) > 0:
            self._cut_beyond_limits(address)

    def forget(self, transport: asyncio.Transport, address: str | None) -> None:
        """Count nothing for a connection that has ended."""
        self._set_count(transport, address, 0, 0)

    def _set_count(
        self, transport: asyncio.Transport, address: str | None, count: int, waiting_bytes: int
    ) -> int:
        """Count the bytes of a connection, and return how many more these are than before."""
        connections = self._addresses.get(address)
        if connections is None:
            if not count:
                return 0
            connections = self._addresses[address] = _Connections()
        change = count - connections.counts.pop(transport, 0)
        connections.waiting.pop(transport, None)
        connections.total += change
        self.total += change
        if count:
            connections.counts[transport] = count
            if waiting_bytes:
                connections.waiting[transport] = waiting_bytes
        elif not connections.counts:
            del self._addresses[address]
        return change

    def _recount(self, address: str | None) -> None:
        """Count again what the clients of an address have left, as they may have read since."""
        connections = self._addresses[address]
        for transport in tuple(connections.counts):
            waiting_bytes = connections.waiting.get(transport, 0)
            count = transport.get_write_buffer_size() + waiting_bytes
            self._set_count(transport, address, count, waiting_bytes)

    def _cut_beyond_limits(self, address: str | None) -> None:
        max_bytes = self._max_bytes // ADDRESSES_PER_PROCESS
        connections = self._addresses[address]
        if address is not None and connections.total > max_bytes:
            self._recount(address)
            while connections.total > max_bytes and len(connections.counts) > 1:
                self._cut_largest(address, connections)
        if self.total > self._max_bytes:
            for each in tuple(self._addresses):
                self._recount(each)
        while self.total > self._max_bytes:
            address, connections = max(self._addresses.items(), key=lambda each: each[1].total)
            if len(self._addresses) == len(connections.counts) == 1:
                return
            self._cut_largest(address, connections)

    def _cut_largest(self, address: str | None, connections: _Connections) -> None:
        transport = max(connections.counts, key=connections.counts.__getitem__)
        self.forget(transport, address)
        UNREAD_CUTS.inc()
        transport.abort()  # close() would wait until the client has read the rest
