"""The shape of a schema is what the meta-schema of its dialect says."""

from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sidecar.guidance.dialects import DRAFT_04, DRAFT_06, DRAFT_07, DRAFT_2019_09, LATEST, Dialect
from sidecar.guidance.shapes import shape_fault
from tests.core.guidance.validators import meta_validator

SIZES = ["maxContains", "maxItems", "maxLength", "maxProperties", "minContains", "minItems", "minLength"]
NUMBERS = [*SIZES, "minProperties", "multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"]
TEXTS = [
    "$anchor",
    "$dynamicAnchor",
    "$dynamicRef",
    "$id",
    "$recursiveAnchor",
    "$recursiveRef",
    "$ref",
    "id",
    "pattern",
]
LISTS = ["enum", "required", "type", "allOf", "anyOf", "oneOf", "prefixItems", "items"]
NAMED = ["$defs", "definitions", "dependencies", "dependentRequired", "dependentSchemas", "patternProperties"]
SINGLE = ["additionalItems", "additionalProperties", "contains", "else", "if", "items", "not", "propertyNames", "then"]
OTHER = ["properties", "unevaluatedItems", "unevaluatedProperties", "uniqueItems", "$vocabulary", "const", "x-other"]
KEYWORDS = [*NUMBERS, *TEXTS, *LISTS, *NAMED, *SINGLE, *OTHER]
OF_OTHERS = {
    DRAFT_04: {"const", "contains", "propertyNames", "$ref", "$id", "if", "then", "else"},
    DRAFT_06: {"if", "then", "else", "id"},
    DRAFT_07: {"id"},
    DRAFT_2019_09: {"id", "prefixItems", "$dynamicRef", "$dynamicAnchor"},
    LATEST: {"id", "additionalItems"},
}
"""Keywords that the meta-schema of a dialect says nothing about."""
SINCE_2019 = {
    *("$anchor", "$defs", "$recursiveAnchor", "$recursiveRef", "$vocabulary", "dependentRequired", "dependentSchemas"),
    *("maxContains", "minContains", "unevaluatedItems", "unevaluatedProperties", "prefixItems"),
    *("$dynamicRef", "$dynamicAnchor"),
}
LEAVES: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, False, 0, 1, 2.0, 0.5, -1, "", "a", "#a", "a#", "a#b", "é:", "string", [], ["string"], ["a", "a"], {}]
)


def tables(inside: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    named = st.dictionaries(st.sampled_from(["a", "b"]), inside, max_size=2)
    return st.one_of(
        st.dictionaries(st.sampled_from(KEYWORDS), inside, max_size=3), named, st.lists(inside, max_size=2)
    )


ANYTHING = st.recursive(LEAVES, tables, max_leaves=12)


def likely(inside: st.SearchStrategy[Any], dialect: Dialect) -> st.SearchStrategy[dict[str, Any]]:
    """Schemas in words of ``dialect``, most of whose keywords have a value of their own shape."""
    schemas = st.one_of(inside, inside, inside, st.booleans(), ANYTHING)
    names = st.lists(st.sampled_from(["a", "b", "string"]), max_size=2)
    shapes: dict[str, Any] = dict.fromkeys(NUMBERS, st.sampled_from([0, 1, 2.0, 0.5, True]))
    shapes |= dict.fromkeys(TEXTS, st.sampled_from(["a", "#a", "a#", "_b", "x:y"]))
    shapes |= dict.fromkeys(NAMED, st.dictionaries(st.sampled_from("ab"), schemas, max_size=2))
    shapes |= dict.fromkeys(LISTS, st.lists(schemas, max_size=2)) | dict.fromkeys(SINGLE, schemas)
    shapes |= {
        "items": st.one_of(schemas, st.lists(schemas, max_size=2)),
        "enum": st.lists(LEAVES, max_size=2, unique_by=repr),
        "required": names,
        "type": st.one_of(st.sampled_from(["string", "null"]), names),
        "dependentRequired": st.dictionaries(st.just("a"), names),
        "dependencies": st.dictionaries(st.sampled_from("ab"), st.one_of(names, schemas), max_size=2),
        "properties": st.dictionaries(st.sampled_from("ab"), schemas, max_size=2),
    }
    known = shapes.keys() - others(dialect)
    shapes = {keyword: st.one_of(shapes[keyword], shapes[keyword], shapes[keyword], ANYTHING) for keyword in known}
    return st.lists(st.sampled_from(sorted(shapes)), max_size=3, unique=True).flatmap(
        lambda keywords: st.fixed_dictionaries({keyword: shapes[keyword] for keyword in keywords})
    )


def others(dialect: Dialect) -> set[str]:
    """The keywords that ``dialect`` does not have."""
    return OF_OTHERS[dialect] | (set() if dialect in (DRAFT_2019_09, LATEST) else SINCE_2019)


def differs(schema: Any, dialect: Dialect) -> bool:
    """Whether ``schema`` holds something that is looked at in another way than the meta-schema does."""
    unknown = others(dialect)
    if dialect == DRAFT_04 and _pedantic(schema):
        return True
    if isinstance(schema, dict):
        return bool(unknown & schema.keys()) or any(differs(member, dialect) for member in schema.values())
    return isinstance(schema, list) and any(differs(member, dialect) for member in schema)


def _pedantic(schema: Any) -> bool:
    """What draft-04 bans and later dialects have: booleans as schemas, lists that are empty or repeat, 2.0 for 2."""
    if isinstance(schema, dict):
        lone = ("exclusiveMaximum" in schema and "maximum" not in schema) or (
            "exclusiveMinimum" in schema and "minimum" not in schema
        )
        return lone or any(map(_pedantic, schema.values()))
    if isinstance(schema, list):
        return not schema or len({repr(member) for member in schema}) < len(schema) or any(map(_pedantic, schema))
    return isinstance(schema, bool | float)


@pytest.mark.parametrize("dialect", [DRAFT_04, DRAFT_06, DRAFT_07, DRAFT_2019_09, LATEST], ids=lambda it: it.name)
def test_it_decides_as_the_meta_schema_does(dialect: Dialect) -> None:
    meta = meta_validator(dialect)
    verdicts = {True: 0, False: 0}

    # By chance there might be too few of either verdict to mean anything.
    @settings(derandomize=True, max_examples=300)
    @given(st.recursive(st.just({}), partial(likely, dialect=dialect), max_leaves=8))
    def compare(schema: Any) -> None:
        if differs(schema, dialect):
            return
        expected = meta.is_valid(schema)
        verdicts[expected] += 1
        assert (shape_fault(schema, dialect) is None) is expected

    compare()
    assert min(verdicts.values()) >= 20, verdicts


@pytest.mark.parametrize("dialect", [DRAFT_04, DRAFT_06, DRAFT_07, DRAFT_2019_09, LATEST], ids=lambda it: it.name)
@pytest.mark.parametrize("keyword", KEYWORDS)
def test_each_keyword_has_its_shape(dialect: Dialect, keyword: str) -> None:
    if keyword in others(dialect):
        dialect = LATEST
    meta = meta_validator(dialect)
    values: list[Any] = [None, True, 0, 1, 2.5, -1, "", "a", "a#b", [], ["a"], [1], [{}], {}, {"a": {}}, {"a": 1}]
    values += [{"a": ["b"]}, {"a": [1]}, {"a": True}, ["string", "null"], "string", [{"type": 5}], {"a": {"type": 5}}]
    for value in values:
        schema = {keyword: value}
        if not (dialect == DRAFT_04 and _pedantic(schema)):
            assert (shape_fault(schema, dialect) is None) is meta.is_valid(schema), schema


@pytest.mark.parametrize(
    ("dialect", "schema", "fault"),
    [
        (DRAFT_04, {"exclusiveMinimum": True}, None),
        (DRAFT_04, {"required": [], "enum": [], "properties": {"a": True}, "maxLength": 2.0}, None),
        (DRAFT_04, {"$ref": 5}, ".$ref"),
        (DRAFT_04, {"if": 5}, ".if"),
        (DRAFT_07, {"prefixItems": [{"dependentSchemas": 5}]}, ".prefixItems[0].dependentSchemas"),
        (LATEST, {"dependencies": {"a": [1]}}, ".dependencies.a"),
    ],
)
def test_where_it_differs_from_the_meta_schema(dialect: Dialect, schema: Any, fault: str | None) -> None:
    assert shape_fault(schema, dialect) == fault
