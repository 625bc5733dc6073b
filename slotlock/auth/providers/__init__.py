"""The providers of sign-ins, as settings describe them and as they answer."""
