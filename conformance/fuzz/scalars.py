"""Generators for the custom scalars of the schema."""

from hypothesis import strategies as st
from schemathesis.graphql import nodes, scalar

ZONES = ("Europe/Berlin", "UTC", "Asia/Kathmandu")


def register() -> None:
    """Register the generators in this process."""
    scalar("TimeZone", st.sampled_from(ZONES).map(nodes.String))
    scalar("EmailAddress", st.one_of(st.emails(), st.text(max_size=300)).map(nodes.String))
    scalar("LocalTime", st.times().map(lambda moment: f"{moment:%H:%M}").map(nodes.String))
