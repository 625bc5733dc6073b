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

    __slots__ = ("counts", "total")

    def __init__(self) -> None:
        self.counts: dict[asyncio.Transport, int] = {}
        self.total = 0


class UnreadBytes:
    """The unread bytes of the connections of this process, by address."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._addresses: dict[str | None, _Connections] = {}
        self.total = 0

    def update(self, transport: asyncio.Transport, address: str | None, count: int) -> None:
        """Set the unread bytes of a connection; cut connections beyond a limit.

        A connection without an address counts towards the limit of the process only. The only
        connection that has unread bytes is not cut.
        """
        connections = self._addresses.setdefault(address, _Connections())
        change = count - connections.counts.pop(transport, 0)
        connections.total += change
        self.total += change
        if count:
            connections.counts[transport] = count
        elif not connections.counts:
            del self._addresses[address]
        if change > 0:
            self._cut_beyond_limits(address, connections)

    def _cut_beyond_limits(self, address: str | None, connections: _Connections) -> None:
        max_bytes = self._max_bytes // ADDRESSES_PER_PROCESS
        if address is not None:
            while connections.total > max_bytes and len(connections.counts) > 1:
                self._cut_largest(address, connections)
        while self.total > self._max_bytes:
            address, connections = max(self._addresses.items(), key=lambda each: each[1].total)
            if len(self._addresses) == len(connections.counts) == 1:
                return
            self._cut_largest(address, connections)

    def _cut_largest(self, address: str | None, connections: _Connections) -> None:
        transport = max(connections.counts, key=connections.counts.__getitem__)
        self.update(transport, address, 0)
        UNREAD_CUTS.inc()
        transport.abort()  # close() would wait until the client has read the rest
