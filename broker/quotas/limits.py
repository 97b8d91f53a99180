"""Which limit counts for a request, and who shares it: the most specific one (ClientQuotaManager.scala).

| | a limit of | is shared by |
|---|---|---|
| 1 | this user and this client id | the requests of both |
| 2 | this user and any client id | those of this user and the same client id |
| 3 | this user | those of this user |
| 4 | any user and this client id | those of the same user and this client id |
| 5 | any user and any client id | those of the same user and the same client id |
| 6 | any user | those of the same user |
| 7 | this client id | those of this client id, whoever sends them |
| 8 | any client id | those of the same client id |

"Any" is the default of a type. An empty client id is one like others here: in Kafka no limit of a client id counts for
it, so that whoever leaves it out is free.
"""

import hashlib
from collections.abc import Mapping
from typing import Final, NamedTuple

from odradek.broker.cluster.quotas import CLIENT_ID, USER, EntityQuotas, QuotaEntity

NAME_LENGTH_MAX: Final = 128
"""Of a name as it is kept: a client may call itself anything, of 32 KiB too."""


class Owner(NamedTuple):
    """Whose use is counted together: of the user, of the client id, or of both; empty: it does not matter."""

    user: str
    client_id: str


class Limits:
    """The limits of one kind, as `producer_byte_rate`."""

    __slots__ = ("_clients", "_pairs", "_users")

    def __init__(self, quotas: Mapping[QuotaEntity, EntityQuotas], kind: str) -> None:
        self._pairs: dict[tuple[str | None, str | None], float] = {}
        self._users: dict[str | None, float] = {}
        self._clients: dict[str | None, float] = {}
        for entity, set_for in quotas.items():
            if (limit := set_for.limits.get(kind)) is None:
                continue
            match entity:
                case ((_, user), (_, client_id)):
                    self._pairs[user, client_id] = limit
                case ((of_type, name),) if of_type == USER:
                    self._users[name] = limit
                case ((of_type, name),) if of_type == CLIENT_ID:
                    self._clients[name] = limit
                case _:
                    pass  # of an address, which no limit of requests is for

    def __bool__(self) -> bool:
        return bool(self._pairs or self._users or self._clients)

    def of(self, user: str, client_id: str) -> tuple[Owner, float] | None:
        """Who shares the limit of a request, and the limit; None: there is none."""
        pairs = self._pairs
        if pairs:
            for each in (client_id, None):
                if (limit := pairs.get((user, each))) is not None:
                    return _owner(user, client_id), limit
        if (limit := self._users.get(user)) is not None:
            return _owner(user, ""), limit
        if pairs:
            for each in (client_id, None):
                if (limit := pairs.get((None, each))) is not None:
                    return _owner(user, client_id), limit
        if (limit := self._users.get(None)) is not None:
            return _owner(user, ""), limit
        if (limit := self._clients.get(client_id, self._clients.get(None))) is not None:
            return _owner("", client_id), limit
        return None


def _owner(user: str, client_id: str) -> Owner:
    return Owner(_kept(user), _kept(client_id))


def _kept(name: str) -> str:
    """A name that is not too long to be kept, and still another one for another name."""
    if len(name) <= NAME_LENGTH_MAX:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:16]
    return f"{name[: NAME_LENGTH_MAX - len(digest) - 1]}…{digest}"
