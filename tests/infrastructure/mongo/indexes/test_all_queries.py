"""The checks of plans and shard keys see a query only if `run_all_queries` calls its method."""

import inspect
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

import pytest

from slotlock.infrastructure.mongo.repositories import Repositories
from tests.infrastructure.mongo.test_query_plans import Recorded
from tests.support.stores.all_queries import run_all_queries
from tests.support.stores.query_plans import recorded_commands

__all__ = ["recorded_commands"]


# Methods that `run_all_queries` does not call yet. Remove one when it does; add none.
NOT_YET_CALLED = {
    "AccountAdminWriter": "end_sessions insert replace_password update",
    "AuditLogQueries": "page",
    "CalendarSlotQueries": (
        "find_by_user find_created_by find_of_resource find_past find_upcoming find_visible"
    ),
    "CalendarTokenRepository": "delete find_created_at find_user save",
    "CampaignRepository": "find_slots_to_copy",
    "CampaignStatisticsQueries": "load",
    "ChangeStream": "close database_id next_changes open",
    "DescriptionQueries": "find_of_campaigns find_of_slots",
    "EndedBookingRepository": "count_of_slot count_of_user page_of_user",
    "HolidayListRepository": "count delete find insert page update",
    "IdempotencyRecords": "find_many",
    "IndexBuilder": "create_on_empty",
    "InvitationRepository": "save_reset",
    "ResourceRepository": "delete find_all find_busy find_names",
    "SlotRepository": "find find_each_for_update find_series_version find_versions",
    # A lost token is rare enough for a scan.
    "SlotChangesReader": "find_changed_since open_stream",
    "SlotWriter": "commit_group defer_sweep",
    "UnplacedUserQueries": "page",
    "WriteProbe": "is_writable",
}


def public_methods(repository: type) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield the methods of a repository that wait for MongoDB, with their names."""
    for name, method in vars(repository).items():
        if not name.startswith("_") and inspect.iscoroutinefunction(method):
            yield name, method


async def test_every_method_of_a_repository_is_among_all_queries_or_known_to_be_missing(
    recorded_commands: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = set[str]()

    def counted(full_name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(method)
        def call(*args: object, **options: object) -> object:
            missing.discard(full_name)
            return method(*args, **options)

        return call

    for repository in {type(each) for each in vars(Repositories(recorded_commands[0])).values()}:
        for name, method in public_methods(repository):
            full_name = f"{repository.__name__}.{name}"
            missing.add(full_name)
            monkeypatch.setattr(repository, name, counted(full_name, method))
    assert len(missing) > 60
    await run_all_queries(recorded_commands[0])
    known = {f"{name}.{each}" for name, them in NOT_YET_CALLED.items() for each in them.split()}
    assert missing - known == set()
    assert known - missing == set()
