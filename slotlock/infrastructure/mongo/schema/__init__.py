"""Documents of other versions of slotlock: their version, and what this one does not know."""
