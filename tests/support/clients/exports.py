"""Rosters as files: fetched as an organiser's browser would, and opened by other programs."""

import csv
import os
from contextlib import closing
from datetime import UTC, datetime
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

import httpx
from bson import ObjectId
from openpyxl import load_workbook
from pymongo import MongoClient

from tests.support.apps.processes import AppProcess
from tests.support.clients.booking_client import BookingClient
from tests.support.clients.client import GraphQLTestClient, Json


async def get_checked(client: GraphQLTestClient, path: str) -> httpx.Response:
    """Whatever is answered; never a failure of ours."""
    response = await client.http.get(f"{client.url}/{path}", headers=client.headers)
    assert response.status_code != 500, response.text
    return response


async def download_export(client: GraphQLTestClient, path: str) -> bytes:
    """A file that there is: `slots/slot_...csv`."""
    response = await get_checked(client, f"exports/{path}")
    assert response.status_code == 200, response.text
    name = path.partition("/")[2]
    assert response.headers["content-disposition"] == f'attachment; filename="{name}"'
    return response.content


def csv_rows(body: bytes) -> list[dict[str, str]]:
    """The rows of a file of CSV, as Excel reads it: the byte order mark tells that it is UTF-8."""
    assert body.startswith(b"\xef\xbb\xbf")
    return list(csv.DictReader(StringIO(body.decode("utf-8-sig"), newline=""), strict=True))


def load_workbook_bytes(body: bytes) -> Any:
    """A workbook, as another program opens it."""
    return load_workbook(BytesIO(body))


async def set_name_and_groups(mongo_url: str, user: BookingClient, name: str, *groups: str) -> None:
    """Let a person be called so and carry these groups."""
    user_id = ObjectId((await user.fetch_user_id())[-24:])
    with closing(MongoClient[Json](mongo_url)) as client:
        people = client.get_default_database()["users"]
        people.update_one({"_id": user_id}, {"$set": {"name": name, "groups": list(groups)}})


def insert_many_slots(
    mongo_url: str, campaign_id: str, slot_count: int, bookings_per_slot: int
) -> None:
    """Fill a campaign with slots, as if people had booked for weeks."""
    now = datetime.now(UTC)
    with closing(MongoClient[Json](mongo_url)) as client:
        kept = client.get_default_database()["slots"]
        pattern = kept.find_one({"campaign.id": ObjectId(campaign_id[-24:])})
        assert pattern is not None
        entries = [
            {"id": ObjectId(), "user": ObjectId(), "at": now} for _ in range(bookings_per_slot)
        ]
        made = {
            **pattern,
            "capacity": max(bookings_per_slot, 1),
            "remaining": 0,
            "bookings": entries,
        }
        kept.insert_many([{**made, "_id": ObjectId()} for _ in range(slot_count)])


def child_pids(app: AppProcess) -> list[int]:
    """The processes that an app has started and that still run."""
    listed = Path(f"/proc/{app.process.pid}/task/{app.process.pid}/children").read_text()
    return [int(pid) for pid in listed.split()]


def leftover_files(folder: Path) -> list[str]:
    """What exports have left on disk."""
    return [name for name in os.listdir(folder) if name.startswith("slotlock-export-")]
