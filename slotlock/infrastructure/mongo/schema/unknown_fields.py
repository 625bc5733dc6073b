"""The fields of a subdocument that this version does not know.

A subdocument that changes or moves is written again as a whole. Its value in the domain therefore
has the subdocument that it was loaded from, as `stored`.
"""

from collections.abc import Collection

from slotlock.domain.shared.values import Stored
from slotlock.infrastructure.mongo.client import Document


def unknown_fields(stored: Stored, known: Collection[str]) -> Document:
    """Return the fields that a newer version stored; none for a value that was not loaded."""
    if not stored:
        return {}
    return {name: value for name, value in stored.items() if name not in known}
