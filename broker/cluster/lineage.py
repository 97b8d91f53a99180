"""Lineage: what tells one history of the metadata from another, and whether a store follows what somebody knows. Pure.

A store can be set back: to a snapshot, to a copy. It then goes on differently, and its revisions come to be as high as
those of the history that was lost, by what brokers write into the wrong copy, and in etcd by what other programs write.
So a revision says nothing. What only one history has are random values, written together with everything else:

    /cluster/incarnations/<id>     the incarnation of broker <id>, a random value for each process (Kafka has the same
                                   word for it, BrokerRegistration.incarnationId); and those before, each with the
                                   revision of its last commit
    /cluster/commits/<id>/<inc>    the number of the newest commit of this incarnation: each commit of a broker writes
                                   it (stamped_store.py), under no lease; the broker's next incarnation deletes it
    /cluster/origin                written by `odradek cluster restore` and `rebuild`, and by `adopt`: a value that it
                                   has alone, and the revision up to which this history takes the place of any other

A running broker has these in its image, and each data directory has them on its disk
(directories/metadata_revision.py), as `KnownHistory`: of each broker the newest commit that was seen.

**A store follows** what is known if it has all of these commits in its past (`contradiction`). Of each broker:

* Its newest commit is the known one, or a later one. If it is at an older revision, or another one at the same
  revision, the known one is missing.
* A later one of the same incarnation follows the known one, since that process never writes into a history that lacks
  its own commits: each commit expects the last one that was answered (`Txn.since`). So does one that comes when another
  process has begun: it does not find its key, and changes nothing.
* One of another incarnation does so if the known incarnation ended at the known commit or later. Of a broker that died
  and came back on the wrong copy the list of incarnations says where the copy had ended it.
* A process does not know its own commit that was not answered. Where it does not find it, its incarnation ends there,
  and its next commits are of another part of it (`part_of`), which is an incarnation by itself for all that is above.

The list has INCARNATIONS_MAX former incarnations. Below the last one that was dropped from it nothing is refused: a
broker that was away for so long starts, and the commits of all brokers are compared nevertheless.

**What an operator begins** supersedes what is known if it says so: a directory takes an origin that it does not know if
it followed no revision above `Origin.supersedes`, and none of another kind. An origin that it followed before is below
what it followed since, so it never goes back to one. A running broker takes none: it ends, and its next start does.

What is not seen:

* A store that was set back within a second of the end of all brokers that knew more, so that none had it on its disk.
* A process's own commit that was set back, where another one of the same process was on its way all the time, through
  the end of the old store and the beginning of the other one, and arrived then. Connections end with the store.
* A store that was set back and lost ends of leases alone, and no commit of a broker: both are the same.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Final, TypeVar

from odradek.broker.cluster.keys import (
    CLUSTER_KEY,
    COMMITS_PREFIX,
    INCARNATIONS_PREFIX,
    ORIGIN_KEY,
    KeyKind,
    commit_key,
    parse_broker_id,
    parse_key,
)
from odradek.broker.cluster.store import Snapshot
from odradek.broker.cluster.values import Fields, MalformedMetadata, encode

T = TypeVar("T")

INCARNATIONS_MAX: Final = 100
"""How many former incarnations of a broker are listed: some 2.5 KB."""


def part_of(process: str, number: int) -> str:
    """The incarnation of a process, from 0; the process's name has no dot."""
    return f"{process}.{number}" if number else process


def process_of(incarnation: str) -> str:
    return incarnation.partition(".")[0]


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit of a broker. `number` counts within the incarnation, in the order in which they were sent."""

    incarnation: str
    number: int
    revision: int


@dataclass(frozen=True, slots=True)
class Incarnations:
    """The processes of one broker."""

    current: str
    past: tuple[tuple[str, int], ...] = ()
    """Those before, oldest first, each with the revision of its last commit."""
    forgotten: int = 0
    """Up to this revision, incarnations may have ended that are not listed."""
    revision: int = field(default=0, compare=False)
    """At which the current one began."""

    def followed_by(self, incarnation: str, end: int) -> "Incarnations":
        """`end`: the revision of the last commit of the current one."""
        past = (*self.past, (self.current, end))
        dropped, kept = past[:-INCARNATIONS_MAX], past[-INCARNATIONS_MAX:]
        return Incarnations(incarnation, kept, dropped[-1][1] if dropped else self.forgotten)

    def encode(self) -> bytes:
        return encode(
            {"incarnation": self.current, "past": [[*each] for each in self.past], "forgotten": self.forgotten}
        )


@dataclass(frozen=True, slots=True)
class Origin:
    """That an operator began this history, in place of all that had come no farther than `supersedes`."""

    origin_id: str
    supersedes: int

    @classmethod
    def of(cls, values: Mapping[str, bytes], supersedes: int) -> "Origin":
        """For what begins with these keys. The same ones in place of the same history give the same origin: what comes
        behind tells the two apart."""
        digest = sha256()
        for key, value in sorted(values.items()):
            digest.update(b"%d %d " % (len(key), len(value)) + key.encode() + value)
        return cls(f"{supersedes}-{digest.hexdigest()[:16]}", supersedes)

    def encode(self) -> bytes:
        return encode({"origin": self.origin_id, "supersedes": self.supersedes})


@dataclass(frozen=True, slots=True)
class KnownHistory:
    """What somebody knows of the history that he followed."""

    revision: int = 0
    """The newest that he has seen."""
    origin_id: str = ""
    """Empty: no operator began it."""
    commits: Mapping[int, Commit] = field(default_factory=dict[int, Commit])
    """By broker."""


@dataclass(frozen=True, slots=True)
class Lineage:
    """What a store, or an image, says of its history."""

    origin: Origin | None = None
    commits: Mapping[int, Commit] = field(default_factory=dict[int, Commit])
    incarnations: Mapping[int, Incarnations] = field(default_factory=dict[int, Incarnations])

    @classmethod
    def from_snapshot(cls, snapshot: Snapshot) -> "Lineage":
        """Of a snapshot that holds at least what begins with CLUSTER_KEY. Raises MalformedMetadata."""
        lineage = cls()
        for key, entry in snapshot.entries.items():
            if key.startswith(CLUSTER_KEY):  # of 100,000 keys it is a few
                kind, name = parse_key(key)
                lineage = lineage.apply(kind, name, entry.value, entry.revision)
        return lineage

    def apply(self, kind: KeyKind, name: str, value: bytes | None, revision: int) -> "Lineage":
        """After this key was written, or deleted, at a revision; others change nothing. Raises MalformedMetadata."""
        match kind:
            case KeyKind.COMMIT:
                broker_id, incarnation = parse_commit(name)
                if value is not None:
                    commit = decode_commit(value, broker_id, incarnation, revision)
                    return replace(self, commits={**self.commits, broker_id: commit})
                if (known := self.commits.get(broker_id)) is None or known.incarnation != incarnation:
                    return self  # the next one has begun
                return replace(self, commits=without(self.commits, broker_id))
            case KeyKind.INCARNATION:
                broker_id = parse_broker_id(name)
                if value is None:
                    return replace(self, incarnations=without(self.incarnations, broker_id))
                incarnations = decode_incarnations(value, broker_id, revision)
                return replace(self, incarnations={**self.incarnations, broker_id: incarnations})
            case KeyKind.ORIGIN:
                return replace(self, origin=None if value is None else decode_origin(value))
            case _:
                return self

    @property
    def origin_id(self) -> str:
        return "" if self.origin is None else self.origin.origin_id

    def current(self, broker_id: int) -> str | None:
        """A broker's process that committed last; None where none has."""
        incarnations = self.incarnations.get(broker_id)
        return None if incarnations is None else process_of(incarnations.current)

    def followed(self, revision: int) -> KnownHistory:
        """What is known of a history that came to a revision with this lineage."""
        return KnownHistory(revision, self.origin_id, self.commits)


def without(known: Mapping[int, T], broker_id: int) -> Mapping[int, T]:
    return {each: value for each, value in known.items() if each != broker_id}


# -- whether one follows the other ------------------------------------------------------------------------------------


def contradiction(known: KnownHistory, found: Lineage, revision: int) -> str | None:
    """Why the store, which has this lineage at this revision, does not follow what is known; None if it does."""
    if known.origin_id != found.origin_id:
        if found.origin is not None:
            return "an operator has begun its metadata again since (odradek cluster restore or rebuild)"
        return "it is from before the last restore or rebuild of the metadata"
    if revision < known.revision:
        return f"it is at revision {revision}, and was at {known.revision} before"
    for broker_id, commit in sorted(known.commits.items()):
        if (reason := _lacks(broker_id, commit, found)) is not None:
            return reason
    return None


def start_contradiction(known: KnownHistory, found: Lineage, revision: int) -> str | None:
    """The same for a start, which takes what an operator has begun."""
    origin = found.origin
    if origin is None or origin.origin_id == known.origin_id:
        return contradiction(known, found, revision)
    if known.revision <= origin.supersedes:
        return None
    return (
        f"it was restored or rebuilt in place of what came no farther than revision {origin.supersedes}, and this one "
        f"came to {known.revision} (--revision-at-least)"
    )


def _lacks(broker_id: int, known: Commit, found: Lineage) -> str | None:
    """Why a commit of a broker is not in the past of what was found; None if it is."""
    commit, incarnations = found.commits.get(broker_id), found.incarnations.get(broker_id)
    missing = f"it lacks what broker {broker_id} wrote at revision {known.revision}"
    if commit is None or incarnations is None:
        return f"{missing}, and anything else of that broker"
    if commit.revision < known.revision:
        return f"{missing}: the newest of that broker is from revision {commit.revision}"
    if commit.revision == known.revision:
        return None if commit == known else f"{missing}: something else was written there"
    if known.incarnation == incarnations.current:
        return None
    end = dict(incarnations.past).get(known.incarnation)
    if end is None:
        return None if known.revision <= incarnations.forgotten else f"{missing}, and the process that did so"
    return None if end >= known.revision else f"{missing}: the process that did so ended at revision {end} there"


# -- values -----------------------------------------------------------------------------------------------------------


def parse_commit(name: str) -> tuple[int, str]:
    """Broker and incarnation from what stands behind COMMITS_PREFIX. Raises MalformedMetadata, as all of these do."""
    broker, slash, incarnation = name.partition("/")
    if not slash or not incarnation:
        raise MalformedMetadata(f"{COMMITS_PREFIX}{name} names no process of a broker")
    return parse_broker_id(broker), incarnation


def encode_commit(number: int) -> bytes:
    return encode({"number": number})


def decode_commit(value: bytes, broker_id: int, incarnation: str, revision: int) -> Commit:
    return Commit(incarnation, Fields(value, commit_key(broker_id, incarnation)).number("number"), revision)


def decode_incarnations(value: bytes, broker_id: int, revision: int = 0) -> Incarnations:
    fields = Fields(value, f"{INCARNATIONS_PREFIX}{broker_id}")
    past: list[tuple[str, int]] = []
    for each in fields.items("past"):
        match each:
            case [str(incarnation), int(end)]:
                past.append((incarnation, end))
            case _:
                raise fields.wrong("past")
    return Incarnations(fields.text("incarnation"), tuple(past), fields.number("forgotten"), revision)


def decode_origin(value: bytes) -> Origin:
    fields = Fields(value, ORIGIN_KEY)
    return Origin(fields.text("origin"), fields.number("supersedes"))
