"""SCRAM, the server's side (RFC 5802, RFC 7677): has a client prove that it knows a password of which this side keeps
only what can check that. Pure; the messages stand in scram.py, with the client's side.

    server-first    r=<the client's nonce><ours>,s=<salt, base64>,i=<iterations>
    server-final    v=<signature, base64>

What is kept of a password (`ScramCredential`) is salt, iterations and two keys: who reads them cannot authenticate by
them, but can guess passwords, and can play the server.

Stricter than Kafka's server (ScramSaslServer.java), where the RFC asks for it: the nonce has to be the whole one, and
the channel binding of the client-final message has to be the header of the client-first one. As there, channel binding
itself is not offered: a header "n" alone is understood.
"""

import binascii
import hashlib
import hmac
import re
from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Final, NamedTuple

from odradek.protocol.scram import ALGORITHMS, ITERATIONS_MIN, Challenge, ScramError, salted_password

__all__ = ["ClientFirst", "ScramCredential", "ScramServer", "credential_from_salted", "credential_of", "made_up"]
__all__ += ["read_client_first", "salt_text", "take_name"]

SALT_BITS: Final = 130
_DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"
_NAME: Final = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f\x80-\U0010ffff]|=2C|=3D)+"
"""A name without "," and "=", which are written `=2C` and `=3D`. Kafka's pattern ends at ASCII; RFC 5802 has UTF-8."""
_VALUE: Final = r"[\x01-\x2b\x2d-\x7f\x80-\U0010ffff]+"
_NONCE: Final = r"[\x21-\x2b\x2d-\x7e]+"
_BASE64: Final = r"(?:[a-zA-Z0-9/+]{4})*(?:[a-zA-Z0-9/+]{3}=|[a-zA-Z0-9/+]{2}==)?"
# A mandatory extension ("m=") is not known, and does not match: the RFC has it refused.
_CLIENT_FIRST: Final = re.compile(
    rf"(?P<header>n,(?:a=(?P<authzid>{_NAME}))?,)"
    rf"(?P<bare>n=(?P<name>{_NAME}),r=(?P<nonce>{_NONCE})(?P<extensions>(?:,[A-Za-z]+={_VALUE})*))"
)
_CLIENT_FINAL: Final = re.compile(
    rf"(?P<without_proof>c=(?P<binding>{_BASE64}),r=(?P<nonce>{_NONCE})(?:,[A-Za-z]+={_VALUE})*),p=(?P<proof>{_BASE64})"
)


class ScramCredential(NamedTuple):
    """What is kept of a password."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int

    def __repr__(self) -> str:
        return f"ScramCredential(iterations={self.iterations}, [hidden])"


class ClientFirst(NamedTuple):
    """The client-first message, read."""

    header: str
    """The GS2 header, of which the channel binding is made."""
    bare: str
    """All behind it, as it came."""
    user: str
    authorization_id: str
    """Empty: none is asked for."""
    nonce: str
    extensions: Mapping[str, str]


def read_client_first(message: bytes) -> ClientFirst:
    """Raises ScramError."""
    if (found := _CLIENT_FIRST.fullmatch(_text(message))) is None:
        raise ScramError("the client-first message is malformed, or asks for channel binding or an unknown extension")
    extensions = (part.partition("=") for part in found["extensions"].split(",") if part)
    return ClientFirst(
        header=found["header"],
        bare=found["bare"],
        user=take_name(found["name"]),
        authorization_id=take_name(found["authzid"] or ""),
        nonce=found["nonce"],
        extensions={name: value for name, _, value in extensions},
    )


def take_name(written: str) -> str:
    """A user's name as it is, from how it travels. The comma first: `=3D2C` is `=2C`, and no comma."""
    return written.replace("=2C", ",").replace("=3D", "=")


class ScramServer:
    """One exchange, from the client-first message on. `nonce`: this side's part, printable ASCII without commas,
    random, and never used before."""

    __slots__ = ("_algorithm", "_credential", "_first", "_nonce", "_server_first")

    def __init__(self, mechanism: str, first: ClientFirst, credential: ScramCredential, nonce: str) -> None:
        """Raises ScramError for a credential with too few iterations, by which a client would give its password away
        too cheaply."""
        if credential.iterations < ITERATIONS_MIN:
            raise ScramError(f"the credential has {credential.iterations} iterations, fewer than {ITERATIONS_MIN}")
        self._algorithm = ALGORITHMS[mechanism]
        self._first = first
        self._credential = credential
        self._nonce = first.nonce + nonce
        salt = b64encode(credential.salt).decode()
        self._server_first = f"r={self._nonce},s={salt},i={credential.iterations}"

    def first(self) -> bytes:
        """The server-first message."""
        return self._server_first.encode()

    def final(self, client_final: bytes) -> bytes:
        """The server-final message, for a client that has proved to know the password. Raises ScramError."""
        if (found := _CLIENT_FINAL.fullmatch(_text(client_final))) is None:
            raise ScramError("the client-final message is malformed")
        if not hmac.compare_digest(found["nonce"].encode(), self._nonce.encode()):
            raise ScramError("the nonce of the client-final message is not the one of this exchange")
        if found["binding"] != b64encode(self._first.header.encode()).decode():
            raise ScramError("the channel binding is not the header of the client-first message")
        message = f"{self._first.bare},{self._server_first},{found['without_proof']}".encode()
        proof, credential = _decoded(found["proof"]), self._credential
        signature = hmac.digest(credential.stored_key, message, self._algorithm)
        if len(proof) != len(signature):
            raise ScramError("the proof of the client has not the length of the hash")
        client_key = bytes(one ^ other for one, other in zip(proof, signature, strict=True))
        if not hmac.compare_digest(hashlib.new(self._algorithm, client_key).digest(), credential.stored_key):
            raise ScramError("the client does not know the password")
        return b"v=" + b64encode(hmac.digest(credential.server_key, message, self._algorithm))


# ---------------------------------------------------------------------------------------------------------- credentials
def credential_from_salted(mechanism: str, salt: bytes, salted: bytes, iterations: int) -> ScramCredential:
    """`salted`: the SaltedPassword, as AlterUserScramCredentials brings it."""
    algorithm = ALGORITHMS[mechanism]
    client_key = hmac.digest(salted, b"Client Key", algorithm)
    return ScramCredential(
        salt,
        stored_key=hashlib.new(algorithm, client_key).digest(),
        server_key=hmac.digest(salted, b"Server Key", algorithm),
        iterations=iterations,
    )


def credential_of(mechanism: str, password: str, salt: bytes, iterations: int) -> ScramCredential:
    """Takes milliseconds (`salted_password`)."""
    salted = salted_password(mechanism, password, Challenge(salt, iterations))
    return credential_from_salted(mechanism, salt, salted, iterations)


def salt_text(entropy: int) -> bytes:
    """A salt as Apache Kafka's tools make it (ScramFormatter.secureRandomBytes): a number of 130 bits in base 36."""
    number, digits = entropy % (1 << SALT_BITS), ""
    while number:
        number, digit = divmod(number, len(_DIGITS))
        digits = _DIGITS[digit] + digits
    return (digits or "0").encode()


def made_up(mechanism: str, user: str, secret: bytes) -> ScramCredential:
    """A credential for a user who has none, by which nobody can authenticate: so that nobody can tell that.

    It is the same for the same secret, however often it is asked for, and looks as what Kafka's tools make: salts as
    theirs, and the default of 4,096 iterations. (Which password would fit, nobody knows: that needs a hash inverted.)
    """

    def derived(what: str) -> bytes:
        return hmac.digest(secret, f"{what}\0{mechanism}\0{user}".encode(), "sha512")

    size_bytes = hashlib.new(ALGORITHMS[mechanism]).digest_size
    return ScramCredential(
        salt_text(int.from_bytes(derived("salt"))),
        stored_key=derived("stored key")[:size_bytes],
        server_key=derived("server key")[:size_bytes],
        iterations=ITERATIONS_MIN,
    )


def _text(message: bytes) -> str:
    try:
        return message.decode()
    except UnicodeDecodeError:
        raise ScramError("a message of the client is no UTF-8") from None


def _decoded(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except binascii.Error:
        raise ScramError("the proof of the client is no base64") from None
