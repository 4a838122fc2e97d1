"""What real clients send, a module per client: every key, item and tool as they send them, with short texts."""
