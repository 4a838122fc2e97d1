"""The configuration: its values, and how a file becomes them."""
