"""A model that plays a script found in its prompt."""
