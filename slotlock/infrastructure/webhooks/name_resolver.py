"""Resolves the names of receivers on threads of its own.

The threads of asyncio are few. A name server that hangs would take them from all that uses them.
"""

import asyncio
import socket
from concurrent.futures import ThreadPoolExecutor

from aiohttp.abc import AbstractResolver, ResolveResult

# As many as there are receivers: aiohttp looks each of them up once at a time.
THREADS = 60


class NameResolver(AbstractResolver):
    """Asks the system for the addresses of a name."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(THREADS, "webhook-names")

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Return the addresses of a host. Raises: OSError."""
        found = await asyncio.get_running_loop().run_in_executor(
            self._threads,
            socket.getaddrinfo,
            host,
            port,
            family,
            socket.SOCK_STREAM,
            0,
            socket.AI_ADDRCONFIG,
        )
        flags = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV
        return [
            ResolveResult(
                hostname=host,
                host=str(address[0]),
                port=int(address[1]),
                family=found_family,
                proto=proto,
                flags=flags,
            )
            for found_family, _, proto, _, address in found
        ]

    async def close(self) -> None:
        """Start no more look-ups; those that hang end by themselves."""
        self._threads.shutdown(wait=False, cancel_futures=True)
