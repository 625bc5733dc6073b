"""Plain HTTP for machines: whether the process lives, whether it can serve, what it counted."""

import asyncio
import contextlib
import os

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Gauge,
    generate_latest,
    multiprocess,
)
from prometheus_client import REGISTRY as OWN
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from slotlock.infrastructure.redis.admission.queue import AdmissionQueue
from slotlock.infrastructure.redis.auto_pipeline import RedisUnavailableError

QUEUE_LENGTH = Gauge(
    "slotlock_queue_length",
    "Requests in the admission queue",
    ["partition"],
    multiprocess_mode="mostrecent",
)
DEAD_LETTERS = Gauge(
    "slotlock_queue_set_aside",
    "Requests that could not be served and wait for an operator",
    ["partition"],
    multiprocess_mode="mostrecent",
)


async def healthz(request: Request) -> Response:
    """200 while the process answers at all."""
    return JSONResponse({"status": "alive"})


async def readyz(request: Request) -> Response:
    """200 when MongoDB and Redis answer, else 503 and which one is away.

    Bookings go on without Redis. `?of=mongodb` looks only at what they cannot do without: what a
    load balancer should ask.
    """
    wanted = request.query_params.get("of")
    mongodb, redis = await asyncio.gather(
        request.state.probe.is_available(), request.state.line.check()
    )
    away = [
        name
        for name, up in (("mongodb", mongodb), ("redis", redis))
        if not up and wanted in (None, name)
    ]
    body = {
        "status": "away: " + ", ".join(away) if away else "ready",
        "mongodb": "up" if mongodb else "away",
        "redis": "up" if redis else "away",
    }
    return JSONResponse(body, status_code=503 if away else 200)


async def metrics(request: Request) -> Response:
    """Prometheus text: of this process, or summed over all workers of one `serve`."""
    await _update_queue_gauges(request.state.queue)
    registry = OWN
    if "PROMETHEUS_MULTIPROC_DIR" in os.environ:
        registry = CollectorRegistry()
        multiprocess.MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)


async def _update_queue_gauges(queue: AdmissionQueue) -> None:
    with contextlib.suppress(RedisUnavailableError):  # then the last counts stand
        for partition, (waiting, aside) in enumerate(await queue.lengths()):
            QUEUE_LENGTH.labels(partition).set(waiting)
            DEAD_LETTERS.labels(partition).set(aside)
