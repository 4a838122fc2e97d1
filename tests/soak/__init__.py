"""A soak: mixed requests on real parts, of which some are killed now and then, leave nothing behind.

``./dev soak`` runs it for long; ``tests/e2e/test_soak.py`` for a few thousand requests, without faults.
"""
