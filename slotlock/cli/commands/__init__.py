"""Commands as they are declared; help, tables, JSON and the reference page follow from it."""
