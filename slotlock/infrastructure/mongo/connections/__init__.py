"""Connections of the driver, as the commands of the hot paths use them."""
