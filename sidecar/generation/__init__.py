"""Generated text → segments of the answer, and stop strings."""
