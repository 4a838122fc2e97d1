"""The only connections the sidecar opens for a client: guarded fetches of remote images."""
