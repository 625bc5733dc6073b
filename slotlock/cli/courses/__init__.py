"""Commands for the courses of a campaign."""
