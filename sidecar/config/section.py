"""What all parts of the configuration have in common."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """A part of the configuration: immutable, and without keys that are not its own."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    def keys_set(self, path: str) -> Iterator[str]:
        """The paths of the keys that stand in the file with a value, their defaults too; ``path`` is this section's."""
        for name in type(self).model_fields:
            value = getattr(self, name)
            if isinstance(value, Section):
                yield from value.keys_set(f"{path}.{name}")
            elif name in self.model_fields_set and value is not None:
                yield f"{path}.{name}"
