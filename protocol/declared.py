"""All messages that are declared, for what works on each of them."""

import pkgutil
from importlib import import_module

from odradek.protocol import messages
from odradek.protocol.codec.schema import Message


def declared_messages() -> dict[str, type[Message]]:
    """Every declared request and response by name, in the order of the names. Imports all modules of `messages`."""
    found: dict[str, type[Message]] = {}
    for module in pkgutil.iter_modules(messages.__path__, f"{messages.__name__}."):
        found |= {
            name: value
            for name, value in vars(import_module(module.name)).items()
            if isinstance(value, type) and issubclass(value, Message) and value.__module__ == module.name
        }
    return dict(sorted(found.items()))
