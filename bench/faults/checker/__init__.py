"""The checker of a campaign: explains each response by the versions of a slot, or reports it."""
