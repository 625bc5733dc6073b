"""Responses that many subscribers share, written to each socket without a task switch."""
