"""Traces of a process: on if a variable of OpenTelemetry names where to send them."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version

from slotlock.infrastructure.telemetry import tracing

ENDPOINT_VARIABLES = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")


class TracingUnavailableError(Exception):
    """An endpoint is set, but the packages that send traces are not installed."""


@asynccontextmanager
async def run_tracing() -> AsyncIterator[None]:
    """Record traces while the context is open, if an endpoint is set.

    Raises:
        TracingUnavailableError: the extra `tracing` is not installed.
    """
    if not any(map(os.environ.get, ENDPOINT_VARIABLES)) or is_disabled():
        yield
        return
    try:
        tracing.start(version("slotlock"))
    except ImportError as error:
        text = f"traces need the extra `tracing`: pip install 'slotlock[tracing]' ({error})"
        raise TracingUnavailableError(text) from None
    try:
        yield
    finally:
        # A receiver that does not respond may block for seconds.
        await asyncio.to_thread(tracing.stop)


def is_disabled() -> bool:
    """Return whether a variable turns the SDK or the exporter off."""
    disabled = os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true"
    return disabled or os.environ.get("OTEL_TRACES_EXPORTER", "").lower() == "none"
