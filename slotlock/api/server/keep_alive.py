"""Idle connections: one timer for each connection, however many requests it serves.

uvicorn starts a timer after each response, and cancels it before the next request.
"""

from slotlock.api.server.upgrades import NoUpgradeProtocol


class KeepAliveProtocol(NoUpgradeProtocol):
    """Closes a connection on which no request began for some time after the latest response."""

    # The time of the latest response; None while a request arrives or is processed.
    _idle_since_s: float | None = None

    def _unset_keepalive_if_required(self) -> None:
        # The timer goes on, and finds that the connection is not idle.
        self._idle_since_s = None

    def on_response_complete(self) -> None:
        """Start the next request of a pipeline; without one, the connection is idle."""
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())
            return
        if self._rejection:
            self.transport.write(self._rejection)
            self.transport.close()
            return
        self._idle_since_s = self.loop.time()
        if self.timeout_keep_alive_task is None:
            self._start_keep_alive_timer(self.timeout_keep_alive)

    def timeout_keep_alive_handler(self) -> None:
        """Close the connection if it was idle for the whole time."""
        self.timeout_keep_alive_task = None
        if self._idle_since_s is None:
            return  # the next response starts the timer again
        rest_s = self._idle_since_s + self.timeout_keep_alive - self.loop.time()
        if rest_s > 0:
            self._start_keep_alive_timer(rest_s)
        else:
            super().timeout_keep_alive_handler()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timer, which refers to the connection."""
        self._cancel_keep_alive_timer()
        super().connection_lost(exc)

    def handle_websocket_upgrade(self) -> None:
        """Stop the timer: the connection belongs to another protocol now."""
        self._cancel_keep_alive_timer()
        super().handle_websocket_upgrade()

    def _start_keep_alive_timer(self, seconds: float) -> None:
        self.timeout_keep_alive_task = self.loop.call_later(
            seconds, self.timeout_keep_alive_handler
        )

    def _cancel_keep_alive_timer(self) -> None:
        if self.timeout_keep_alive_task is not None:
            self.timeout_keep_alive_task.cancel()
            self.timeout_keep_alive_task = None
