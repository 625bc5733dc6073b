"""The admission queue: requests, batches and tickets."""
