"""What the school set itself of the site."""
