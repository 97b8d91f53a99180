"""What `odradek secure init` is asked to make, and whether it can be. Pure.

Hosts are the names and addresses by which clients reach the broker: they go into its certificate. Clients are users
with a password for SCRAM, and each may do everything with what is its own: topics, groups and transactional ids that
bear its name, or begin with its name and a dot (`billing`, `billing.orders`). The dot keeps `billing` and `billing2`
apart.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from odradek.broker.config.host_names import host_problem, is_wildcard
from odradek.client.admin.acls import AclBinding, AclOperation, AclPatternType, AclResourceType

__all__ = ["ADMIN", "BROKER", "MECHANISM", "Plan", "PlanRefused", "checked_clients", "checked_hosts", "rights_of"]

ADMIN: Final = "admin"
"""The user of who administers the cluster."""
BROKER: Final = "broker"
"""The user as which brokers log in at one another."""
MECHANISM: Final = "SCRAM-SHA-512"
PORT: Final = 9093
DAYS: Final = 365
AUTHORITY_DAYS: Final = 3650
_CLIENT: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
"""It becomes the name of a directory, and the beginning of topics' names."""
OWNED: Final[dict[AclResourceType, tuple[AclOperation, ...]]] = {
    AclResourceType.TOPIC: (AclOperation.READ, AclOperation.WRITE, AclOperation.CREATE, AclOperation.DESCRIBE),
    AclResourceType.GROUP: (AclOperation.READ,),
    AclResourceType.TRANSACTIONAL_ID: (AclOperation.WRITE, AclOperation.DESCRIBE),
}
"""What a client may do with its own: what `--producer` and `--consumer` of `odradek acls add` stand for."""


class PlanRefused(Exception):
    """What was asked for cannot be made; one sentence says why."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be made. `directory` is absolute; `listen` is the address to accept at, as `HOST:PORT`.

    `store_options`: a broker's options for a store on etcd, by name; none for the store in the data directory.
    """

    hosts: Sequence[str]
    clients: Sequence[str]
    directory: str
    data_dir: str
    listen_host: str
    port: int
    days: int = DAYS
    store_options: tuple[tuple[str, str], ...] = ()

    @property
    def users(self) -> list[str]:
        return [ADMIN, BROKER, *self.clients]

    @property
    def bootstrap(self) -> str:
        """Where clients begin."""
        return ",".join(address(host, self.port) for host in self.hosts)


def address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def checked_hosts(hosts: Iterable[str]) -> list[str]:
    """Each once. Raises PlanRefused."""
    found = list(dict.fromkeys(hosts))
    if not found:
        raise PlanRefused("give --host: the name by which clients reach the broker, which its certificate has to have")
    for host in found:
        if is_wildcard(host):
            raise PlanRefused(f"--host {host!r} is every address, and none that clients could connect to: give a name")
        if "%" in host:
            raise PlanRefused(f"--host {host} has a zone, which means something on one machine alone: leave it out")
        if (problem := host_problem(host)) is not None:
            raise PlanRefused(f"--host {host}: {problem}")
    return found


def checked_clients(clients: Iterable[str]) -> list[str]:
    """The names in comma-separated lists, each once. Raises PlanRefused."""
    names = [name.strip() for text in clients for name in text.split(",")]
    for name in names:
        if not _CLIENT.fullmatch(name):
            raise PlanRefused(f"{name!r} is no name for a client: write letters, digits, dots, dashes, underscores")
        if name.lower() in (ADMIN, BROKER):
            raise PlanRefused(f"{name} is the name of a user that is made anyway: give the client another one")
    for name in names:
        for other in names:
            if other.startswith(f"{name}."):
                raise PlanRefused(f"what begins with {name}. is {name}'s own, so {other} can be no other client's name")
    lower = [name.lower() for name in names]
    if twice := [name for name in names if lower.count(name.lower()) > 1]:
        raise PlanRefused(f"{twice[0]} stands twice in --clients, where upper and lower case make no difference")
    return names


def rights_of(client: str) -> list[AclBinding]:
    """The ACLs of a client."""
    patterns = ((client, AclPatternType.LITERAL), (f"{client}.", AclPatternType.PREFIXED))
    return [
        AclBinding(kind, name, f"User:{client}", operation, pattern_type=pattern)
        for kind, operations in OWNED.items()
        for name, pattern in patterns
        for operation in operations
    ]
