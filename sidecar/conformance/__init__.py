"""Whether an endpoint keeps to the Responses protocol: its rules, and requests that put an endpoint to the test."""
