"""One request's life as a state machine without I/O."""
