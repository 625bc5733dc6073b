"""Selections of the parts of a slot."""

from dataclasses import fields
from itertools import product

from slotlock.domain.slots.listing import SlotSelection

PARTS = tuple(field.name for field in fields(SlotSelection))
SELECTIONS = tuple(SlotSelection(*chosen) for chosen in product((False, True), repeat=len(PARTS)))
NOTHING, EVERYTHING = SELECTIONS[0], SELECTIONS[-1]


def select(*parts: str) -> SlotSelection:
    """Return the selection of these parts only."""
    return SlotSelection(**{part: part in parts for part in PARTS})
