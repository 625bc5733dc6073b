"""Imports of as many courses as a file can have, by a process that is killed meanwhile."""

import asyncio
from contextlib import suppress
from pathlib import Path

import httpx
from pymongo import AsyncMongoClient

from slotlock.devserver.embedded import EmbeddedServers
from slotlock.infrastructure.mongo.client import Document
from tests.api.slot_files.test_slot_import import import_slots, post_slots
from tests.support.apps.processes import app_environment, app_process
from tests.support.clients.booking_client import create_booking_clients
from tests.support.clients.campaigns import create_campaign
from tests.support.clients.exports import download_export
from tests.support.polling import eventually, poll_until

ROWS = 2_000
COURSES = "number,title,first day,last day,weekly,start time,end time,places,teacher\n" + "".join(
    f"{row},Course {row},2035-09-04,2035-10-02,Tue,8:00,9:00,12,Teacher {row % 50}\n"
    for row in range(ROWS)
)


async def test_10_000_meetings_change_all_or_none_although_the_process_is_killed(
    servers: EmbeddedServers, http: httpx.AsyncClient, tmp_path: Path
) -> None:
    settings = app_environment(servers, "killed_import")
    with (
        app_process(settings, tmp_path / "a") as killed,
        app_process(settings, tmp_path / "b") as app,
    ):
        _, organizer = create_booking_clients(http, 0, killed)
        campaign = await create_campaign(organizer)
        create = "&createResources=true"
        assert await import_slots(organizer, campaign, COURSES, create) == {"created": ROWS}
        export = await download_export(organizer, f"campaigns/{campaign}/slots.csv")
        assert await import_slots(organizer, campaign, export) == {"unchanged": ROWS}
        later = export.replace(b"08:00", b"08:30")
        sending = asyncio.create_task(post_slots(organizer, campaign, later))
        async with AsyncMongoClient[Document](settings["SLOTLOCK_MONGO_URL"]) as client:
            slots = client.get_default_database()["slots"]
            of_import = {"ns": slots.full_name, "transaction": {"$exists": True}, "op": "update"}
            pipeline: list[Document] = [{"$currentOp": {"allUsers": True}}, {"$match": of_import}]

            async def is_writing() -> bool:
                assert not sending.done()
                return bool(await (await client.admin.aggregate(pipeline)).to_list())

            await eventually(is_writing, "the transaction writes slots")
            killed.kill()
            with suppress(httpx.HTTPError):
                await sending
            starts = await slots.distinct("start")
        assert len(starts) == 1
        organizer.url = app.url
        # MongoDB aborts the transaction of the killed process after 5 s; meanwhile others get 503.
        response = await poll_until(
            lambda: http.post(
                f"{app.url}/slots/import?campaign={campaign}",
                content=later,
                headers={**organizer.headers, "Content-Type": "text/csv"},
            ),
            lambda response: response.status_code != 503,
            "an import after the killed one",
        )
        assert response.status_code == 200, response.text
        assert await import_slots(organizer, campaign, later) == {"unchanged": ROWS}
