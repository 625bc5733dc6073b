"""Requests as the access log and the traces show them. Without both, nothing here is called."""

import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from slotlock.infrastructure.request_deadline import current_request
from slotlock.infrastructure.telemetry import tracing

MAX_NAME_LENGTH = 100
# Other paths contain tokens, or whatever a client asks for.
_LOGGED_PATHS = frozenset(
    {
        "/",
        "/graphql",
        "/graphql/",
        "/users/import",
        "/slots/import",
        "/users/invitations",
        "/personal-data",
        "/healthz",
        "/readyz",
        "/metrics",
    }
)
_LOGGED_PREFIXES = ("/personal-data/", "/draws/", "/exports/", "/calendars/")

log = logging.getLogger("slotlock.access")


class ObservedRequest:
    """A request in progress, whose status is set at its end."""

    status: int | str = "unfinished"


class RequestObserver:
    """Opens the span of each request, and logs it at its end if the access log is on."""

    def __init__(self, *, access_log: bool) -> None:
        self._access_log = access_log

    @contextmanager
    def observe(
        self, method: str, path: str, headers: Mapping[str, str], request_id: str
    ) -> Iterator[ObservedRequest]:
        """Observe a request until the context ends."""
        route, started_at = _route(path), time.perf_counter()
        observed = ObservedRequest()
        with tracing.server_span(f"{method} {route}", headers) as span:
            try:
                yield observed
            finally:
                if isinstance(observed.status, int):
                    span.set_status_code(observed.status)
                if self._access_log:
                    _log(method, route, observed.status, request_id, started_at)


def _log(method: str, route: str, status: int | str, request_id: str, started_at: float) -> None:
    fields: dict[str, object] = {
        "method": method,
        "path": route,
        "status": status,
        "durationMs": round((time.perf_counter() - started_at) * 1000, 1),
        "requestId": request_id,
    }
    request = current_request()
    if request is not None and request.operation_name is not None:
        fields["operation"] = request.operation_name[:MAX_NAME_LENGTH]
    log.info("request", extra={"fields": fields})


def _route(path: str) -> str:
    if path in _LOGGED_PATHS:
        return path
    prefix = next((each for each in _LOGGED_PREFIXES if path.startswith(each)), None)
    return f"{prefix}{{path}}" if prefix else "{path}"
