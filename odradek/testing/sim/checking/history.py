"""What happened in a simulated world: a list of plain records, in the order in which they happened.

    history = History()
    history.add(Sent(at_ms=1012.5, client="c1", producer="c1/1", value=7, topic="t", partition=0, acks=-1))
    history.add(Acknowledged(at_ms=1019.0, value=7, topic="t", partition=0, offset=41))
    text = history.to_json(); again = History.from_json(text)

Rules:
- `at_ms` is virtual time, the same clock for all machines, and never goes back from one record to the next.
- Every value is sent once in a history: it names the record. `Sent` is its invocation; exactly one of `Acknowledged`
  and `Failed` may follow it. None follows when the client was killed, or the history ended first: anything may have
  become of it then.
- `Polled` is the completion of a read; `asked_ms` is its invocation, since when its reader had waited.
- Positions are a reader's own: `Polled.position` is where it stood before, and it stands behind the last record after.
  `Placed` says that it was put somewhere: at its start, or since the broker told it that its position is out of range.
- A topic is named by its identity (topics.py) wherever the world knows it, so that one that was made anew is another
  one. `Sent` and `PollFailed` have the name that their client said.
- What an operator wanted is `Asked`, and `Answered` what came of it, both under one name. None follows where the
  history ended first: anything may have become of it.
- What the world itself did stands between: `Happened` (faults and repairs), `Phase`. What a model of loss needs of it
  is in `Happened.kind`.
- `ReplicaSeen` is a look into a broker, not something a client was told.
- Members of consumer groups have records of their own besides (group_history.py), and so have transactions
  (transaction_history.py).

Fields are numbers, texts, truth values, and lists of them, so a record is one line of JSON, and the checker can be fed
with histories made by hand.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Final, Literal, TypeVar, get_args

from odradek.testing.sim.checking.group_history import CommitAsked, GroupRecord, OffsetsRead
from odradek.testing.sim.checking.transaction_history import TransactionRecord

Event = TypeVar("Event")

FaultKind = Literal[
    "process crash",
    "power failure",
    "disk lost",
    "directory fails",
    "clean stop",
    "start",
    "pause",
    "continue",
    "suspend",
    "clock jump",
    "slow machine",
    "rush",
    "disk fault",
    "network fault",
    "store fault",
    "operator",
    "unregistered",
    "heal",
    "exit",
]
"""`process crash`: what was not synced survives. `power failure`: it may be gone, in part. `disk lost`: all is gone.
`directory fails`: its broker may give it up until it starts anew; what lies in it counts as lost meanwhile.
`rush`: producers have more to send. `unregistered`: an operator has a broker forgotten that is not there, and with it
that it was in sync. `exit`: a process ended by itself, `detail` says why. `clean stop` is written when
it is asked for, `start` when a process is started, before its broker serves."""

PhaseName = Literal["safety", "healing", "liveness", "end"]

OperatorAction = Literal[
    "delete records",
    "reassign",
    "cancel",
    "elect",
    "elect uncleanly",
    "create topic",
    "delete topic",
    "add partitions",
    "alter options",
    "unregister",
]


@dataclass(frozen=True, slots=True)
class Sent:
    """A client handed a record to a producer."""

    at_ms: float
    client: str
    producer: str
    """One instance of a producer; of an idempotent one the records of a partition keep their order of `Sent`."""
    value: int
    topic: str
    partition: int | None
    """Asked for; None where the producer chooses."""
    acks: int
    """0, 1, or -1 for all."""
    is_idempotent: bool = False
    key: int | None = None
    """What its key says; None where it has none. A newer record of the same key supersedes it in a compacted topic."""


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """The producer said that the record is written."""

    at_ms: float
    value: int
    topic: str
    partition: int
    offset: int
    """-1: with acks=0, for a repeated batch whose offset the broker does not know any more, and where it is not certain
    in which of two topics of the name it is; then `topic` is the older one."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The producer gave up on the record."""

    at_ms: float
    value: int
    error: str
    is_definite: bool
    """The record is certainly not in the log, and never will be. Else it may be there, or still come."""


@dataclass(frozen=True, slots=True)
class Placed:
    """A reader's position was set to `offset`."""

    at_ms: float
    client: str
    topic: str
    partition: int
    offset: int
    why: Literal["start", "out of range"]


@dataclass(frozen=True, slots=True)
class Polled:
    """A reader was given records of one partition, in the order of their offsets."""

    at_ms: float
    asked_ms: float
    client: str
    topic: str
    partition: int
    position: int
    """The offset it stood at before."""
    records: list[tuple[int, int]]
    """(offset, value). Offsets between them hold no record for readers."""
    high_watermark: int | None = None
    """As the answer told it, where the reader sees that."""


@dataclass(frozen=True, slots=True)
class PollFailed:
    """A read ended with an error; the position is where it was."""

    at_ms: float
    asked_ms: float
    client: str
    topic: str
    error: str


@dataclass(frozen=True, slots=True)
class Asked:
    """An operator asks for a change."""

    at_ms: float
    operator: str
    """One request of one operator; repetitions by its client included."""
    action: OperatorAction
    topic: str = ""
    """Its name; empty where the change is about the cluster."""
    partition: int = -1
    numbers: list[int] = field(default_factory=list[int])
    """The offset of "delete records" (-1: the high watermark), the replicas of "reassign", the count of partitions, and
    the replication factor of "create topic" behind it, or the broker to be unregistered."""
    options: dict[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class Answered:
    """An operator was told what came of it."""

    at_ms: float
    operator: str
    is_done: bool
    """The cluster says that the change was made. Else it was refused, or nobody knows."""
    topic: str = ""
    """The identity of the topic, where it is certain; empty where it is not, and for a change of the cluster."""
    numbers: list[int] = field(default_factory=list[int])
    """The first offset that "delete records" has left."""
    error: str = ""


@dataclass(frozen=True, slots=True)
class Happened:
    """The world did something to a machine, or between machines."""

    at_ms: float
    kind: FaultKind
    machine: str
    """Empty where it is about several; then `detail` names them."""
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Phase:
    """A part of the history begins: faults come only in `safety`, and when `liveness` begins all is repaired."""

    at_ms: float
    name: PhaseName


@dataclass(frozen=True, slots=True)
class ReplicaSeen:
    """One replica, as its broker holds it at that moment."""

    at_ms: float
    machine: str
    incarnation: int
    """Counts the starts of the machine's broker."""
    topic: str
    partition: int
    leader_epoch: int
    is_leader: bool
    log_start_offset: int
    log_end_offset: int
    high_watermark: int
    in_sync: list[int]
    """What a leader holds for the in-sync set; empty on a follower."""
    maximal_in_sync: list[int]
    """And with the members that it has asked to be added."""


Record = (
    Sent
    | Acknowledged
    | Failed
    | Placed
    | Polled
    | PollFailed
    | Asked
    | Answered
    | Happened
    | Phase
    | ReplicaSeen
    | GroupRecord
    | TransactionRecord
)

_CLASSES: Final = {kind.__name__: kind for kind in get_args(Record)}


class History:
    """The records, first to last."""

    def __init__(self, records: Iterable[Record] = ()) -> None:
        self.records: list[Record] = []
        for record in records:
            self.add(record)

    def __len__(self) -> int:
        return len(self.records)

    def __iter__(self) -> Iterator[Record]:
        return iter(self.records)

    def add(self, record: Record) -> None:
        assert not self.records or record.at_ms >= self.records[-1].at_ms, "time does not go back"
        self.records.append(record)

    def of(self, kind: type[Event]) -> list[Event]:
        """All records of one class."""
        return [record for record in self.records if isinstance(record, kind)]

    def to_json(self) -> str:
        """One record a line."""
        return "".join(f"{json.dumps({'_kind': type(each).__name__, **asdict(each)})}\n" for each in self.records)

    @classmethod
    def from_json(cls, text: str) -> "History":
        """Reads what `to_json` wrote. Raises KeyError and TypeError for what is no history."""
        history = cls()
        for line in text.splitlines():
            fields = json.loads(line)
            kind = _CLASSES[fields.pop("_kind")]
            if kind is Polled:
                fields["records"] = [(offset, value) for offset, value in fields["records"]]
            elif kind is CommitAsked or kind is OffsetsRead:
                fields["offsets"] = [(partition, offset) for partition, offset in fields["offsets"]]
            history.add(kind(**fields))
        return history
