"""How a principal travels in an Envelope: DefaultPrincipalData.json, behind the version of its schema (int16)."""

from odradek.protocol.codec.codec import decode, encode
from odradek.protocol.codec.schema import Buffer, Message, message
from odradek.protocol.errors import MalformedMessage

VERSION = 0


@message(key=-1, versions=(VERSION, VERSION), flexible=0)
class PrincipalData(Message):
    """No request and no response: it has no API."""

    type: str
    name: str
    token_authenticated: bool = False


def encode_principal(kind: str, name: str) -> bytes:
    return VERSION.to_bytes(2, "big") + encode(PrincipalData(type=kind, name=name), VERSION)


def decode_principal(data: Buffer) -> tuple[str, str]:
    """Type and name. Raises MalformedMessage."""
    view = memoryview(data)
    version = int.from_bytes(view[:2], "big", signed=True)
    if len(view) < 2 or version != VERSION:
        raise MalformedMessage(f"a principal in version {version} of its schema, not {VERSION}")
    found = decode(PrincipalData, VERSION, view, 2)
    return found.type, found.name
