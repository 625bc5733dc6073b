"""How members get places in a slot."""

from enum import StrEnum


class SlotAdmission(StrEnum):
    """Whether members may book at once, or only through the admission queue."""

    ANY = "any"
    QUEUE_ONLY = "queue_only"
