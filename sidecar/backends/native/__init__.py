"""Upstreams that speak the Responses API themselves: requests to them, and their answers as they pass through."""
