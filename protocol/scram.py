"""SCRAM, the client's side (RFC 5802, RFC 7677): proves to know a password without sending it, and has the other side
prove that it knows it too.

    client-first    n,,n=<user>,r=<nonce>                              no channel binding, no authorization id
    server-first    r=<nonce><more>,s=<salt, base64>,i=<iterations>
    client-final    c=biws,r=<nonce><more>,p=<proof, base64>           "biws" is the "n,," of the beginning
    server-final    v=<signature, base64>  or  e=<error>

`ScramClient` makes and reads these, in this order. The one costly step, `salted_password`, is a function by itself, so
that it can be done elsewhere. As in Kafka (ScramFormatter.java), user and password are taken as their UTF-8, without
the normalization of SASLprep: with it, credentials that Kafka's own tools have stored would not fit.
"""

import binascii
import hashlib
import hmac
import re
from base64 import b64decode, b64encode
from typing import Final, NamedTuple

__all__ = ["ALGORITHMS", "ITERATIONS_MAX", "ITERATIONS_MIN", "Challenge", "ScramClient", "ScramError"]
__all__ += ["salted_password"]

ALGORITHMS: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
"""The hash functions by the names of the mechanisms."""
ITERATIONS_MIN: Final = 4096
"""Fewer would let whoever plays the broker guess the password faster (RFC 7677; ScramMechanism.java)."""
ITERATIONS_MAX: Final = 1_000_000
"""More would let it occupy this client for seconds. Kafka's own tools allow 16,384."""

_GS2_HEADER: Final = "n,,"
# Mandatory extensions ("m=") are not known and so do not match; optional ones at the end are passed over.
_SERVER_FIRST: Final = re.compile(r"r=([\x21-\x2b\x2d-\x7e]+),s=([a-zA-Z0-9/+=]+),i=([1-9][0-9]{0,9})(?:,[a-zA-Z]=.*)?")
_SERVER_FINAL: Final = re.compile(r"(?:v=([a-zA-Z0-9/+=]+)|e=([^,]+))(?:,[a-zA-Z]=.*)?")


class ScramError(Exception):
    """The other side broke a rule, or has not proved that it knows the password. The text holds no secrets."""


class Challenge(NamedTuple):
    """What the server wants to be done with the password."""

    salt: bytes
    iterations: int


class ScramClient:
    """One exchange. `nonce`: printable ASCII without commas, random, and never used before."""

    __slots__ = ("_algorithm", "_auth_message", "_final_without_proof", "_first_bare", "_nonce", "_signature")

    def __init__(self, mechanism: str, user: str, nonce: str) -> None:
        self._algorithm = ALGORITHMS[mechanism]
        self._nonce = nonce
        name = user.replace("=", "=3D").replace(",", "=2C")
        self._first_bare = f"n={name},r={nonce}"
        self._final_without_proof = ""
        self._auth_message = ""
        self._signature = b""

    def first(self) -> bytes:
        """The client-first message."""
        return f"{_GS2_HEADER}{self._first_bare}".encode()

    def challenge(self, server_first: bytes) -> Challenge:
        """Reads the server-first message. Raises ScramError."""
        text = _text(server_first)
        if (found := _SERVER_FIRST.fullmatch(text)) is None:
            raise ScramError("the server-first message is malformed, or asks for an extension that is not known")
        nonce, salt, iterations = found[1], _decoded(found[2], "salt"), int(found[3])
        if not nonce.startswith(self._nonce) or len(nonce) == len(self._nonce):
            raise ScramError("the server's nonce does not continue the client's: this is not an answer to it")
        if not ITERATIONS_MIN <= iterations <= ITERATIONS_MAX:
            raise ScramError(f"{iterations} iterations, where {ITERATIONS_MIN} to {ITERATIONS_MAX} are accepted")
        self._final_without_proof = f"c={b64encode(_GS2_HEADER.encode()).decode()},r={nonce}"
        self._auth_message = f"{self._first_bare},{text},{self._final_without_proof}"
        return Challenge(salt, iterations)

    def final(self, salted: bytes) -> bytes:
        """The client-final message. `salted`: what `salted_password` gave for the challenge."""
        assert self._auth_message, "the challenge comes first"
        message = self._auth_message.encode()
        client_key = self._hmac(salted, b"Client Key")
        stored_key = hashlib.new(self._algorithm, client_key).digest()
        client_signature = self._hmac(stored_key, message)
        proof = bytes(key ^ signed for key, signed in zip(client_key, client_signature, strict=True))
        self._signature = self._hmac(self._hmac(salted, b"Server Key"), message)
        return f"{self._final_without_proof},p={b64encode(proof).decode()}".encode()

    def verify(self, server_final: bytes) -> None:
        """Reads the server-final message. Raises ScramError unless it proves that the server knows the password."""
        assert self._signature, "the client-final message comes first"
        if (found := _SERVER_FINAL.fullmatch(_text(server_final))) is None:
            raise ScramError("the server-final message is malformed")
        if found[2] is not None:
            raise ScramError(f"the server refused: {found[2]}")
        if not hmac.compare_digest(_decoded(found[1], "signature"), self._signature):
            raise ScramError("the server's signature is wrong: it does not know the password")

    def _hmac(self, key: bytes, message: bytes) -> bytes:
        return hmac.digest(key, message, self._algorithm)


def salted_password(mechanism: str, password: str, challenge: Challenge) -> bytes:
    """RFC 5802's SaltedPassword, which takes about a millisecond for 4,096 iterations."""
    return hashlib.pbkdf2_hmac(ALGORITHMS[mechanism], password.encode(), challenge.salt, challenge.iterations)


def _text(message: bytes) -> str:
    try:
        return message.decode()
    except UnicodeDecodeError:
        raise ScramError("a message of the server is no UTF-8") from None


def _decoded(text: str, what: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except binascii.Error:
        raise ScramError(f"the {what} of the server is no base64") from None
