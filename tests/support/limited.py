"""Apps that limit rates, so narrowly that a test reaches the limits."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from slotlock.api.embedded import Servers
from tests.support.processes import AppProcess, environment, wait_until
from tests.support.troupe import forked_app

READS, WRITES, PEOPLE = 20, 15, 2


@contextmanager
def limited_app(
    servers: Servers, database: str, directory: Path, **more: str
) -> Iterator[AppProcess]:
    """An app for so many reads and writes of a person and minute, and people an address."""
    settings = {
        **environment(servers, database),
        "SLOTLOCK_RATE_LIMITS": "on",
        "SLOTLOCK_RATE_READS": str(READS),
        "SLOTLOCK_RATE_WRITES": str(WRITES),
        "SLOTLOCK_RATE_PEOPLE_PER_ADDRESS": str(PEOPLE),
        # So that a test can come from many addresses.
        "SLOTLOCK_TRUSTED_PROXIES": "10.1.1.7,127.0.0.0/8",
        **more,
    }
    with forked_app(settings, directory) as app:
        yield app


def statuses(url: str, headers: dict[str, str]) -> list[int]:
    """What comes of asking more than one address may, each time with another number for `*`."""
    with httpx.Client(trust_env=False) as http:
        answers = [
            http.post(
                url + "/graphql",
                json={"query": "{ __typename }"},
                headers={name: text.replace("*", str(n)) for name, text in headers.items()},
            )
            for n in range(PEOPLE * READS + 1)
        ]
    return [answer.status_code for answer in answers]


def early_in_a_minute() -> None:
    """Windows are minutes: what is counted exactly must not begin in one and end in the next."""
    wait_until(lambda: time.time() % 60 < 40, "the next minute", within_s=30)
