"""responses-sidecar: the OpenAI Responses API in front of Triton Inference Server, as an Envoy external processor."""
