"""Envoy's external processing protocol: the gRPC service, the wires to Triton and the message builders."""
