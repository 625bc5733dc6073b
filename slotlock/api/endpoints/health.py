"""Endpoints for monitoring: liveness, readiness and Prometheus metrics."""

import asyncio
import contextlib
import os
from pathlib import Path
from typing import Any

from prometheus_client import (
    REGISTRY,
    CollectorRegistry,
    Gauge,
    multiprocess,
)
from prometheus_client.exposition import choose_encoder
from pymongo.errors import PyMongoError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from slotlock.api.endpoints.responses import to_response
from slotlock.api.telemetry.process_metrics import ServerProcessCollector
from slotlock.domain.shared.value_object import value_object
from slotlock.graphql.transport.http_messages import HttpError
from slotlock.infrastructure.mongo.client import MongoHealth
from slotlock.infrastructure.mongo.clock import MongoClock
from slotlock.infrastructure.mongo.outbox.outbox_repository import OutboxRepository
from slotlock.infrastructure.redis.admission.admission_queue import AdmissionQueue
from slotlock.infrastructure.redis.auto_pipeline import AutoPipeline, RedisUnavailableError
from slotlock.infrastructure.telemetry import buffered_metrics

QUEUE_LENGTH = Gauge(
    "slotlock_queue_length",
    "Requests in the admission queue",
    ["partition"],
    multiprocess_mode="mostrecent",
)
DEAD_LETTERS = Gauge(
    "slotlock_queue_dead_letters",
    "Requests that could not be processed and wait for an operator",
    ["partition"],
    multiprocess_mode="mostrecent",
)
CLOCK_SKEW = Gauge(
    "slotlock_clock_skew_seconds",
    "How far the clock of this host is ahead of MongoDB's; negative if it is behind",
    multiprocess_mode="mostrecent",
)
CLOCK_ERROR = Gauge(
    "slotlock_clock_error_seconds",
    "How far the time of decisions may be behind MongoDB's time",
    multiprocess_mode="mostrecent",
)


OUTBOX_ENTRIES = Gauge(
    "slotlock_outbox_entries",
    "Mails and webhook calls that wait, are being sent, or have failed",
    ["state"],
    multiprocess_mode="mostrecent",
)
OUTBOX_AGE = Gauge(
    "slotlock_outbox_oldest_seconds",
    "How long ago that happened of which the oldest entry of the outbox tells that is not done",
    multiprocess_mode="mostrecent",
)
OUTBOX_TIMEOUT_S = 1.0


async def healthz(request: Request) -> Response:
    """Return 200 while the process responds."""
    return JSONResponse({"status": "alive"})


@value_object
class HealthEndpoints:
    """The endpoints that query MongoDB and Redis."""

    mongo_health: MongoHealth
    clock: MongoClock
    pipeline: AutoPipeline
    admission_queue: AdmissionQueue
    outbox: OutboxRepository

    async def readyz(self, request: Request[Any]) -> Response:
        """Return 200 if MongoDB and Redis respond, else 503 with the names of those that do not.

        `clockSkewSeconds` tells how far the clock of this host is ahead of MongoDB's.
        The parameter `of` is "mongodb" or "redis" if only that server matters: bookings continue
        without Redis, so a load balancer should ask for MongoDB.
        """
        required = request.query_params.get("of")
        if required not in (None, "mongodb", "redis"):
            return to_response(HttpError(400, "`of` is mongodb or redis."))
        mongodb, redis = await asyncio.gather(
            self.mongo_health.is_available(), self.pipeline.check()
        )
        unavailable = [
            name
            for name, available in (("mongodb", mongodb), ("redis", redis))
            if not available and required in (None, name)
        ]
        body = {
            "status": "unavailable: " + ", ".join(unavailable) if unavailable else "ready",
            "mongodb": "up" if mongodb else "unavailable",
            "redis": self.pipeline.state.value if not redis else "up",
            "clockSkewSeconds": round(self.clock.skew_s, 3),
        }
        if unavailable:
            return JSONResponse({**body, "code": "UNAVAILABLE"}, 503)
        return JSONResponse(body)

    async def metrics(self, request: Request[Any]) -> Response:
        """Return the metrics of this process, or the sums over all processes of `serve`."""
        CLOCK_SKEW.set(self.clock.skew_s)
        CLOCK_ERROR.set(self.clock.error_s)
        await asyncio.gather(self._update_queue_gauges(), self._update_outbox_gauges())
        buffered_metrics.flush()
        registry = REGISTRY
        if directory := os.environ.get("PROMETHEUS_MULTIPROC_DIR"):
            registry = CollectorRegistry()
            multiprocess.MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
            registry.register(ServerProcessCollector(Path(directory)))
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
        while True:
            # Another process may just have adopted the metrics of one that has ended.
            with contextlib.suppress(FileNotFoundError):
                return Response(encode(registry), headers={"content-type": content_type})

    async def _update_outbox_gauges(self) -> None:
        # If MongoDB is unavailable, the gauges keep their last values.
        with contextlib.suppress(PyMongoError, TimeoutError):
            async with asyncio.timeout(OUTBOX_TIMEOUT_S):
                for state, count in (await self.outbox.count_unsent()).items():
                    OUTBOX_ENTRIES.labels(state.value).set(count)
                oldest = await self.outbox.find_oldest()
                age = (self.clock.now() - oldest).total_seconds() if oldest else 0
                OUTBOX_AGE.set(max(age, 0))

    async def _update_queue_gauges(self) -> None:
        # If Redis is unavailable, the gauges keep their last values.
        with contextlib.suppress(RedisUnavailableError):
            lengths = await self.admission_queue.lengths()
            for partition, (waiting, dead_letters) in enumerate(lengths):
                QUEUE_LENGTH.labels(partition).set(waiting)
                DEAD_LETTERS.labels(partition).set(dead_letters)
