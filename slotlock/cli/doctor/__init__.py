"""`slotlock doctor`: checks what a deployment needs, and says what to do about the rest."""
