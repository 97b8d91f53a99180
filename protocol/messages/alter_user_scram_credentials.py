"""AlterUserScramCredentials (key 51): sets and deletes credentials for SCRAM (KIP-554).

The client salts and hashes the password; the broker derives the stored key and the server key from that.
A mechanism is 1 SCRAM-SHA-256 or 2 SCRAM-SHA-512.

v0: the API, flexible
"""

from odradek.protocol.codec.schema import Request, Response, Struct, field, i8, i16, i32, message, struct


@struct
class AlterUserScramCredentialsResult(Struct):
    user: str
    error_code: i16 = 0
    error_message: str | None = None


@message(key=51, versions=(0, 0), flexible=0)
class AlterUserScramCredentialsResponse(Response):
    throttle_time_ms: i32 = 0
    results: list[AlterUserScramCredentialsResult]


@struct
class ScramCredentialDeletion(Struct):
    name: str
    mechanism: i8


@struct
class ScramCredentialUpsertion(Struct):
    name: str
    mechanism: i8
    iterations: i32
    salt: bytes = field(is_sensitive=True)
    salted_password: bytes = field(is_sensitive=True)

    def __repr__(self) -> str:
        # Who has the salted password can authenticate as the user.
        return (
            f"ScramCredentialUpsertion(name={self.name!r}, mechanism={self.mechanism!r}, "
            f"iterations={self.iterations!r}, salt=<hidden>, salted_password=<hidden>)"
        )


@message(key=51, versions=(0, 0), flexible=0)
class AlterUserScramCredentialsRequest(Request[AlterUserScramCredentialsResponse]):
    deletions: list[ScramCredentialDeletion] = field(default_factory=list[ScramCredentialDeletion])
    upsertions: list[ScramCredentialUpsertion] = field(default_factory=list[ScramCredentialUpsertion])
