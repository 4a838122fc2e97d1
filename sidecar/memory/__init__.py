"""Results that were made once and are remembered by what they were made of."""

from sidecar.memory.remember import Memory, remembered

__all__ = ["Memory", "remembered"]
