"""Compiles the constructor of a declared class: keyword arguments, a default for each field that has one."""

from collections.abc import Callable

from odradek.protocol.codec.field import MISSING, Field, default_source
from odradek.protocol.codec.source import Source


def compile_constructor(class_name: str, fields: dict[str, Field]) -> Callable[..., None]:
    """`__init__` of the class that declares these fields (see `schema.Struct`)."""
    source = _constructor_source(fields)
    constructor: Callable[..., None] = source.compiled("__init__", f"<odradek.protocol.codec.constructor {class_name}>")
    constructor.__qualname__ = f"{class_name}.__init__"
    return constructor


def _constructor_source(fields: dict[str, Field]) -> Source:
    source = Source()
    source.bind("MISSING", MISSING)
    parameters: list[str] = []
    for name, declared in fields.items():
        if declared.is_required:
            parameters.append(name)
        else:
            parameters.append(f"{name}={'MISSING' if declared.default_factory else default_source(declared)}")
    with source.block(f"def __init__(self{''.join(f', {part}' for part in ['*', *parameters] if parameters)}):"):
        for name, declared in fields.items():
            value = name
            if declared.default_factory:
                value = f"{source.default(declared)} if {name} is MISSING else {name}"
            source.line(f"self.{name} = {value}")
        source.line("return None")
    return source
