"""A backup of the metadata store, as bytes, and what restoring it writes. Pure.

    {"odradek_metadata_backup":1,"cluster_id":"…","revision":4711,"time":"2026-11-22T14:00:00Z","count":2}
    {"key":"/partitions/orders/0","value":"{\\"v\\":1,…}"}
    {"key":"/topics/orders","value":"{\\"v\\":1,…}"}
    {"sha256":"…"}

JSON objects, one a line. The first says what the file is: its format, whose metadata it has, as of which revision, when
it was read, and how many keys follow, in their order. The last has the SHA-256 of all bytes before it, so that
`head -n -1 FILE | sha256sum` shows the same. A file that was cut off, or changed anywhere, is refused (`BadBackup`).

Secrets are left out unless they are asked for, and named in the first line, under `left_out` (secret_values.py). Always
left out is what belongs to a process, and not to the cluster: registrations, the controller, who is stopping, what all
brokers can do (but that ACLs count stays, for what was refused must not be allowed after a restore), and marks of
creations under way. So are keys that are not ours, and the lineage (lineage.py): what is restored begins a history of
its own, and says so.

**Leader epochs** are raised by a restore: since the backup was made there may have been elections, and an epoch that
stands in a log must not come a second time.

**Restoring** takes several commits in a store like etcd. The first puts a mark under `/cluster`, of which every broker
says that it cannot be read, and so leaves the store alone; the last one puts the cluster's id in its place. What was
interrupted in between is recognised by the mark, which names the backup: the same one can finish it, or it is cleared.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, cast

from odradek.broker.cluster.features import ACLS
from odradek.broker.cluster.image import OF_LINEAGE, ClusterImage
from odradek.broker.cluster.keys import (
    CLUSTER_KEY,
    FEATURES_KEY,
    KeyKind,
    MalformedMetadata,
    decode_cluster,
    decode_features,
    decode_partition,
    encode_features,
    parse_key,
    parse_partition,
)
from odradek.broker.cluster.secret_values import without_secrets
from odradek.broker.cluster.store import CHUNK_SIZE, COMMIT_BYTES_MAX, Entry, Snapshot

FORMAT: Final = "odradek_metadata_backup"
FORMAT_VERSION: Final = 1
NOT_KEPT: Final = OF_LINEAGE | {
    KeyKind.BROKER,
    KeyKind.CONTROLLER,
    KeyKind.STOPPING,
    KeyKind.CHANGING,
    KeyKind.FOREIGN,
}
EPOCHS_SKIPPED: Final = 1_000
"""A partition had not so many elections between a backup and the loss of the store."""


class BadBackup(Exception):
    """The file is no backup, or not as it was written."""


@dataclass(frozen=True, slots=True)
class Backup:
    """What a cluster knew of itself. `values`: by key, in their order, `/cluster` too; `checksum`: as in the file."""

    cluster_id: str
    revision: int
    time: str
    """When it was read, as text in UTC."""
    values: Mapping[str, bytes] = field(repr=False)  # there may be secrets
    checksum: str = ""
    left_out: tuple[str, ...] = ()
    """The secrets that it goes without (secret_values.py)."""


def take_backup(snapshot: Snapshot, time: str, *, with_secrets: bool = False) -> Backup:
    """What is worth to be kept of a store; credentials and passwords only if they are asked for. Raises
    MalformedMetadata: it has no cluster, or half of one, or what is nothing of ours in our place."""
    entry = snapshot.entries.get(CLUSTER_KEY)
    if entry is None:
        raise MalformedMetadata("the store has no cluster: no broker was ever started on it")
    kept = {key: each.value for key, each in sorted(snapshot.entries.items()) if parse_key(key)[0] not in NOT_KEPT}
    values = _with_lasting_features(kept)
    for key, value in values.items():
        try:
            key.encode()
            value.decode()
        except UnicodeError as error:
            raise MalformedMetadata(f"{key!a} or its value is no text, as all of ours are: {error}") from None
    left_out: tuple[str, ...] = ()
    if not with_secrets:
        values, left_out = without_secrets(values)
    return Backup(decode_cluster(entry.value), snapshot.revision, time, values, left_out=left_out)


def _with_lasting_features(values: Mapping[str, bytes]) -> dict[str, bytes]:
    """What all brokers can do is found out anew, but for what must not be forgotten: that ACLs count (features.py).
    Raises MalformedMetadata."""
    left = {key: value for key, value in values.items() if key != FEATURES_KEY}
    if (value := values.get(FEATURES_KEY)) is not None and (level := decode_features(value)[0].get(ACLS)):
        left[FEATURES_KEY] = encode_features({ACLS: level})
    return dict(sorted(left.items()))


# ----------------------------------------------------------------------------------------------------------- the file
def encode_backup(backup: Backup) -> bytes:
    """The file."""
    header: dict[str, object] = {
        FORMAT: FORMAT_VERSION,
        "cluster_id": backup.cluster_id,
        "revision": backup.revision,
        "time": backup.time,
        "count": len(backup.values),
    }
    if backup.left_out:
        header["left_out"] = backup.left_out
    lines = [_line(header)]
    lines += [_line({"key": key, "value": value.decode()}) for key, value in backup.values.items()]
    body = b"".join(lines)
    return body + _line({"sha256": hashlib.sha256(body).hexdigest()})


def decode_backup(data: bytes) -> Backup:
    """Raises BadBackup."""
    head, _, _ = data.partition(b"\n")
    header = _object(head)
    version = header.get(FORMAT)
    if type(version) is not int:
        raise BadBackup("it does not begin like a backup of Odradek's metadata")
    if version > FORMAT_VERSION:
        raise BadBackup(
            f"it has format version {version}, written by a newer Odradek; this one reads up to {FORMAT_VERSION}"
        )
    body, _, last = data.removesuffix(b"\n").rpartition(b"\n")
    body += b"\n"
    checksum = _object(last).get("sha256")
    if not isinstance(checksum, str):
        raise BadBackup("it ends without a checksum: it was cut off")
    if hashlib.sha256(body).hexdigest() != checksum:
        raise BadBackup("its checksum is another: it was damaged or changed")
    match header:
        case {"cluster_id": str(cluster_id), "revision": int(revision), "time": str(time), "count": int(count)}:
            values = dict(_entries(body))
        case _:
            raise BadBackup("its first line lacks what it should say")
    if len(values) != count:
        raise BadBackup(f"it should have {count} keys, and has {len(values)}")
    try:
        if decode_cluster(values.get(CLUSTER_KEY, b"")) != cluster_id:
            raise BadBackup("its first line names another cluster than its keys do")
    except MalformedMetadata as error:
        raise BadBackup(str(error)) from error
    return Backup(cluster_id, revision, time, values, checksum, _left_out(header))


def _entries(body: bytes) -> Iterator[tuple[str, bytes]]:
    for number, line in enumerate(body.removesuffix(b"\n").split(b"\n")[1:], start=2):
        match _object(line):
            case {"key": str(key), "value": str(value)}:
                if parse_key(key)[0] in NOT_KEPT:
                    raise BadBackup(f"it has the key {key}, which does not belong into one")
                yield key, value.encode()
            case _:
                raise BadBackup(f"its line {number} has no key and value")


def _left_out(header: Mapping[str, object]) -> tuple[str, ...]:
    found = header.get("left_out")
    return tuple(str(name) for name in cast("list[object]", found)) if isinstance(found, list) else ()


def _object(line: bytes) -> Mapping[str, object]:
    """The JSON object of a line; empty for what is none."""
    try:
        found: object = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return cast("Mapping[str, object]", found) if isinstance(found, dict) else {}


def _line(fields: Mapping[str, object]) -> bytes:
    return json.dumps(fields, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"


# ---------------------------------------------------------------------------------------------------------- restoring
def restored_values(backup: Backup) -> dict[str, bytes]:
    """What a restore writes. Raises MalformedMetadata for what no broker could read."""
    values = _with_lasting_features(backup.values)
    for key, value in backup.values.items():
        kind, name = parse_key(key)
        if kind is KeyKind.PARTITION:
            partition = decode_partition(value, *parse_partition(name))
            values[key] = replace(
                partition,
                leader_epoch=partition.leader_epoch + EPOCHS_SKIPPED,
                partition_epoch=partition.partition_epoch + EPOCHS_SKIPPED,
            ).encode()
    ClusterImage.from_snapshot(Snapshot(1, {key: Entry(value, 1) for key, value in values.items()}))
    return values


def chunks(values: Mapping[str, bytes]) -> Iterator[dict[str, bytes]]:
    """The keys in portions that one commit takes, `/cluster` apart, which comes last."""
    chunk: dict[str, bytes] = {}
    size_bytes = 0
    for key, value in values.items():
        if key == CLUSTER_KEY:
            continue
        its_bytes = len(key.encode()) + len(value)
        if chunk and (len(chunk) >= CHUNK_SIZE or size_bytes + its_bytes > COMMIT_BYTES_MAX // 2):
            yield chunk
            chunk, size_bytes = {}, 0
        chunk[key] = value
        size_bytes += its_bytes
    if chunk:
        yield chunk


def described(keys: Sequence[str]) -> str:
    """What a store holds, in a few words."""
    counts: dict[str, int] = {}
    for key in keys:
        kind, _ = parse_key(key)
        name = kind.name.lower().replace("_", " ")
        counts[name] = counts.get(name, 0) + 1
    return ", ".join(f"{count} {name} key(s)" for name, count in sorted(counts.items())) or "nothing"
