"""Selections of the parts of a slot, each with all facts."""

from dataclasses import fields
from itertools import product

from slotlock.domain.slots.listing import SlotSelection

PARTS = tuple(field.name for field in fields(SlotSelection) if field.type is bool)
SELECTIONS = tuple(
    SlotSelection(**dict(zip(PARTS, chosen, strict=True)))  # type: ignore[arg-type]
    for chosen in product((False, True), repeat=len(PARTS))
)
NOTHING, EVERYTHING = SELECTIONS[0], SELECTIONS[-1]


def select(*parts: str) -> SlotSelection:
    """Return the selection of these parts and of all facts."""
    return SlotSelection(**{part: part in parts for part in PARTS})  # type: ignore[arg-type]
