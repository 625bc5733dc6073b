"""Runs the reverse proxies of deploy/ in front of two processes of slotlock."""
