"""Goldens: what one request comes to, as files beside it in ``tests/data``."""
