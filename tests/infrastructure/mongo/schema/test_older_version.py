"""A process of an older version changes slots: lists of this version find and order them."""

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from datetime import UTC
from pathlib import Path

import pytest

from slotlock.devserver.embedded import EmbeddedServers
from slotlock.infrastructure.mongo.client import Document
from slotlock.infrastructure.mongo.slots.slot_documents import list_fields
from tests.support.apps.deployment import Deployment, app_variant, open_deployment
from tests.support.apps.processes import AppProcess, app_environment
from tests.support.apps.versions.previous_version import SKIPPED_REPAIRS
from tests.support.clients.client import Json, hours_from_now
from tests.support.polling import wait_until

Pair = tuple[AppProcess, AppProcess]
DAY = 24
LIST = """query($order: SlotOrder!) {
  slots(first: 50, orderBy: $order) { nodes { id title } }
}"""


@contextmanager
def older_and_current(
    servers: EmbeddedServers, directory: Path, without_guards: str = ""
) -> Iterator[Pair]:
    """Run a process of the previous version and one of this version on one new database."""
    environment = app_environment(servers, f"older_version_{without_guards or 'repaired'}")
    with (
        app_variant(environment, directory / "old", without_guards="previous-version") as older,
        app_variant(environment, directory / "new", without_guards=without_guards) as current,
    ):
        yield older, current


@pytest.fixture(scope="module")
def pair(servers: EmbeddedServers, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Yield a process of the previous version and one of this version."""
    with older_and_current(servers, tmp_path_factory.mktemp("older_version")) as opened:
        yield opened


@pytest.fixture
async def deployment(pair: Pair, log_dir: Path) -> AsyncIterator[Deployment]:
    """Open the deployment of both processes, with new users."""
    async with open_deployment(pair[0].environment, log_dir) as opened:
        yield opened


async def listed(deployment: Deployment, app: AppProcess, order: str = "START_ASC") -> list[Json]:
    """Return the slots that an organizer lists at a process."""
    nodes: list[Json] = (await deployment.organizer(app).execute(LIST, order=order))["nodes"]
    return nodes


async def add_distant_slot(deployment: Deployment, app: AppProcess) -> str:
    """Create a slot that starts in 40 days, and return its id."""
    times = {"startTime": hours_from_now(40 * DAY), "endTime": hours_from_now(40 * DAY + 1)}
    return await deployment.organizer(app).add_slot(title="Zeta", **times)


def has_own_list_fields(slot: Document) -> bool:
    """Return whether what lists find a slot by follows from its title, start and end."""
    times = {name: slot[name].replace(tzinfo=UTC) for name in ("start", "end")}
    return slot.items() >= list_fields({**slot, **times}).items()


def wait_until_repaired(deployment: Deployment, slot_id: str) -> None:
    """Wait until a process has repaired the slot. Both of them skip most sweeps."""

    def is_repaired() -> bool:
        return has_own_list_fields(deployment.slot_document(slot_id))

    wait_until(is_repaired, "the slot is repaired")


async def test_a_slot_that_an_older_process_moves_is_listed_while_it_is_in_progress(
    deployment: Deployment, pair: Pair
) -> None:
    older, current = pair
    slot_id = await add_distant_slot(deployment, current)
    times = {"startTime": hours_from_now(-1), "endTime": hours_from_now(1)}
    await deployment.organizer(older).update_slot(slot_id, title="Alpha", **times)
    wait_until_repaired(deployment, slot_id)
    for order in ("START_ASC", "TITLE_ASC"):
        found = await listed(deployment, current, order)
        assert {"id": slot_id, "title": "Alpha"} in found
        assert order == "START_ASC" or found == sorted(found, key=lambda each: str(each["title"]))


@pytest.mark.parametrize(
    "change",
    [
        {"startTime": hours_from_now(30 * DAY)},
        {"endTime": hours_from_now(300 * DAY)},
        {"title": "Eta"},
    ],
    ids=["start", "end", "title"],
)
async def test_what_lists_find_a_slot_by_follows_each_change_of_an_older_process(
    deployment: Deployment, pair: Pair, change: Json
) -> None:
    older, current = pair
    slot_id = await add_distant_slot(deployment, current)
    before = deployment.slot_document(slot_id)
    assert has_own_list_fields(before)
    await deployment.organizer(older).update_slot(slot_id, **change)
    wait_until_repaired(deployment, slot_id)
    after = deployment.slot_document(slot_id)
    names = ("spans", "titleKey", "searchWords")
    assert [after[name] for name in names] != [before[name] for name in names]
    assert after["version"] == before["version"] + 1  # the repair is no change of the slot


async def test_a_slot_that_an_older_process_creates_gets_what_lists_find_it_by(
    deployment: Deployment, pair: Pair
) -> None:
    slot_id = await add_distant_slot(deployment, pair[0])
    wait_until_repaired(deployment, slot_id)


async def test_control_without_repairs_a_slot_in_progress_is_missing_from_lists(
    servers: EmbeddedServers, tmp_path: Path, log_dir: Path
) -> None:
    with older_and_current(servers, tmp_path, "list-repairs") as (older, current):
        async with open_deployment(current.environment, log_dir) as deployment:
            slot_id = await add_distant_slot(deployment, current)
            times = {"startTime": hours_from_now(-1), "endTime": hours_from_now(1)}
            await deployment.organizer(older).update_slot(slot_id, **times)
            skipped = deployment.mongo.get_default_database()[SKIPPED_REPAIRS]
            skipped.delete_many({})

            def is_skipped_by_both() -> bool:
                # Two processes take turns, and each repairs in every eighth sweep.
                return any(each["count"] >= 3 for each in skipped.find())

            wait_until(is_skipped_by_both, "some repairs are skipped")
            assert not has_own_list_fields(deployment.slot_document(slot_id))
            assert slot_id not in {each["id"] for each in await listed(deployment, current)}
