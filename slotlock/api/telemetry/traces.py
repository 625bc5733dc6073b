"""Traces of a process: on if a variable of OpenTelemetry names where to send them."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.util import find_spec

from slotlock import __version__
from slotlock.infrastructure.telemetry import tracing

ENDPOINT_VARIABLES = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
REQUIRED_PACKAGES = (
    "opentelemetry.sdk",
    "opentelemetry.exporter.otlp.proto.http",
    "opentelemetry.instrumentation.pymongo",
)


class TracingUnavailableError(Exception):
    """An endpoint is set, but the packages that send traces are not installed."""


@asynccontextmanager
async def run_tracing() -> AsyncIterator[None]:
    """Record traces while the context is open, if an endpoint is set.

    Raises:
        TracingUnavailableError: the extra `tracing` is not installed.
    """
    if not has_endpoint():
        yield
        return
    check_tracing()
    tracing.start(__version__)
    try:
        yield
    finally:
        # A receiver that does not respond may block for seconds.
        await asyncio.to_thread(tracing.stop)


def has_endpoint() -> bool:
    """Return whether the variables of OpenTelemetry ask for traces."""
    disabled = os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true"
    has_exporter = os.environ.get("OTEL_TRACES_EXPORTER", "").lower() != "none"
    return has_exporter and not disabled and any(map(os.environ.get, ENDPOINT_VARIABLES))


def check_tracing() -> None:
    """Check that traces can be sent, if they are asked for.

    Raises:
        TracingUnavailableError: the extra `tracing` is not installed.
    """
    if has_endpoint() and not all(map(_is_installed, REQUIRED_PACKAGES)):
        names = " or ".join(ENDPOINT_VARIABLES)
        raise TracingUnavailableError(
            f"{names} is set, but traces need the packages of the extra `tracing`: "
            "pip install --require-hashes -r requirements-serve.lock"
        )


def _is_installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:  # a package around it is missing
        return False
