"""The clients of a campaign: users that book, and subscribers, at apps that may fail."""
