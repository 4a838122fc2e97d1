"""Metrics in Prometheus's form: their table, the files that a node's workers keep them in, and who counts."""
