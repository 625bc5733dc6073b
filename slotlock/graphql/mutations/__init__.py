"""What clients can ask to change, one file a family."""
