"""A client's schema as one that stands for itself: in the words of 2020-12, only what constrains a value, and every
reference a JSON pointer into the document.

Grammar engines know one dialect and resolve pointers; some know nothing else. A schema in this form can be put anywhere
into another one. Sources: JSON Schema 2020-12, core, sections 8 and 9; RFC 3986 for references relative to ``$id``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote, unquote, urldefrag, urljoin

from sidecar.guidance.dialects import dialect_of
from sidecar.guidance.limits import MOST_SCHEMAS
from sidecar.guidance.positions import BY_NAME, DEFINITIONS, Path, subschemas
from sidecar.guidance.schemas import Schema

_ASSERTIONS = frozenset(
    {
        "const",
        "dependentRequired",
        "enum",
        "exclusiveMaximum",
        "exclusiveMinimum",
        "maxContains",
        "maxItems",
        "maxLength",
        "maxProperties",
        "maximum",
        "minContains",
        "minItems",
        "minLength",
        "minProperties",
        "minimum",
        "multipleOf",
        "pattern",
        "required",
        "type",
        "uniqueItems",
    }
)
"""Keywords whose value is taken over as it is. ``format`` is none of them: engines know a part of its values only."""
_VALUES = frozenset({"const", "default", "enum", "examples"})
_BOUNDS = (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum"))
_DYNAMIC = frozenset({"$dynamicRef", "$recursiveRef"})
# What a fragment may hold unquoted, apart from letters and digits (RFC 3986, section 3.5).
_FRAGMENT = "-._~!$&'()*+,;=:@/?"
# A short anchor may become a pointer through long names, as often as it is referred to.
_MOST_POINTER_TEXT = 500_000


class UnresolvableError(ValueError):
    """A reference leads out of the schema, to nothing, or to what only a validator can tell."""


class OverlargeError(ValueError):
    """The schema goes beyond a limit; the message says which, in words that can be shown."""


def self_contained(schema: Mapping[str, Any], place: Path = ()) -> Schema:
    """``schema``, which its meta-schema admits, for use at ``place`` of a document.

    Values are the client's own objects; nothing of them is changed or copied.

    Raises:
        UnresolvableError: ``schema`` holds a reference that cannot be a pointer.
        OverlargeError: as pointers, its references have more than half a million characters together, or it holds more
            than :data:`~sidecar.guidance.limits.MOST_SCHEMAS` schemas.
    """
    return _Translation(schema, place).document()


class _Translation:
    """One schema on its way into its new form; paths are those in the client's schema."""

    def __init__(self, schema: Mapping[str, Any], place: Path) -> None:
        self._root = schema
        self._place = place
        self._dialect = dialect_of(schema)
        self._new_paths: dict[Path, Path] = {}
        self._bases: dict[Path, str] = {}
        self._resources: dict[str, Path] = {"": ()}
        self._anchors: dict[tuple[str, str], Path] = {}
        # Targets of references that stand where no schema is expected.
        self._strays: list[tuple[Path, Any]] = []
        self._pointer_text = 0
        self._schemas = 0

    def document(self) -> Schema:
        document: Schema = self._translated((), self._root)
        # A stray may refer to others in turn.
        for path, schema in self._strays:
            document.setdefault("$defs", {})[self._new_paths[path][1]] = self._translated(path, schema)
        return document

    def _index(self, path: Path, new_path: Path, schema: Any, base: str) -> None:
        """Note where each schema will stand, what it is called, and what its references are relative to."""
        self._new_paths[path] = new_path
        if not isinstance(schema, dict):
            return
        _check_count(len(self._bases) + 1)
        self._bases[path] = base = self._name(path, schema, base)
        for step, new_step, member in self._members(schema):
            self._index(path + step, new_path + new_step, member, base)

    def _members(self, schema: Schema) -> Iterator[tuple[Path, Path, Any]]:
        """The schemas in ``schema`` that have an effect, or a name."""
        members = subschemas(schema)
        if not self._is_alone(schema):
            return members
        return (member for member in members if member[0][0] in DEFINITIONS)

    def _is_alone(self, schema: Schema) -> bool:
        """Whether ``schema`` is a reference, and whatever else it says has no effect."""
        return self._dialect.bare_refs and "$ref" in schema

    def _name(self, path: Path, schema: Schema, base: str) -> str:
        dialect = self._dialect
        if self._is_alone(schema):
            return base
        name = schema.get(dialect.id_keyword)
        if isinstance(name, str):
            if dialect.bare_refs and name.startswith("#"):
                self._anchors[base, name[1:]] = path
            else:
                base = _resolved(base, name)[0]
                self._resources[base] = path
        for keyword in ("$anchor", "$dynamicAnchor"):
            if isinstance(schema.get(keyword), str):
                self._anchors[base, schema[keyword]] = path
        return base

    def _translated(self, path: Path, schema: Any) -> Any:
        if not isinstance(schema, dict):
            return schema
        self._schemas += 1
        _check_count(self._schemas)
        if not _DYNAMIC.isdisjoint(schema):
            raise UnresolvableError("a dynamic reference")
        alone = self._is_alone(schema)
        new: Schema = {}
        for key, value in schema.items():
            if key in DEFINITIONS or (key in BY_NAME and not alone):
                new[key] = {}
            elif key == "$ref":
                new[key] = self._pointer(self._target(value, path))
            elif key in _ASSERTIONS and not alone:
                new[key] = value
        for step, new_step, member in self._members(schema):
            _put(new, new_step, self._translated(path + step, member))
        _translate_bounds(new)
        _translate_dependencies(schema.get("dependencies"), new)
        return new

    def _pointer(self, target: Path) -> str:
        self._pointer_text += sum(map(len, target))
        if self._pointer_text > _MOST_POINTER_TEXT:
            raise OverlargeError("its references lead through names that are too long")
        return "#" + _fragment(self._place + target)

    def _target(self, reference: str, path: Path) -> Path:
        """The new path of what ``reference`` names in the schema at ``path``."""
        if not self._bases:
            # Most schemas refer to nothing, and nobody asks where what stands in them.
            self._index((), (), self._root, "")
        base = self._bases[path]
        uri, fragment = (base, reference[1:]) if reference.startswith("#") else _resolved(base, reference)
        if fragment and not fragment.startswith("/"):
            target = self._anchors.get((uri, unquote(fragment)))
        else:
            resource = self._resources.get(uri)
            steps = (step.replace("~1", "/").replace("~0", "~") for step in unquote(fragment).split("/")[1:])
            target = None if resource is None else (*resource, *steps)
        if target is None:
            raise UnresolvableError(reference)
        return self._new_paths[target] if target in self._new_paths else self._stray(target, reference)

    def _stray(self, path: Path, reference: str) -> Path:
        """A new path for the schema at ``path``, which stands where none is expected."""
        target: Any = self._root
        for step in path:
            try:
                target = target[int(step)] if isinstance(target, list) else target[step]
            except (KeyError, IndexError, TypeError, ValueError):
                raise UnresolvableError(reference) from None
        if not isinstance(target, dict | bool) or not _VALUES.isdisjoint(path):
            raise UnresolvableError(reference)
        new_path = ("$defs", "/".join(("", *path)))
        self._index(path, new_path, target, self._bases[()])
        self._strays.append((path, target))
        return new_path


def _check_count(schemas: int) -> None:
    if schemas > MOST_SCHEMAS:
        raise OverlargeError(f"it holds more than {MOST_SCHEMAS} schemas")


def _resolved(base: str, reference: str) -> tuple[str, str]:
    """``reference`` relative to ``base``, and its fragment."""
    try:
        uri, fragment = urldefrag(urljoin(base, reference))
    except ValueError as error:
        raise UnresolvableError(reference) from error
    return uri, fragment


def _fragment(path: Path) -> str:
    """``path`` as the fragment of a URI."""
    return quote("".join("/" + step.replace("~", "~0").replace("/", "~1") for step in path), safe=_FRAGMENT)


def _put(schema: Schema, path: Path, member: Any) -> None:
    """Put ``member`` at ``path``, the members of a list in their order."""
    key, *name = path
    if not name:
        schema[key] = member
    elif key in BY_NAME:
        schema.setdefault(key, {})[name[0]] = member
    else:
        schema.setdefault(key, []).append(member)


def _translate_bounds(schema: Schema) -> None:
    """In draft-04 ``exclusiveMinimum`` says whether ``minimum`` is exclusive."""
    for exclusive, inclusive in _BOUNDS:
        if schema.get(exclusive) is True and inclusive in schema:
            schema[exclusive] = schema.pop(inclusive)
        elif isinstance(schema.get(exclusive), bool):
            del schema[exclusive]


def _translate_dependencies(dependencies: Any, schema: Schema) -> None:
    """Up to draft-07 one keyword held both kinds of dependencies."""
    if isinstance(dependencies, dict):
        required = {name: members for name, members in dependencies.items() if isinstance(members, list)}
        if required:
            schema["dependentRequired"] = {**schema.get("dependentRequired", {}), **required}
