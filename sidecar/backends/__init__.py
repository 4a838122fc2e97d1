"""The model runtimes that answers come from."""
