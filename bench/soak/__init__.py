"""The long run: people book while everything is killed around them, and what must still hold."""
