"""Exported files, downloaded over HTTP and read by other programs."""

import csv
import os
import re
from datetime import UTC, datetime
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any, NamedTuple

import httpx
from bson import ObjectId
from openpyxl import load_workbook

from tests.support.apps.processes import AppProcess
from tests.support.clients.booking_client import BookingClient
from tests.support.clients.client import GraphQLTestClient, Json
from tests.support.stores.empty_database import stored_database


class RosterUsers(NamedTuple):
    """Three members and an organizer, with names and groups."""

    ada: BookingClient
    ben: BookingClient
    cleo: BookingClient
    organizer: BookingClient


COURSE: Json = {
    "title": "Schwimmen für Anfänger",
    "location": "Bad, Bahn 3",
    "timeZone": "Europe/Berlin",
    "startTime": "2035-07-02T09:00:00+02:00",
    "endTime": "2035-07-02T10:30:00+02:00",
}
FILE_NAME = re.compile(
    r'attachment; filename="([a-z0-9-]+-)?(roster|teilnehmer|sign-in-sheets|slots|users|timetables)'
    r'-\d{4}-\d\d-\d\d\.(csv|xlsx|pdf)"'
    r"(; filename\*=UTF-8''[A-Za-z0-9%.-]+)?"
)
CREATE_LINK = """mutation(
  $id: ID!, $format: ExportFormat!, $separator: CsvSeparator, $language: ExportLanguage
  $grouping: ExportGrouping! = SLOT
) {
  createExportLink(
    id: $id, format: $format, separator: $separator, language: $language, grouping: $grouping
  ) {
    __typename ... on ExportLink { url expiresAt } ... on Refusal { code }
  }
}"""

CREATE_RESOURCE = """mutation($name: String!) {
  createResource(input: {name: $name}) { ... on Resource { id } }
}"""


async def create_resources(organizer: BookingClient, *names: str) -> list[str]:
    """Create resources and return their ids."""
    return [(await organizer.execute(CREATE_RESOURCE, name=name))["id"] for name in names]


async def get_checked(client: GraphQLTestClient, path: str) -> httpx.Response:
    """Send a GET request and return the response, which must not be an internal error."""
    response = await client.http.get(f"{client.url}/{path}", headers=client.headers)
    assert response.status_code != 500, response.text
    return response


async def download_export(client: GraphQLTestClient, path: str) -> bytes:
    """Download an export such as `slots/slot_...csv` and return its content."""
    response = await get_checked(client, f"exports/{path}")
    assert response.status_code == 200, response.text
    assert FILE_NAME.fullmatch(response.headers["content-disposition"])
    return response.content


def csv_rows(body: bytes) -> list[dict[str, str]]:
    """Return the rows of a CSV file, which must start with a byte order mark for Excel."""
    assert body.startswith(b"\xef\xbb\xbf")
    return list(csv.DictReader(StringIO(body.decode("utf-8-sig"), newline=""), strict=True))


def load_workbook_bytes(body: bytes) -> Any:
    """Return the workbook as openpyxl reads it."""
    return load_workbook(BytesIO(body))


async def set_name_and_groups(mongo_url: str, user: BookingClient, name: str, *groups: str) -> None:
    """Set the name and the groups of a user in the database."""
    user_id = ObjectId((await user.fetch_user_id())[-24:])
    users = stored_database(mongo_url)["users"]
    users.update_one({"_id": user_id}, {"$set": {"name": name, "groups": list(groups)}})


def insert_many_slots(
    mongo_url: str, campaign_id: str, slot_count: int, bookings_per_slot: int
) -> None:
    """Insert copies of the campaign's slot with this many bookings of unknown users each."""
    now = datetime.now(UTC)
    slots = stored_database(mongo_url)["slots"]
    template = slots.find_one({"campaign.id": ObjectId(campaign_id[-24:])})
    assert template is not None
    bookings = [{"id": ObjectId(), "user": ObjectId(), "at": now} for _ in range(bookings_per_slot)]
    slot = {
        **template,
        "capacity": max(bookings_per_slot, 1),
        "remaining": 0,
        "bookings": bookings,
    }
    slots.insert_many([{**slot, "_id": ObjectId()} for _ in range(slot_count)])


def fill_slot(mongo_url: str, slot_id: str, count: int) -> None:
    """Give a slot this many bookings of unknown users."""
    now = datetime.now(UTC)
    bookings = [{"id": ObjectId(), "user": ObjectId(), "at": now} for _ in range(count)]
    slots = stored_database(mongo_url)["slots"]
    filled = {"bookings": bookings, "capacity": count, "remaining": 0}
    slots.update_one({"_id": ObjectId(slot_id[-24:])}, {"$set": filled})


def child_pids(app: AppProcess) -> list[int]:
    """Return the ids of the child processes of an app."""
    listed = Path(f"/proc/{app.process.pid}/task/{app.process.pid}/children").read_text()
    return [int(pid) for pid in listed.split()]


def leftover_files(folder: Path) -> list[str]:
    """Return the names of the temporary files of exports in a folder."""
    return [name for name in os.listdir(folder) if name.startswith("slotlock-export-")]


async def create_export_link(
    client: BookingClient, id_: str, file_format: str = "CSV", **options: str
) -> str:
    """Create a link and return its path."""
    link = await client.execute(CREATE_LINK, id=id_, format=file_format, **options)
    assert link["__typename"] == "ExportLink", link
    return str(link["url"])
