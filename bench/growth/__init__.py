"""How the cost of a request grows with the data and the processes."""
