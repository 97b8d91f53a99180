"""The users of the matrix of rights, each with its ACLs: what they may do never changes, so that one set-up is enough.

| name | may |
|---|---|
| `none` | nothing |
| `root` | everything, as a super user |
| `everything` | everything, by ACLs for all resources |
| `only-KIND-OPERATION` | this, and what it implies |
| `not-KIND-OPERATION` | everything but this, which is denied |
| `prefixed` | everything with what begins with the prefix of the matrix |
| `here`, `elsewhere` | everything, from the host that the tests run on, or from another one |
| `nowhere`, `not-elsewhere` | everything, but it is denied: all of it, or from another host |
| `not-prefixed` | everything, but with topics that begin with the prefix |
| `consumer`, `producer`, `describer` | what such a program needs |
"""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from odradek.broker.access.operations import Operation
from odradek.broker.access.resource import CLUSTER as THE_CLUSTER
from odradek.broker.access.resource import ResourceType

TOPIC, GROUP, CLUSTER, TXN = (
    ResourceType.TOPIC,
    ResourceType.GROUP,
    ResourceType.CLUSTER,
    ResourceType.TRANSACTIONAL_ID,
)
ALL: Final = 2
"""The operation that stands for every other one."""
LITERAL, PREFIXED = 3, 4
DENY, ALLOW = 2, 3
ANY_HOST, HERE, ELSEWHERE = "*", "127.0.0.1", "10.9.8.7"
PREFIX: Final = "rights-"
PASSWORD: Final = "matrix"  # noqa: S105 - of users who exist while a test runs
SUPER: Final = "root"

NAMES: Final[Mapping[ResourceType, tuple[str, ...]]] = {
    TOPIC: tuple(f"{PREFIX}{name}" for name in ("topic", "doomed", "new", "made")),
    GROUP: tuple(f"{PREFIX}{name}" for name in ("group", "members", "idle", "matching")),
    CLUSTER: (THE_CLUSTER.name,),
    TXN: tuple(f"{PREFIX}{name}" for name in ("open", "started")),
}
"""What requests ask for. Of topics the first exists, the second is deleted and made again, the others are not there;
the first group has offsets, the second members, the third offsets that are deleted, the last nothing; the first
transaction is open."""

OPERATIONS: Final[Mapping[ResourceType, tuple[Operation, ...]]] = {
    TOPIC: (
        Operation.READ,
        Operation.WRITE,
        Operation.CREATE,
        Operation.DELETE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    GROUP: (
        Operation.READ,
        Operation.DELETE,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    CLUSTER: (
        Operation.CREATE,
        Operation.DELETE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.CLUSTER_ACTION,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
        Operation.IDEMPOTENT_WRITE,
    ),
    TXN: (Operation.WRITE, Operation.DESCRIBE),
}


class Acl(NamedTuple):
    """Of one principal."""

    kind: ResourceType
    name: str
    operation: int
    pattern: int = LITERAL
    host: str = ANY_HOST
    permission: int = ALLOW


def on(kind: ResourceType, operation: int, *, permission: int = ALLOW) -> list[Acl]:
    """For each resource of the matrix by its name."""
    return [Acl(kind, name, operation, permission=permission) for name in NAMES[kind]]


def everywhere(*, host: str = ANY_HOST, permission: int = ALLOW) -> list[Acl]:
    """All operations on all resources."""
    names = {kind: "*" if kind is not CLUSTER else THE_CLUSTER.name for kind in NAMES}
    return [Acl(kind, name, ALL, host=host, permission=permission) for kind, name in names.items()]


def prefixed(*kinds: ResourceType, permission: int = ALLOW) -> list[Acl]:
    return [Acl(kind, PREFIX, ALL, PREFIXED, permission=permission) for kind in kinds]


KINDS: Final[Mapping[ResourceType, str]] = {TOPIC: "topic", GROUP: "group", CLUSTER: "cluster", TXN: "txn"}


def _of_one_operation() -> Iterator[tuple[str, list[Acl]]]:
    for kind, operations in OPERATIONS.items():
        for operation in operations:
            word = operation.name.lower().replace("_", "-")
            name = f"{KINDS[kind]}-{word}"
            yield f"only-{name}", on(kind, operation)
            yield f"not-{name}", everywhere() + on(kind, operation, permission=DENY)


PRINCIPALS: Final[Mapping[str, list[Acl]]] = {
    "none": [],
    SUPER: [],
    "everything": everywhere(),
    "prefixed": [*prefixed(TOPIC, GROUP, TXN), *on(CLUSTER, ALL)],
    "here": everywhere(host=HERE),
    "elsewhere": everywhere(host=ELSEWHERE),
    "nowhere": everywhere() + everywhere(permission=DENY),
    "not-elsewhere": everywhere() + everywhere(host=ELSEWHERE, permission=DENY),
    "not-prefixed": everywhere() + prefixed(TOPIC, permission=DENY),
    "consumer": on(TOPIC, Operation.READ) + on(GROUP, Operation.READ),
    "producer": on(TOPIC, Operation.WRITE) + on(TXN, Operation.WRITE),
    "describer": [acl for kind in NAMES for acl in on(kind, Operation.DESCRIBE)],
    **dict(_of_one_operation()),
}


def concerned(kinds: frozenset[ResourceType]) -> list[str]:
    """The users of whom something may be expected where resources of these types are asked about."""
    others = tuple(f"{known}-" for kind, known in KINDS.items() if kind not in kinds)
    return [name for name in PRINCIPALS if not name.removeprefix("only-").removeprefix("not-").startswith(others)]
