"""Building files: one at a time, beside the server, and nothing of it is left behind."""

import asyncio
import os
import resource
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from slotlock.api.exports import builder as building
from slotlock.api.exports.builder import ExportBuilder, ExportBusy, ExportFailed, ExportFile
from slotlock.devserver.embedded import EmbeddedServers
from slotlock.services.container import utc_now
from tests.support.apps.fork_server import forked_app
from tests.support.apps.processes import AppProcess, app_environment, free_port
from tests.support.clients.booking_client import BookingClient, create_booking_clients
from tests.support.clients.campaigns import create_campaign
from tests.support.clients.exports import (
    child_pids,
    csv_rows,
    download_export,
    insert_many_slots,
    leftover_files,
    load_workbook_bytes,
)
from tests.support.polling import wait_until

NOWHERE = "0" * 24


@pytest.fixture
def own_app(servers: EmbeddedServers, tmp_path: Path) -> Iterator[tuple[AppProcess, Path]]:
    """An app that keeps its temporary files in a folder of its own."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    settings = {**app_environment(servers, "exports"), "TMPDIR": str(folder)}
    with forked_app(settings, tmp_path / "log") as app:
        yield app, folder


def builders_of(app: AppProcess) -> list[int]:
    """The children that run by now; one that is stopped before that would stop its parent, too."""
    commands = {pid: Path(f"/proc/{pid}/cmdline").read_bytes() for pid in child_pids(app)}
    return [pid for pid, command in commands.items() if b"exports.child" in command]


async def full_campaign(
    app: AppProcess, organizer: BookingClient, slots: int, bookings: int
) -> str:
    """The id of a campaign with so many slots."""
    campaign_id = await create_campaign(organizer)
    await organizer.add_slot(campaignId=campaign_id, capacity=1000)
    url = app.environment["SLOTLOCK_MONGO_URL"]
    insert_many_slots(url, campaign_id, slots - 1, bookings)
    return campaign_id


def asked(organizer: BookingClient, campaign_id: str, form: str) -> asyncio.Task[httpx.Response]:
    """What an organiser is answered who asks for the roster of a campaign."""
    url = f"{organizer.url}/exports/campaigns/{campaign_id}.{form}"
    return asyncio.create_task(organizer.http.get(url, headers=organizer.headers))


async def test_a_file_leaves_nothing_behind_and_who_leaves_stops_it(
    own_app: tuple[AppProcess, Path], http: httpx.AsyncClient
) -> None:
    app, folder = own_app
    _, organizer = await create_booking_clients(http, 0, app)
    campaign_id = await full_campaign(app, organizer, 300, 300)
    for form in ("csv", "xlsx"):
        asking = asked(organizer, campaign_id, form)
        await asyncio.to_thread(wait_until, lambda: child_pids(app) != [], "it is being built")
        asking.cancel()
        await asyncio.to_thread(wait_until, lambda: not child_pids(app), "nobody builds it")
        assert leftover_files(folder) == []
    # Nobody waits for what was given up; and what is carried through leaves nothing either.
    small = await full_campaign(app, organizer, 2, 5)
    for form in ("csv", "xlsx"):
        await download_export(organizer, f"campaigns/{small}.{form}")
    assert (leftover_files(folder), child_pids(app)) == ([], [])
    assert " ERROR " not in app.log


async def test_a_file_that_took_long_is_for_who_is_still_signed_in_when_it_is_whole(
    own_app: tuple[AppProcess, Path], http: httpx.AsyncClient
) -> None:
    app, folder = own_app
    _, organizer = await create_booking_clients(http, 0, app)
    campaign_id = await full_campaign(app, organizer, 2, 5)
    asking = asked(organizer, campaign_id, "csv")
    await asyncio.to_thread(wait_until, lambda: builders_of(app) != [], "it is being built")
    (builder,) = builders_of(app)
    os.kill(builder, signal.SIGSTOP)
    assert await organizer.execute("mutation { logout }") is True
    os.kill(builder, signal.SIGCONT)
    response = await asking
    assert (response.status_code, response.json()["code"]) == (401, "UNAUTHENTICATED")
    assert leftover_files(folder) == []


async def test_a_server_that_is_killed_takes_what_it_builds_with_it(
    own_app: tuple[AppProcess, Path], http: httpx.AsyncClient
) -> None:
    app, folder = own_app
    _, organizer = await create_booking_clients(http, 0, app)
    campaign_id = await full_campaign(app, organizer, 300, 300)
    asking = asked(organizer, campaign_id, "xlsx")
    await asyncio.to_thread(wait_until, lambda: leftover_files(folder) != [], "sheets are written")
    (builder,) = child_pids(app)
    app.kill()
    await asyncio.to_thread(wait_until, lambda: not Path(f"/proc/{builder}").exists(), "it ends")
    await asyncio.gather(asking, return_exceptions=True)
    assert leftover_files(folder) == []


async def test_files_are_built_one_after_the_other_and_nobody_waits_for_ever(
    one_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    exports = ExportBuilder(one_url, utc_now)
    waited = await asyncio.gather(*(exports.build("slot", NOWHERE, "csv") for _ in range(2)))
    for built in waited:
        assert isinstance(built, ExportFile)
        built.file.close()
    monkeypatch.setattr(building, "WAIT_TIMEOUT_S", 0.0)
    first = asyncio.create_task(exports.build("slot", NOWHERE, "csv"))
    await asyncio.sleep(0)
    assert await exports.build("slot", NOWHERE, "csv") == ExportBusy(building.RETRY_AFTER_S)
    outcome = await first
    assert isinstance(outcome, ExportFile)
    outcome.file.close()


async def test_a_mongodb_that_is_away_is_told(one_url: str) -> None:
    away = f"mongodb://127.0.0.1:{free_port()}/own?replicaSet=rs0&directConnection=true"
    assert await ExportBuilder(away, utc_now).build("campaign", NOWHERE, "xlsx") == ExportFailed()


@pytest.mark.parametrize("slots", [1_000, 1_001])
async def test_a_thousand_slots_have_a_sheet_each_and_more_share_one(
    app: AppProcess, http: httpx.AsyncClient, slots: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As a login shell would let it have: fewer files than sheets.
    limited = "import resource, sys, runpy; resource.setrlimit(resource.RLIMIT_NOFILE, (256, {}));"
    limited = limited.format(resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    run = f"{limited} runpy.run_module('slotlock.api.exports.child', run_name='__main__')"
    monkeypatch.setattr(building, "COMMAND", (sys.executable, "-c", run))
    _, organizer = await create_booking_clients(http, 0, app)
    campaign_id = await full_campaign(app, organizer, slots, 1)
    exports = ExportBuilder(app.environment["SLOTLOCK_MONGO_URL"], utc_now)
    built = await exports.build("campaign", campaign_id[-24:], "xlsx")
    assert isinstance(built, ExportFile)
    with built.file:
        book = load_workbook_bytes(built.file.read())
    names = book.sheetnames
    assert book["Summary"].max_row == slots + 2
    assert len({name.casefold() for name in names}) == len(names)
    if slots == 1_000:
        assert len(names) == 1_001
        # A header and a booking; in one of them only a header.
        assert sorted(sheet.max_row for sheet in book.worksheets[1:])[:3] == [1, 2, 2]
    else:
        assert names == ["Summary", "Bookings"]
        assert book["Bookings"].max_row == slots  # a header, and one slot that nobody booked
    assert (
        len(csv_rows(await download_export(organizer, f"campaigns/{campaign_id}.csv"))) == slots - 1
    )


@pytest.fixture
def one_url(app: AppProcess) -> str:
    """MongoDB, as the app has it."""
    return app.environment["SLOTLOCK_MONGO_URL"]
