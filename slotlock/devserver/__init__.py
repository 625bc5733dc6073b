"""The development server: the app with its own MongoDB and Valkey."""
