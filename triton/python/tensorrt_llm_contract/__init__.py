"""What the models share: the tensors of TensorRT-LLM's ``tensorrt_llm`` model and the life of a request."""
