"""Watches the embedded servers: restarts each once, and stops the app if one ends twice."""

import asyncio
import logging
import signal
from collections.abc import Sequence

from slotlock.devserver.binaries import ServerStartError
from slotlock.devserver.embedded import ServerProcess

POLL_INTERVAL_S = 0.2
LOG_LINES = 10
MAX_LINE_LENGTH = 300  # a line of mongod may hold a whole configuration

log = logging.getLogger("slotlock")


class ServerWatch:
    """Notices when an embedded server ends, and says so with the end of its log."""

    def __init__(self, servers: Sequence[ServerProcess]) -> None:
        self._servers = servers
        self._restarted: set[str] = set()
        self._task: asyncio.Task[None] | None = None
        self.has_given_up = False

    def start(self) -> None:
        """Watch from now on, in the running event loop.

        The loop must run in the thread that started the servers: Linux kills a server when the
        thread that forked it ends.
        """
        self._task = asyncio.get_running_loop().create_task(self._watch())

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(POLL_INTERVAL_S)
            for server in self._servers:
                exit_code = None if server.process is None else server.process.poll()
                if exit_code is not None and not self._replace(server, exit_code):
                    self.has_given_up = True
                    signal.raise_signal(signal.SIGTERM)
                    return

    def _replace(self, server: ServerProcess, exit_code: int) -> bool:
        """Restart a server that has ended, on its port. Return whether it runs."""
        name = server.server_binary.name
        log.error("%s ended (%s); the end of its log:", name, _reason(exit_code))
        for line in server.log_end(LOG_LINES):
            log.error("    %s", line[:MAX_LINE_LENGTH])
        if name in self._restarted:
            log.critical("%s ended twice, so slotlock stops: see %s", name, server.file_path("log"))
            return False
        self._restarted.add(name)
        try:
            server.start_process()
        except ServerStartError as error:
            log.critical("slotlock stops: %s", error)
            return False
        log.warning("%s was restarted on port %s", name, server.port)
        return True


def _reason(exit_code: int) -> str:
    if exit_code < 0:
        return f"killed by {signal.Signals(-exit_code).name}"
    return f"exit code {exit_code}"
