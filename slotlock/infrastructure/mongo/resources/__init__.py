"""Documents of resources."""
