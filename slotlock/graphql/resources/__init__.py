"""Resources as clients see them."""
