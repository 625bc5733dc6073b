"""Attempts of an organizer's change whose write depends on versions that were read.

Bookings are tried again in `services/commands/commit.py`.
"""

# An attempt fails only if another change succeeded. No lock orders these changes, so that many
# bookings cannot keep an organizer out, and an attempt takes less time than passes between two
# bookings of one slot.
MAX_CHANGE_ATTEMPTS = 20


def attempts() -> range:
    """Return the attempts of one change: load and decide again in each."""
    return range(MAX_CHANGE_ATTEMPTS)
