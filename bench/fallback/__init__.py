"""The bench's helpers in Python, for machines without a C compiler."""
