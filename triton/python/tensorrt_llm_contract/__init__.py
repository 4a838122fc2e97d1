"""What the models of this repository share: the tensors of TensorRT-LLM's ``tensorrt_llm`` model and a request's life."""
