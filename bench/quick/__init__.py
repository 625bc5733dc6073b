"""The quick benchmark against two Node peers."""
