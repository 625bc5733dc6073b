"""The memory: MongoDB keeps the truth, Redis hurries it; no document or key leaves this room."""
