"""Exports are built one at a time in another process, and leave nothing behind."""

import asyncio
import os
import resource
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import pytest
from starlette.requests import ClientDisconnect, Request
from starlette.types import Message

from slotlock.api.exports import export_builder
from slotlock.api.exports.export_builder import (
    ExportBuilder,
    ExportBusy,
    ExportFailed,
    ExportFile,
    ExportJob,
)
from slotlock.api.exports.export_endpoint import _cancel_on_disconnect
from slotlock.devserver.embedded import EmbeddedServers
from slotlock.services.container import utc_now
from tests.support.apps.fork_server import forked_app
from tests.support.apps.processes import AppProcess, app_environment, free_port
from tests.support.cli.forked_exports import STARTED_EXPORTS
from tests.support.clients.booking_client import BookingClient
from tests.support.clients.campaigns import create_campaign
from tests.support.clients.exports import (
    child_pids,
    csv_rows,
    download_export,
    fill_slot,
    insert_many_slots,
    leftover_files,
    load_workbook_bytes,
)
from tests.support.polling import eventually, wait_until
from tests.support.scenarios.led_course import led_course

UNKNOWN_ID = "0" * 24


@pytest.fixture
def own_app(servers: EmbeddedServers, tmp_path: Path) -> Iterator[tuple[AppProcess, Path]]:
    """Yield an app with a folder of its own for temporary files."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    settings = {**app_environment(servers, "exports"), "TMPDIR": str(folder), STARTED_EXPORTS: "1"}
    with forked_app(settings, tmp_path / "log") as app:
        yield app, folder


@pytest.fixture
def app(own_app: tuple[AppProcess, Path]) -> AppProcess:
    """Return the app of the module, at which the organizer is signed in."""
    return own_app[0]


def builder_pids(app: AppProcess) -> list[int]:
    """Return the children that run the builder; stopping one before would stop its parent, too."""
    commands: dict[int, bytes] = {}
    for pid in child_pids(app):
        with suppress(FileNotFoundError, ProcessLookupError):  # it has just ended
            commands[pid] = Path(f"/proc/{pid}/cmdline").read_bytes()
    return [pid for pid, command in commands.items() if b"exports.export_process" in command]


async def create_large_campaign(
    app: AppProcess, organizer: BookingClient, slot_count: int, bookings_per_slot: int
) -> str:
    """Create a campaign with this many slots; return its id."""
    campaign_id = await create_campaign(organizer)
    await organizer.add_slot(campaignId=campaign_id, capacity=1000)
    url = app.environment["SLOTLOCK_MONGO_URL"]
    insert_many_slots(url, campaign_id, slot_count - 1, bookings_per_slot)
    return campaign_id


def start_export(
    organizer: BookingClient, campaign_id: str, file_format: str
) -> asyncio.Task[httpx.Response]:
    """Request the roster of a campaign; the task returns the response."""
    url = f"{organizer.url}/exports/campaigns/{campaign_id}.{file_format}"
    return asyncio.create_task(organizer.http.get(url, headers=organizer.headers))


async def test_what_is_built_for_a_client_ends_when_the_client_disconnects() -> None:
    ended = asyncio.Event()

    async def build() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    async with asyncio.timeout(20):  # without the cancellation, it would wait for ever
        with pytest.raises(ClientDisconnect):
            await _cancel_on_disconnect(Request({"type": "http"}, receive), build())
    assert ended.is_set()


async def test_a_client_that_disconnects_cancels_its_export(
    organizer: BookingClient, own_app: tuple[AppProcess, Path]
) -> None:
    app, folder = own_app
    campaign_id = await create_large_campaign(app, organizer, 100, 100)
    for file_format in ("csv", "xlsx"):
        request = start_export(organizer, campaign_id, file_format)
        await asyncio.to_thread(wait_until, lambda: child_pids(app) != [], "the export has started")
        request.cancel()
        await asyncio.to_thread(wait_until, lambda: not child_pids(app), "the export has ended")
        await eventually(lambda: leftover_files(folder) == [], "its files are deleted")
    # Later exports do not wait for a cancelled one, and leave nothing behind either.
    small_campaign_id = await create_large_campaign(app, organizer, 2, 5)
    for file_format in ("csv", "xlsx", "pdf"):
        await download_export(organizer, f"campaigns/{small_campaign_id}.{file_format}")
    await eventually(lambda: not leftover_files(folder) and not child_pids(app), "nothing is left")
    assert " ERROR " not in app.log


async def test_an_organizer_who_signs_out_during_an_export_does_not_get_the_file(
    organizer: BookingClient, own_app: tuple[AppProcess, Path]
) -> None:
    app, folder = own_app
    # Large enough for the test to stop its process before it ends.
    campaign_id = await create_large_campaign(app, organizer, 100, 100)
    request = start_export(organizer, campaign_id, "csv")
    await asyncio.to_thread(wait_until, lambda: builder_pids(app) != [], "the export has started")
    (pid,) = builder_pids(app)
    os.kill(pid, signal.SIGSTOP)
    assert await organizer.execute("mutation { logout }") is True
    os.kill(pid, signal.SIGCONT)
    response = await request
    assert (response.status_code, response.json()["code"]) == (401, "UNAUTHENTICATED")
    await eventually(lambda: leftover_files(folder) == [], "its files are deleted")


async def test_who_stops_leading_a_course_during_an_export_does_not_get_the_file(
    own_app: tuple[AppProcess, Path], http: httpx.AsyncClient
) -> None:
    app, folder = own_app
    course = await led_course(app, http)
    leader = course.clients["leader"]
    fill_slot(app.environment["SLOTLOCK_MONGO_URL"], course.slot_id, 1000)
    url = f"{leader.url}/exports/slots/{course.slot_id}.xlsx"
    request = asyncio.create_task(http.get(url, headers=leader.headers))
    await asyncio.to_thread(wait_until, lambda: builder_pids(app) != [], "the export has started")
    (pid,) = builder_pids(app)
    os.kill(pid, signal.SIGSTOP)
    await course.set_leader("other")
    os.kill(pid, signal.SIGCONT)
    assert (await request).status_code == 403
    await eventually(lambda: leftover_files(folder) == [], "its files are deleted")


async def test_a_server_that_is_killed_ends_its_exports(
    organizer: BookingClient, own_app: tuple[AppProcess, Path]
) -> None:
    app, folder = own_app
    campaign_id = await create_large_campaign(app, organizer, 100, 100)
    request = start_export(organizer, campaign_id, "xlsx")
    await asyncio.to_thread(wait_until, lambda: leftover_files(folder) != [], "sheets are written")
    (pid,) = child_pids(app)
    app.kill()
    await asyncio.to_thread(wait_until, lambda: not Path(f"/proc/{pid}").exists(), "it has ended")
    await asyncio.gather(request, return_exceptions=True)
    assert leftover_files(folder) == []


async def test_exports_are_built_one_at_a_time_and_wait_for_a_limited_time(
    mongo_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    exports, job = ExportBuilder(mongo_url), ExportJob("slot", UNKNOWN_ID, "csv", utc_now())
    outcomes = await asyncio.gather(*(exports.build(job) for _ in range(2)))
    for outcome in outcomes:
        assert isinstance(outcome, ExportFile)
        outcome.file.close()
    monkeypatch.setattr(export_builder, "WAIT_TIMEOUT_S", 0.0)
    first = asyncio.create_task(exports.build(job))
    await asyncio.sleep(0)
    assert await exports.build(job) == ExportBusy(export_builder.RETRY_AFTER_S)
    outcome = await first
    assert isinstance(outcome, ExportFile)
    outcome.file.close()


async def test_an_unavailable_mongodb_fails_an_export() -> None:
    url = f"mongodb://127.0.0.1:{free_port()}/own?replicaSet=rs0&directConnection=true"
    job = ExportJob("campaign", UNKNOWN_ID, "xlsx", utc_now())
    assert await ExportBuilder(url).build(job) == ExportFailed()


@pytest.mark.parametrize("slot_count", [1_000, 1_001])
async def test_up_to_a_thousand_slots_have_a_sheet_each_and_more_share_one(
    organizer: BookingClient,
    app: AppProcess,
    slot_count: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    run_with_few_files = (
        "import resource, sys, runpy; "
        f"resource.setrlimit(resource.RLIMIT_NOFILE, (256, {hard_limit})); "
        "runpy.run_module('slotlock.api.exports.export_process', run_name='__main__')"
    )
    monkeypatch.setattr(export_builder, "COMMAND", (sys.executable, "-c", run_with_few_files))
    campaign_id = await create_large_campaign(app, organizer, slot_count, 1)
    exports = ExportBuilder(app.environment["SLOTLOCK_MONGO_URL"])
    outcome = await exports.build(ExportJob("campaign", campaign_id[-24:], "xlsx", utc_now()))
    assert isinstance(outcome, ExportFile)
    with outcome.file:
        book = load_workbook_bytes(outcome.file.read())
    names = book.sheetnames
    assert book["Summary"].max_row == slot_count + 2
    assert len({name.casefold() for name in names}) == len(names)
    if slot_count == 1_000:
        assert len(names) == 1_002
        # Each sheet has a header and a booking, except that of the slot without bookings.
        assert sorted(sheet.max_row for sheet in book.worksheets[2:])[:3] == [1, 2, 2]
    else:
        assert names == ["Summary", "Waiting lists", "Bookings"]
        assert book["Bookings"].max_row == slot_count  # a header, and one slot has no booking
    rows = csv_rows(await download_export(organizer, f"campaigns/{campaign_id}.csv"))
    assert len(rows) == slot_count - 1
