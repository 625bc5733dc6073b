"""Random GraphQL requests, many of them invalid, as Hypothesis strategies."""

from hypothesis import strategies as st

from tests.support.clients.client import BOOK_SLOT, WATCH_AVAILABILITY

QUERIES = [
    "{ __typename }",
    "mutation { logout }",
    "{",
    "{ nothing }",
    "query A { me { id } } query B { me { id } }",
    "query($x: Int!) { slots(first: $x) { nodes { id } } }",
    "query($f: SlotsFilter) { slots(filter: $f) { nodes { id } } }",
    WATCH_AVAILABILITY,
    BOOK_SLOT,
    "subscription { myBookings { action } }",
    "{ slots(first: 99999999999999999999) { nodes { id } } }",
    "{ nodes(ids: [[[[1]]]]) { id } }",
    "{ node(id: 1e999) { id } }",
    "fragment F on Query { ...F } { ...F }",
    "{ __schema { types { name } } }",
]

leaves = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
json_values = st.recursive(
    leaves, lambda v: st.lists(v, max_size=4) | st.dictionaries(st.text(max_size=9), v, max_size=4)
)
variables = st.dictionaries(
    st.sampled_from(["x", "f", "slots", "slot", "é"]), json_values, max_size=4
)
request_bodies = st.fixed_dictionaries(
    {"query": st.sampled_from(QUERIES) | st.text(max_size=60) | json_values},
    optional={
        "variables": variables | json_values,
        "operationName": st.sampled_from(["A", "B", "", "x" * 9000]) | json_values,
        "extensions": json_values,
        "more": json_values,
    },
)
