"""The messages of Triton's gRPC protocol, generated from ``proto/`` by ``./dev proto``."""

SERVICE = "/inference.GRPCInferenceService/"
"""What the path of each of its methods begins with."""
