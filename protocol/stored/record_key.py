"""The base of the keys of records, which says by its type what their values are."""

from typing import Final, Generic, TypeVar

from odradek.protocol.codec.schema import Message

KEY_VERSION: Final = 0
"""The version of every key's schema: a key in another form would be another key, so another type (KIP-915)."""

V = TypeVar("V", bound=Message)


class RecordKey(Message, Generic[V]):
    """The key of a record whose value is a `V`. Both have the record's type as `api_key`, as in Kafka's schemas."""

    __slots__ = ()
