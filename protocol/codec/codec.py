"""Encodes and decodes messages, each by a function compiled for it and its version on first use.

    decode(ProduceRequest, 9, frame, position)    bytes to a message; MalformedMessage for anything else
    decode_prefix(…)                              the same, whatever follows
    encode_parts(response, 9)                     a message to buffers, records among them by reference
    python -m odradek.protocol ProduceRequest 9   prints the generated source

`decoding` and `encoding` generate the source; here it is compiled and kept. There is no other encoder or decoder of
messages.
"""

import struct
from collections.abc import Callable
from typing import Any, TypeVar

from odradek.protocol.codec.decoding import decoder_source
from odradek.protocol.codec.encoding import encoder_source
from odradek.protocol.codec.layout import layout_of_message
from odradek.protocol.codec.schema import Message
from odradek.protocol.errors import MalformedMessage, TrailingBytes
from odradek.protocol.primitives import Buffer

__all__ = ["decode", "decode_prefix", "encode", "encode_parts"]

M = TypeVar("M", bound=Message)

Decoder = Callable[[Buffer, int, int], Any]
Encoder = Callable[[Any], list[Buffer]]

_decoders: dict[tuple[type[Message], int], Decoder] = {}
_encoders: dict[tuple[type[Message], int], Encoder] = {}


def decode(cls: type[M], version: int, data: Buffer, pos: int = 0) -> M:
    """The message that `data` holds from `pos` to its end. Records in it are slices of `data`, not copies.

    Raises MalformedMessage for bytes that are no such message, and its subclass TrailingBytes, which holds the message,
    where bytes are left over; ValueError for a version that is not declared.
    """
    decoder = _decoders.get((cls, version)) or _compile_decoder(cls, version)
    view = data if type(data) is memoryview else memoryview(data)
    try:
        message: M = decoder(view, pos, len(view))
    except TrailingBytes as why:
        raise TrailingBytes(f"{cls.__name__} v{version}: {why}", why.message) from None
    except (MalformedMessage, IndexError, struct.error, UnicodeDecodeError) as why:
        raise MalformedMessage(f"{cls.__name__} v{version}: {why}") from why
    return message


def decode_prefix(cls: type[M], version: int, data: Buffer, pos: int = 0) -> M:
    """The message that `data` holds from `pos` on; bytes left over behind it are ignored. Errors as in `decode`."""
    try:
        return decode(cls, version, data, pos)
    except TrailingBytes as why:
        message: M = why.message
        return message


def encode_parts(message: Message, version: int) -> list[Buffer]:
    """The message as buffers that follow one another. Records stand among them by reference.

    What the version does not carry is left out. Raises ValueError for a version that is not declared, and for a value
    that it cannot carry: null where nothing may be null, a number out of range, a string over 32,767 bytes.
    """
    encoder = _encoders.get((type(message), version)) or _compile_encoder(type(message), version)
    try:
        return encoder(message)
    except (ValueError, TypeError, AttributeError, struct.error) as why:
        raise ValueError(f"{type(message).__name__} v{version}: {why}") from why


def encode(message: Message, version: int) -> bytes:
    """The message as one piece of bytes. Errors as in `encode_parts`."""
    return b"".join(encode_parts(message, version))


def _compile_decoder(cls: type[Message], version: int) -> Decoder:
    source = decoder_source(layout_of_message(cls, version))
    decoder: Decoder = source.compiled("decode", f"<odradek.protocol.codec.codec {cls.__name__} v{version} decoder>")
    _decoders[cls, version] = decoder
    return decoder


def _compile_encoder(cls: type[Message], version: int) -> Encoder:
    source = encoder_source(layout_of_message(cls, version))
    encoder: Encoder = source.compiled("encode", f"<odradek.protocol.codec.codec {cls.__name__} v{version} encoder>")
    _encoders[cls, version] = encoder
    return encoder
