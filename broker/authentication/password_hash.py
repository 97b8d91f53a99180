"""Hashes of passwords, as a password file has them, and how one is made.

    billing:scrypt$ln=15,r=8,p=1$<salt, base64>$<hash, base64>

`ln` is the logarithm of N, in the notation of passlib and the Modular Crypt Format; base64 is without padding. scrypt
(RFC 7914) with these parameters takes 32 MiB and about a tenth of a second, for a broker and for a thief of the file.

`python -m odradek.broker.authentication.password_hash NAME` asks for a password and prints the line of it.
"""

import binascii
import hashlib
import hmac
import re
import sys
from base64 import b64decode, b64encode
from typing import Final, NamedTuple

SALT_BYTES: Final = 16
HASH_BYTES: Final = 32
LOG_N_MIN: Final = 14
MEMORY_BYTES_MAX: Final = 128 * 1024**2
_HASH: Final = re.compile(
    r"scrypt\$ln=(?P<ln>[1-9][0-9]?),r=(?P<r>[1-9][0-9]?),p=(?P<p>[1-9][0-9]?)"
    r"\$(?P<salt>[A-Za-z0-9+/]{16,88}={0,2})\$(?P<hash>[A-Za-z0-9+/]{43})=?"
)


class Cost(NamedTuple):
    """What a hash costs. All users of a file have the same, or they could be told apart by time."""

    log_n: int = 15
    r: int = 8
    p: int = 1

    @property
    def memory_bytes(self) -> int:
        return 128 * self.r * (1 << self.log_n)


class PasswordHash(NamedTuple):
    """Of one password."""

    cost: Cost
    salt: bytes
    digest: bytes

    def __repr__(self) -> str:
        return f"PasswordHash(cost={self.cost!r}, [hidden])"


def parse_hash(text: str) -> PasswordHash:
    """Raises ValueError with what is wrong, which quotes nothing of it."""
    if (found := _HASH.fullmatch(text)) is None:
        raise ValueError("it is not of the form scrypt$ln=15,r=8,p=1$SALT$HASH, with a hash of 32 bytes")
    cost = Cost(int(found["ln"]), int(found["r"]), int(found["p"]))
    if cost.log_n < LOG_N_MIN or cost.memory_bytes * cost.p > MEMORY_BYTES_MAX:
        raise ValueError(f"ln is at least {LOG_N_MIN}, and 128 * r * p * 2^ln at most {MEMORY_BYTES_MAX} bytes")
    try:
        return PasswordHash(cost, _decoded(found["salt"]), _decoded(found["hash"]))
    except binascii.Error:
        raise ValueError("its salt or hash is no base64") from None


def hashed(password: str, salt: bytes, cost: Cost | None = None) -> PasswordHash:
    """Takes a tenth of a second."""
    cost = Cost() if cost is None else cost
    return PasswordHash(cost, salt, _digest(password.encode(), salt, cost))


def written(of: PasswordHash) -> str:
    """What `parse_hash` reads."""
    log_n, r, p = of.cost
    return f"scrypt$ln={log_n},r={r},p={p}${_encoded(of.salt)}${_encoded(of.digest)}"


def fits(password: bytes, of: PasswordHash) -> bool:
    """Whether it is this password. Takes a tenth of a second, in any thread, and lets others run meanwhile."""
    return hmac.compare_digest(_digest(password, of.salt, of.cost), of.digest)


def _digest(password: bytes, salt: bytes, cost: Cost) -> bytes:
    n = 1 << cost.log_n
    room = 2 * 128 * cost.r * (n + cost.p + 2)  # OpenSSL needs half of it
    return hashlib.scrypt(password, salt=salt, n=n, r=cost.r, p=cost.p, maxmem=room, dklen=HASH_BYTES)


def _encoded(data: bytes) -> str:
    return b64encode(data).decode().rstrip("=")


def _decoded(text: str) -> bytes:
    bare = text.rstrip("=")
    return b64decode(bare + "=" * (-len(bare) % 4), validate=True)


def main() -> None:
    """Prints the line of a user. The password comes from the terminal, or is the first line of the input."""
    import asyncio
    from getpass import getpass

    from odradek.runtime.environment import Environment

    if len(sys.argv) != 2 or not sys.argv[1] or ":" in sys.argv[1]:
        raise SystemExit("usage: python -m odradek.broker.authentication.password_hash NAME  (a name without a colon)")
    password = getpass("Password: ") if sys.stdin.isatty() else sys.stdin.readline().rstrip("\r\n")
    if not password:
        raise SystemExit("the password is empty")

    async def salt() -> bytes:
        return Environment().random_bytes(SALT_BYTES)

    sys.stdout.write(f"{sys.argv[1]}:{written(hashed(password, asyncio.run(salt())))}\n")


if __name__ == "__main__":
    main()
