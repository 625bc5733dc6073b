"""A client of slotlock with gql, to copy from: `python -m slotlock_example` runs a tour."""
