"""The status page: what the node does, for a person to look at, and a playground. See docs/status.md."""
