"""The usage feed: a gRPC service from which a billing system reads usage records."""
