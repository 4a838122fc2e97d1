"""The tensor contracts through which Triton serves language models, one file each."""
