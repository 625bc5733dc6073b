"""The faults of a campaign, and the schedule that a seed chooses."""
