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

from tests.support.client import Client, Json
from tests.support.desk import Person
from tests.support.processes import AppProcess

CAMPAIGN = """mutation($input: CreateCampaignInput!) { createCampaign(input: $input) {
  __typename ... on Campaign { id } ... on InvalidInput { fields { field message } } } }"""


async def fetched(who: Client, path: str) -> httpx.Response:
    """Whatever is answered; never a failure of ours."""
    response = await who.http.get(f"{who.url}/{path}", headers=who.headers)
    assert response.status_code != 500, response.text
    return response


async def exported(who: Client, path: str) -> bytes:
    """A file that there is: `slots/slot_...csv`."""
    response = await fetched(who, f"exports/{path}")
    assert response.status_code == 200, response.text
    name = path.partition("/")[2]
    assert response.headers["content-disposition"] == f'attachment; filename="{name}"'
    return response.content


def rows_of(body: bytes) -> list[dict[str, str]]:
    """The rows of a file of CSV, as Excel reads it: the byte order mark tells that it is UTF-8."""
    assert body.startswith(b"\xef\xbb\xbf")
    return list(csv.DictReader(StringIO(body.decode("utf-8-sig"), newline=""), strict=True))


def book_of(body: bytes) -> Any:
    """A workbook, as another program opens it."""
    return load_workbook(BytesIO(body))


async def campaign(organiser: Person, name: str = "A campaign", **fields: object) -> str:
    """The id of a new published campaign that is open."""
    times = {"opensAt": "2020-01-01T00:00:00Z", "closesAt": "2039-01-01T00:00:00Z"}
    given = {"name": name, "published": True, **times, **fields}
    made: Json = await organiser.ask(CAMPAIGN, input=given)
    assert made["__typename"] == "Campaign", made
    return str(made["id"])


async def rename(mongo_url: str, person: Person, name: str, *groups: str) -> None:
    """Let a person be called so and carry these groups."""
    user_id = ObjectId((await person.id())[-24:])
    with closing(MongoClient[Json](mongo_url)) as client:
        people = client.get_default_database()["users"]
        people.update_one({"_id": user_id}, {"$set": {"name": name, "groups": list(groups)}})


def many_slots(mongo_url: str, campaign_id: str, slots: int, bookings: int) -> None:
    """Fill a campaign with slots, as if people had booked for weeks."""
    now = datetime.now(UTC)
    with closing(MongoClient[Json](mongo_url)) as client:
        kept = client.get_default_database()["slots"]
        pattern = kept.find_one({"campaign.id": ObjectId(campaign_id[-24:])})
        assert pattern is not None
        entries = [{"id": ObjectId(), "user": ObjectId(), "at": now} for _ in range(bookings)]
        made = {**pattern, "capacity": max(bookings, 1), "remaining": 0, "bookings": entries}
        kept.insert_many([{**made, "_id": ObjectId()} for _ in range(slots)])


def children_of(app: AppProcess) -> list[int]:
    """The processes that an app has started and that still run."""
    listed = Path(f"/proc/{app.process.pid}/task/{app.process.pid}/children").read_text()
    return [int(pid) for pid in listed.split()]


def files_left_in(folder: Path) -> list[str]:
    """What exports have left on disk."""
    return [name for name in os.listdir(folder) if name.startswith("slotlock-export-")]
