"""DescribeUserScramCredentials (key 50): which users have credentials for SCRAM, with how many iterations (KIP-554).

A mechanism is 1 SCRAM-SHA-256 or 2 SCRAM-SHA-512. No users, or null, are all of them.

v0: the API, flexible
"""

from odradek.protocol.codec.schema import Request, Response, Struct, field, i8, i16, i32, message, struct


@struct
class CredentialInfo(Struct):
    mechanism: i8
    iterations: i32


@struct
class DescribeUserScramCredentialsResult(Struct):
    user: str
    error_code: i16 = 0
    error_message: str | None = None
    credential_infos: list[CredentialInfo] = field(default_factory=list[CredentialInfo])


@message(key=50, versions=(0, 0), flexible=0)
class DescribeUserScramCredentialsResponse(Response):
    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: str | None = None
    results: list[DescribeUserScramCredentialsResult] = field(default_factory=list[DescribeUserScramCredentialsResult])


@struct
class UserName(Struct):
    name: str


@message(key=50, versions=(0, 0), flexible=0)
class DescribeUserScramCredentialsRequest(Request[DescribeUserScramCredentialsResponse]):
    users: list[UserName] | None = None
