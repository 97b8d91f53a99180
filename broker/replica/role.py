"""Which part this broker has in a partition, and since which leader epoch. Pure.

| kind | who leads | what may be asked of this broker |
|---|---|---|
| LEADER | this broker | everything |
| FOLLOWER | `leader_id` | what consumers may read from a follower (KIP-392) |
| NONE | nobody that is known, or the partition goes | nothing |

| from | event | to |
|---|---|---|
| any | `lead` | LEADER, in a later epoch |
| any | `follow` a broker | FOLLOWER, in the same epoch or a later one |
| any | `follow` nobody, `resign` | NONE |

A **term** is the time for which a broker leads. What it appended in one term may be gone in its next one: so who waits
for an append compares `terms_ended` with what it was then.
"""

from enum import Enum

from odradek.broker.cluster.keys import NO_LEADER
from odradek.protocol.errors import ErrorCode, KafkaError


class RoleKind(Enum):
    LEADER = "leader"
    FOLLOWER = "follower"
    NONE = "none"


class Role:
    """The role of one replica."""

    __slots__ = (
        "_name",
        "_refusal",
        "epoch_start_offset",
        "is_leader",
        "is_replica",
        "kind",
        "leader_epoch",
        "leader_id",
        "terms_ended",
    )

    def __init__(self, name: str) -> None:
        """`name`: of the partition, for errors."""
        self._name = name
        self._become(RoleKind.NONE)
        self.leader_id = NO_LEADER
        self.leader_epoch = -1
        self.epoch_start_offset = 0
        """Where the log ended when this broker became leader."""
        self.terms_ended = 0
        """How often this broker may have stopped leading."""
        self._refusal = self.not_leader()

    # -- moves --------------------------------------------------------------------------------------------------

    def lead(self, node_id: int, leader_epoch: int, start_offset: int) -> None:
        assert leader_epoch > self.leader_epoch, (leader_epoch, self.leader_epoch)
        self._become(RoleKind.LEADER)
        self.leader_id, self.leader_epoch, self.epoch_start_offset = node_id, leader_epoch, start_offset

    def follow(self, leader_id: int, leader_epoch: int) -> KafkaError:
        """`leader_id`: NO_LEADER for nobody. Returns what those are told who wait for a leader here."""
        assert leader_epoch >= self.leader_epoch, (leader_epoch, self.leader_epoch)
        error = self.resign()
        self._become(RoleKind.NONE if leader_id == NO_LEADER else RoleKind.FOLLOWER)
        self.leader_id, self.leader_epoch = leader_id, leader_epoch
        return error

    def resign(self, error: KafkaError | None = None) -> KafkaError:
        """Returns what those are told who wait: `error`, or NOT_LEADER_OR_FOLLOWER."""
        self._become(RoleKind.NONE)
        self.leader_id = NO_LEADER
        self.terms_ended += 1
        self._refusal = error or self.not_leader()
        return self._refusal

    def _become(self, kind: RoleKind) -> None:
        self.kind = kind
        self.is_leader = kind is RoleKind.LEADER
        """Asked for several times in each request, and so not worked out."""
        self.is_replica = kind is not RoleKind.NONE
        """Whether it leads or follows."""

    # -- questions ----------------------------------------------------------------------------------------------

    def require_leader(self, current_leader_epoch: int = -1) -> None:
        """As `require_replica`, and raises NOT_LEADER_OR_FOLLOWER after that, as Kafka's `Partition.getLocalLog`."""
        if not self.is_leader or current_leader_epoch != -1:
            self.require_replica(current_leader_epoch)
        if not self.is_leader:
            raise self._refusal

    def require_replica(self, current_leader_epoch: int = -1) -> None:
        """For those who may read from a follower, too. Raises KafkaError NOT_LEADER_OR_FOLLOWER, or by the client's
        epoch (-1: not given, KIP-320) FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH."""
        if not self.is_replica:
            raise self._refusal
        if current_leader_epoch != -1:
            self._require_epoch(current_leader_epoch)

    def _require_epoch(self, current_leader_epoch: int) -> None:
        if current_leader_epoch == self.leader_epoch:
            return
        is_old = current_leader_epoch < self.leader_epoch
        code = ErrorCode.FENCED_LEADER_EPOCH if is_old else ErrorCode.UNKNOWN_LEADER_EPOCH
        raise KafkaError(code, f"{self._name} has epoch {self.leader_epoch}, not {current_leader_epoch}")

    def require_term(self, terms_ended: int) -> None:
        """Raises KafkaError NOT_LEADER_OR_FOLLOWER if a term has ended since, even if this broker leads again."""
        if self.terms_ended != terms_ended:
            raise self.not_leader() if self.is_leader else self._refusal

    def not_leader(self) -> KafkaError:
        return KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"this broker does not lead {self._name}; refresh metadata")
