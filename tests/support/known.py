"""Defects that the play found and that are still there; a name goes from OPEN when its defect does.

While a name is open the play avoids what leads there, and the scene that shows it must fail.
"""

import pytest

from tests.support.acts import Act
from tests.support.play import Play

OPEN = {"beyond the limit"}


def found(name: str) -> pytest.MarkDecorator:
    """Marks the scene of a defect: it must fail while the defect is open, and pass afterwards."""
    assert name
    return pytest.mark.xfail(name in OPEN, strict=True, reason=f"open defect: {name}")


def leads_to_a_known_defect(play: Play, act: Act) -> bool:
    """Whether an act might run into an open defect."""
    here = play.model.live(act.booking)
    if here is None or act.verb not in ("confirm", "extend"):
        return False
    slot, place = here
    return "beyond the limit" in OPEN and bool(play.model.elsewhere(slot, place.user, play.now))
