"""slotlock: a time-slot reservation backend with live availability and no double bookings."""

import atexit
import gc
import sys

# How many more container objects exist than after the last collection, before the next one. With
# Python's 700, imports, which make hardly any garbage, take a fifth longer, and the objects of
# requests in progress are visited many times before they die. The other two numbers say how many
# collections of young objects precede one of older objects.
gc.set_threshold(20_000, 20, 20)
# Before it exits, Python would visit every object once more: 0.1 to 0.4 s for nothing.
atexit.register(gc.freeze)

# PyMongo would import cryptography for PyOpenSSL, redis-py the metrics of OpenTelemetry, which
# nobody reads, and dateutil ctypes for the time zones of Windows: 0.2 s of each start.
for _module in ("pymongo.pyopenssl_context", "opentelemetry.sdk.metrics", "dateutil.tz.win"):
    sys.modules.setdefault(_module, None)  # type: ignore[arg-type]

__version__ = "1.0.0"
