"""The users of PLAIN in a file of the operator's (`sasl.plain.password.file`), a line each:

    # NAME:HASH, as `python -m odradek.broker.authentication.password_hash NAME` prints it
    billing:scrypt$ln=15,r=8,p=1$c2FsdHNhbHRzYWx0c2FsdA$…

The file is looked at again every `LOOK_MS`, and read when it is another one; a file that cannot be used is said so with
an ERROR, and the users known before stay. (A deleted user is gone with the next look; connections go on.)
"""

import hashlib
import logging
from collections.abc import Mapping
from typing import Final

from odradek.broker.authentication.password_hash import HASH_BYTES, Cost, PasswordHash, parse_hash
from odradek.broker.disk.disk import Disk
from odradek.runtime.environment import Environment

logger = logging.getLogger(__name__)

LOOK_MS: Final = 5_000.0


class MalformedPasswordFile(ValueError):
    """What is wrong, with the number of the line, and nothing of what stands there."""


class HashedUsers:
    """Users and the hashes of their passwords. Immutable."""

    __slots__ = ("_hashes", "_nobody")

    def __init__(self, hashes: Mapping[str, PasswordHash], nobody_salt: bytes) -> None:
        """`nobody_salt`: any; with it the password of an unknown user is hashed, which costs what it costs for others.
        Raises MalformedPasswordFile where costs differ."""
        costs = {each.cost for each in hashes.values()}
        if len(costs) > 1:
            raise MalformedPasswordFile("its hashes differ in ln, r or p, by which users could be told apart: use one")
        self._hashes = hashes
        self._nobody = PasswordHash(next(iter(costs), Cost()), nobody_salt, bytes(HASH_BYTES))

    def __len__(self) -> int:
        return len(self._hashes)

    def hash_of(self, user: str) -> PasswordHash:
        """That of the user's password; of an unknown user one that no password has."""
        return self._hashes.get(user, self._nobody)


def parse_password_file(text: str, nobody_salt: bytes) -> HashedUsers:
    """Raises MalformedPasswordFile."""
    hashes: dict[str, PasswordHash] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        user, colon, written = line.partition(":")
        if not colon or not user:
            raise MalformedPasswordFile(f"line {number} is not NAME:HASH")
        if user in hashes:
            raise MalformedPasswordFile(f"line {number} has a user that stands above already")
        try:
            hashes[user] = parse_hash(written.strip())
        except ValueError as error:
            raise MalformedPasswordFile(f"line {number}: {error}") from None
    return HashedUsers(hashes, nobody_salt)


class PasswordFile:
    """The newest content of one file."""

    def __init__(self, path: str, disk: Disk, environment: Environment) -> None:
        self._path = path
        self._disk = disk
        self._environment = environment
        self._seen = b""
        """A digest of what was read last, good or not."""
        self.users = HashedUsers({}, environment.random_bytes(16))

    async def load(self) -> None:
        """Reads it for the first time. Raises OSError, MalformedPasswordFile."""
        await self._look()

    async def keep(self) -> None:
        """Reads it again whenever it has changed, for as long as the broker runs."""
        while True:
            await self._environment.sleep(LOOK_MS)
            try:
                if await self._look():
                    logger.info("%s was read again: %d users", self._path, len(self.users))
            except (OSError, MalformedPasswordFile) as error:
                logger.error("%s cannot be used, and the users known before stay: %s", self._path, error)

    async def _look(self) -> bool:
        """Whether it was another one. Raises OSError, MalformedPasswordFile; the second once for each content."""
        data = await self._environment.run_blocking(self._disk.read_whole, self._path)
        if (digest := hashlib.sha256(data).digest()) == self._seen:
            return False
        self._seen = digest
        try:
            text = data.decode()
        except UnicodeDecodeError:
            raise MalformedPasswordFile("it is no UTF-8") from None
        self.users = parse_password_file(text, self._environment.random_bytes(16))
        return True
