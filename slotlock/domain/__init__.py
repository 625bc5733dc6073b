"""The rules of booking: pure, synchronous, on frozen values, with the time passed in."""
