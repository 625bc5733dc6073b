"""Pages and counts of lists."""

import pytest

from slotlock.domain.shared.pagination import MAX_COUNT, exact_count


@pytest.mark.parametrize(
    ("count", "shown"), [(0, 0), (MAX_COUNT, MAX_COUNT), (MAX_COUNT + 1, None)]
)
def test_a_count_above_the_maximum_is_not_shown(count: int, shown: int | None) -> None:
    assert exact_count(count) == shown
