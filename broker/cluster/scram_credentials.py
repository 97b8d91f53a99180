"""The credentials of users for SCRAM, as the metadata store has them, and the secret by which users that do not exist
are hidden (protocol/scram_server.py). Pure; scram_store.py writes them.

    /scram/secret                       random; made by the first broker that needs it, and kept
    /scram/users/<mechanism>/<user>     salt, iterations, stored key, server key

Both are secrets (`SECRET_KINDS`): who has a credential can guess its password, and can play the broker.
"""

from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from odradek.broker.cluster.keys import KeyKind
from odradek.broker.cluster.values import Fields, encode
from odradek.protocol.scram import ALGORITHMS
from odradek.protocol.scram_server import ScramCredential

ITERATIONS_MAX: Final = 16_384
"""More are not stored (ScramControlManager.java): each costs every client that authenticates."""

Users = Mapping[str, ScramCredential]
NO_USERS: Users = {}


@dataclass(frozen=True, slots=True)
class ScramCredentials:
    """All of a cluster's. Immutable."""

    users: Mapping[str, Users] = field(default_factory=dict[str, Users])
    """By mechanism, then by name."""
    secret: bytes | None = field(default=None, repr=False)

    def find(self, mechanism: str, user: str) -> ScramCredential | None:
        return self.users.get(mechanism, NO_USERS).get(user)

    def of_user(self, user: str) -> dict[str, ScramCredential]:
        """By mechanism."""
        return {name: users[user] for name, users in self.users.items() if user in users}

    def apply(self, kind: KeyKind, name: str, value: bytes | None) -> "ScramCredentials":
        """With what an event of the store says. Raises MalformedMetadata."""
        if kind is KeyKind.SCRAM_SECRET:
            return replace(self, secret=None if value is None else decode_secret(value))
        mechanism, slash, user = name.partition("/")
        if mechanism not in ALGORITHMS or not slash:
            return self  # of a mechanism that a newer release may have
        users = dict(self.users.get(mechanism, NO_USERS))
        if value is None:
            users.pop(user, None)
        else:
            users[user] = decode_credential(value)
        return replace(self, users={**self.users, mechanism: users})


# --------------------------------------------------------------------------------------------------------------- values
def encode_secret(secret: bytes) -> bytes:
    return encode({"secret": b64encode(secret).decode()})


def decode_secret(value: bytes) -> bytes:
    """Raises MalformedMetadata."""
    return _bytes(Fields(value, "the secret of SCRAM"), "secret")


def encode_credential(credential: ScramCredential) -> bytes:
    return encode(
        {
            "salt": b64encode(credential.salt).decode(),
            "stored_key": b64encode(credential.stored_key).decode(),
            "server_key": b64encode(credential.server_key).decode(),
            "iterations": credential.iterations,
        }
    )


def decode_credential(value: bytes) -> ScramCredential:
    """Raises MalformedMetadata."""
    fields = Fields(value, "a credential for SCRAM")
    return ScramCredential(
        _bytes(fields, "salt"),
        _bytes(fields, "stored_key"),
        _bytes(fields, "server_key"),
        fields.number("iterations"),
    )


def _bytes(fields: Fields, name: str) -> bytes:
    try:
        return b64decode(fields.text(name), validate=True)
    except ValueError:
        raise fields.wrong(name) from None
