"""The Responses wire: requests, items, the response object, events, errors and ids. Imports nothing else of ours."""
