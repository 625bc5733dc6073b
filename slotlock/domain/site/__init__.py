"""What a site shows of itself."""
