"""The one call that answers come from: ``ModelStreamInfer`` of Triton's gRPC service."""

from __future__ import annotations

PATH = "/inference.GRPCInferenceService/ModelStreamInfer"
CONTENT_TYPE = "application/grpc"
