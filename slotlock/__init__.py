"""slotlock: every place goes to exactly one person, and everyone sees what is left, live."""

__version__ = "0.1.0"
