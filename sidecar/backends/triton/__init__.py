"""Triton's side of the wire: contracts, discovery, error classification and gRPC frames."""
