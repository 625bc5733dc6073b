"""The app without one of its guards, under which the checker must find violations."""
