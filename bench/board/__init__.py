"""What the board costs: its sizes, and what a browser measures in its pages."""
