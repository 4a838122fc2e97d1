"""The ways in which Triton serves language models: tensors, how requests are read and how answers are written.

Each contract reads a request as token-level inputs and writes its responses from new ids, so that one model can speak
all of them.
"""
