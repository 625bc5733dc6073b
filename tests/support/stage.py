"""Where races are staged: variants of the app, the lock's key, and what MongoDB says in the end."""

import secrets
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bson import ObjectId
from pymongo import MongoClient
from redis import Redis

from tests.support.processes import AppProcess, app_process

VARIANT = (sys.executable, "-m", "tests.support.variant")


@dataclass
class Stage:
    """A paused act, followed and freed by its name."""

    redis: Redis
    name: str = field(default_factory=lambda: f"stage:{secrets.token_hex(6)}")

    def wait_until_reached(self) -> None:
        """Wait until the act is at its point."""
        assert self.redis.blpop([f"{self.name}:reached"], 30), "the act never got there"

    def go(self) -> None:
        """Let the act go on."""
        self.redis.lpush(f"{self.name}:go", "go")


@contextmanager
def variant(
    environment: Mapping[str, str],
    directory: Path,
    *,
    off: str = "",
    pause: str = "",
    stage: Stage | None = None,
) -> Iterator[AppProcess]:
    """A process of the app without these guards, that waits at this point."""
    settings = {**environment, "VARIANT_OFF": off}
    if stage is not None:
        settings |= {"VARIANT_PAUSE": pause, "VARIANT_STAGE": stage.name}
    with app_process(settings, directory, VARIANT) as app:
        yield app


def lock_key(slot_gid: str) -> str:
    """The key of a slot's lock, as operators may look it up."""
    return f"slotlock:{{{slot_gid.removeprefix('slot_')}}}:lock"


def slot_document(mongo_url: str, slot_gid: str) -> dict[str, Any]:
    """The truth about a slot, read past the app."""
    with closing(MongoClient[dict[str, Any]](mongo_url)) as client:
        slots = client.get_default_database()["slots"]
        document = slots.find_one({"_id": ObjectId(slot_gid.removeprefix("slot_"))})
    assert document is not None
    return document


def assert_whole(document: Mapping[str, Any], places_taken: int) -> None:
    """The slot has so many bookings, one a person, and its count of places agrees."""
    users = [booking["user"] for booking in document["bookings"]]
    assert len(users) == places_taken
    assert len(set(users)) == len(users)
    assert document["remaining"] == document["capacity"] - places_taken >= 0
