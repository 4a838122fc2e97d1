"""The bench: a load driver and a fast fake Triton, so that nothing but Envoy and the sidecar is the bottleneck."""
