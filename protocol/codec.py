"""Encodes and decodes messages, each by a function compiled for it and its version on first use.

    decode(ProduceRequest, 9, frame, position)    bytes to a message; MalformedMessage for anything else
    encode_parts(response, 9)                     a message to buffers, records among them by reference
    python -m protocol.codec ProduceRequest 9     prints the generated source

`decoding` and `encoding` generate the source; here it is compiled and kept. `linecache` knows it, so that a traceback
and a debugger show the generated lines. There is no other encoder or decoder of messages.
"""

import linecache
import pkgutil
import struct
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeVar

from protocol import messages
from protocol.decoding import decoder_source
from protocol.encoding import encoder_source
from protocol.errors import MalformedMessage, TrailingBytes
from protocol.layout import default_source, layout_of_message
from protocol.primitives import Buffer
from protocol.schema import MISSING, Message, Struct
from protocol.source import Source

__all__ = ["compile_constructor", "declared_messages", "decode", "encode", "encode_parts"]

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


def compile_constructor(cls: type[Struct]) -> Callable[..., None]:
    """Compiles `__init__` from the declaration, puts it into the class and returns it (see `schema.Struct`)."""
    source = _constructor_source(cls)
    constructor: Callable[..., None] = _compiled(source, "__init__", f"<protocol.codec {cls.__name__} constructor>")
    constructor.__qualname__ = f"{cls.__qualname__}.__init__"
    type.__setattr__(cls, "__init__", constructor)
    return constructor


def declared_messages() -> dict[str, type[Message]]:
    """Every declared request and response by name, in the order of the names. Imports all of `protocol.messages`."""
    found: dict[str, type[Message]] = {}
    for module in pkgutil.iter_modules(messages.__path__, "protocol.messages."):
        found |= {
            name: value
            for name, value in vars(import_module(module.name)).items()
            if isinstance(value, type) and issubclass(value, Message) and value.__module__ == module.name
        }
    return dict(sorted(found.items()))


def _compile_decoder(cls: type[Message], version: int) -> Decoder:
    source = decoder_source(layout_of_message(cls, version))
    decoder: Decoder = _compiled(source, "decode", f"<protocol.codec {cls.__name__} v{version} decoder>")
    _decoders[cls, version] = decoder
    return decoder


def _compile_encoder(cls: type[Message], version: int) -> Encoder:
    source = encoder_source(layout_of_message(cls, version))
    encoder: Encoder = _compiled(source, "encode", f"<protocol.codec {cls.__name__} v{version} encoder>")
    _encoders[cls, version] = encoder
    return encoder


def _constructor_source(cls: type[Struct]) -> Source:
    source = Source()
    source.bind("MISSING", MISSING)
    parameters: list[str] = []
    for name, declared in cls.fields.items():
        if declared.is_required:
            parameters.append(name)
        else:
            parameters.append(f"{name}={'MISSING' if declared.default_factory else default_source(declared)}")
    with source.block(f"def __init__(self{''.join(f', {part}' for part in ['*', *parameters] if parameters)}):"):
        for name, declared in cls.fields.items():
            value = name
            if declared.default_factory:
                value = f"{source.default(declared)} if {name} is MISSING else {name}"
            source.line(f"self.{name} = {value}")
        source.line("return None")
    return source


def _compiled(source: Source, name: str, filename: str) -> Any:
    text = source.text()
    # Without a modification time, linecache never looks for such a file.
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    exec(compile(text, filename, "exec"), source.bindings)
    return source.bindings[name]


def main(arguments: list[str]) -> int:
    """Prints the generated encoder and decoder of a message at a version."""
    declared = declared_messages()
    if len(arguments) != 2 or arguments[0] not in declared or not arguments[1].isdecimal():
        sys.stderr.write(f"usage: python -m protocol.codec NAME VERSION\nNAME is one of {', '.join(declared)}\n")
        return 2
    try:
        layout = layout_of_message(declared[arguments[0]], int(arguments[1]))
    except ValueError as why:
        sys.stderr.write(f"{why}\n")
        return 1
    sys.stdout.write(f"{decoder_source(layout).text()}\n\n{encoder_source(layout).text()}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
