"""The Responses protocol, for every surface: requests, items, events, errors and ids. Imports nothing else of ours."""
