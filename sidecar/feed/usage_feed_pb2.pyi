from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class StreamRequest(_message.Message):
    __slots__ = ("cursor", "organizations", "follow")
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    ORGANIZATIONS_FIELD_NUMBER: _ClassVar[int]
    FOLLOW_FIELD_NUMBER: _ClassVar[int]
    cursor: str
    organizations: _containers.RepeatedScalarFieldContainer[str]
    follow: bool
    def __init__(self, cursor: _Optional[str] = ..., organizations: _Optional[_Iterable[str]] = ..., follow: _Optional[bool] = ...) -> None: ...

class StreamResponse(_message.Message):
    __slots__ = ("record", "cursor")
    RECORD_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    record: UsageRecord
    cursor: str
    def __init__(self, record: _Optional[_Union[UsageRecord, _Mapping]] = ..., cursor: _Optional[str] = ...) -> None: ...

class UsageRecord(_message.Message):
    __slots__ = ("id", "request_id", "organization", "key", "model", "node", "input_tokens", "cached_tokens", "output_tokens", "reasoning_tokens", "guided_tokens", "image_bytes", "price", "price_terms", "outcome", "stream", "started_at", "first_token_ms", "total_ms", "created_at", "end_user", "tags")
    ID_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    ORGANIZATION_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    INPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    CACHED_TOKENS_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    REASONING_TOKENS_FIELD_NUMBER: _ClassVar[int]
    GUIDED_TOKENS_FIELD_NUMBER: _ClassVar[int]
    IMAGE_BYTES_FIELD_NUMBER: _ClassVar[int]
    PRICE_FIELD_NUMBER: _ClassVar[int]
    PRICE_TERMS_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    STREAM_FIELD_NUMBER: _ClassVar[int]
    STARTED_AT_FIELD_NUMBER: _ClassVar[int]
    FIRST_TOKEN_MS_FIELD_NUMBER: _ClassVar[int]
    TOTAL_MS_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    END_USER_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    id: str
    request_id: str
    organization: str
    key: str
    model: str
    node: str
    input_tokens: int
    cached_tokens: int
    output_tokens: int
    reasoning_tokens: int
    guided_tokens: int
    image_bytes: int
    price: Money
    price_terms: str
    outcome: str
    stream: bool
    started_at: int
    first_token_ms: int
    total_ms: int
    created_at: int
    end_user: str
    tags: str
    def __init__(self, id: _Optional[str] = ..., request_id: _Optional[str] = ..., organization: _Optional[str] = ..., key: _Optional[str] = ..., model: _Optional[str] = ..., node: _Optional[str] = ..., input_tokens: _Optional[int] = ..., cached_tokens: _Optional[int] = ..., output_tokens: _Optional[int] = ..., reasoning_tokens: _Optional[int] = ..., guided_tokens: _Optional[int] = ..., image_bytes: _Optional[int] = ..., price: _Optional[_Union[Money, _Mapping]] = ..., price_terms: _Optional[str] = ..., outcome: _Optional[str] = ..., stream: _Optional[bool] = ..., started_at: _Optional[int] = ..., first_token_ms: _Optional[int] = ..., total_ms: _Optional[int] = ..., created_at: _Optional[int] = ..., end_user: _Optional[str] = ..., tags: _Optional[str] = ...) -> None: ...

class Money(_message.Message):
    __slots__ = ("amount", "currency")
    AMOUNT_FIELD_NUMBER: _ClassVar[int]
    CURRENCY_FIELD_NUMBER: _ClassVar[int]
    amount: str
    currency: str
    def __init__(self, amount: _Optional[str] = ..., currency: _Optional[str] = ...) -> None: ...
