"""Links that work without a header: signed and short-lived."""
