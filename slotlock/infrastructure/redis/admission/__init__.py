"""The admission queue on Redis Streams."""
