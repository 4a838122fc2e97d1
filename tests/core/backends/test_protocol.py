"""Our messages of Triton's protocol are Triton's own on the wire."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from hypothesis import given
from hypothesis import strategies as st
from tritonclient.grpc import model_config_pb2 as triton_model_config_pb2
from tritonclient.grpc import service_pb2 as triton_service_pb2

from sidecar.backends.triton.protocol import model_config_pb2, service_pb2
from stack.paths import ROOT
from stack.protobuf import generate

OURS_AND_TRITONS = [
    pytest.param(ours, getattr(theirs, name), id=name)
    for module, theirs in ((service_pb2, triton_service_pb2), (model_config_pb2, triton_model_config_pb2))
    for name, ours in module.DESCRIPTOR.message_types_by_name.items()
]

_VALUES: dict[int, st.SearchStrategy[Any]] = {
    FieldDescriptor.TYPE_BOOL: st.booleans(),
    FieldDescriptor.TYPE_BYTES: st.binary(max_size=20),
    FieldDescriptor.TYPE_DOUBLE: st.floats(allow_nan=False),
    FieldDescriptor.TYPE_INT32: st.integers(-(2**31), 2**31 - 1),
    FieldDescriptor.TYPE_INT64: st.integers(-(2**63), 2**63 - 1),
    FieldDescriptor.TYPE_STRING: st.text(max_size=20),
    FieldDescriptor.TYPE_UINT64: st.integers(0, 2**64 - 1),
}


def values(descriptor: Descriptor) -> st.SearchStrategy[dict[str, Any]]:
    """Members of a message, as its constructor takes them: any subset, at most one of each choice."""
    choices = [[field.name for field in choice.fields] for choice in descriptor.oneofs]
    members = st.fixed_dictionaries({}, optional={field.name: _value(field) for field in descriptor.fields})
    return members.map(lambda found: _without_rivals(found, choices))


def _without_rivals(members: dict[str, Any], choices: list[list[str]]) -> dict[str, Any]:
    rivals = {name for choice in choices for name in [name for name in choice if name in members][1:]}
    return {name: value for name, value in members.items() if name not in rivals}


def _value(field: FieldDescriptor) -> st.SearchStrategy[Any]:
    if field.message_type is None:
        single = _VALUES[field.type]
    elif field.message_type.GetOptions().map_entry:
        entry = field.message_type.fields_by_name
        return st.dictionaries(_value(entry["key"]), _value(entry["value"]), max_size=3)
    else:
        single = values(field.message_type)
    return st.lists(single, max_size=3) if field.is_repeated else single


def serialized(message: Message) -> bytes:
    return message.SerializeToString(deterministic=True)


@pytest.mark.parametrize(("ours", "tritons"), OURS_AND_TRITONS)
@given(data=st.data())
def test_our_messages_and_those_of_tritons_client_are_the_same_bytes(
    ours: Descriptor, tritons: type[Message], data: st.DataObject
) -> None:
    members = data.draw(values(ours))
    our_type = GetMessageClass(ours)
    our_message, tritons_message = our_type(**members), tritons(**members)
    assert serialized(our_message) == serialized(tritons_message)
    assert our_type.FromString(serialized(tritons_message)) == our_message
    assert tritons.FromString(serialized(our_message)) == tritons_message


def test_the_generated_modules_are_those_of_the_sources(tmp_path: Path) -> None:
    generated = generate(tmp_path)
    assert generated
    committed = [path for path in (ROOT / "sidecar").rglob("*_pb2.*") if path.suffix in {".py", ".pyi"}]
    assert {path.relative_to(ROOT): path.read_text() for path in committed} == {
        path: (tmp_path / path).read_text() for path in generated
    }
