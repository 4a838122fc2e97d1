"""Envoy's configuration, made from the sidecar's own."""
