"""What a single kind of HTTP request does not show: crowds, the queue, fan-out."""
