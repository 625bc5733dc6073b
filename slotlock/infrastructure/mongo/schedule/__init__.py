"""Lists of holidays in MongoDB."""
