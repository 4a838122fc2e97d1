"""Checks that a Responses endpoint keeps to the protocol: its rules, and requests that try an endpoint."""
