"""The configuration, the attempts and the invariants of a simulation."""
