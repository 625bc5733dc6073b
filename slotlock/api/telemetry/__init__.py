"""Logs, traces and metrics of a process, as the settings ask for them."""
