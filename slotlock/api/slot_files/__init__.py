"""The courses of a campaign as a file."""
