"""A process that serves requests collects seldom, but it collects."""

import gc
import weakref

from slotlock.api.server.garbage_collection import THRESHOLDS, tuned_garbage_collection


class Node:
    """An object that refers to itself, so that only a collection deletes it."""

    def __init__(self) -> None:
        self.itself = self


def test_what_exists_is_not_visited_again_until_the_process_stops() -> None:
    before, frozen_before = gc.get_threshold(), gc.get_freeze_count()
    with tuned_garbage_collection():
        assert gc.get_freeze_count() > frozen_before
        assert gc.get_threshold() == THRESHOLDS
    assert (gc.get_threshold(), gc.get_freeze_count()) == (before, 0)


def test_garbage_of_requests_is_deleted() -> None:
    with tuned_garbage_collection():
        garbage = weakref.ref(Node())
        nodes: list[list[int]] = []
        while garbage() is not None:
            nodes.append([len(nodes)])
            # The threshold counts allocations minus deallocations, also those of other objects.
            assert len(nodes) <= 2 * THRESHOLDS[0]
