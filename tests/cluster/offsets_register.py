"""A register of one offset, kept by a group's coordinator: one writer commits 1, 2, 3, …, from outside of any group,
and every broker is asked again and again what is committed. Who asks after a commit was acknowledged must be told that
offset or a later one, or an error, by whatever broker: one that has been replaced as the coordinator must know so.

The group has no members, so nothing but commits and questions happens to it; it is coordinated by the same broker as
the group under test. A question does not wait for the one before, and each has a connection of its own: so some lie in
the sockets of a broker that is paused, and are answered when it goes on. Refusals are not written down.

Requests are framed here: processes/apache_kafka.py, which could, brings numpy along, whose thread takes SIGTERM from
who waits for it (tests/signals.py).
"""

import socket
import struct
import threading
from collections.abc import Iterator
from itertools import count
from typing import Final

from odradek.broker.coordinator.key_partition import partition_of
from odradek.protocol.codec.codec import decode, encode_parts
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from odradek.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic, OffsetFetchResponse
from odradek.testing.sim.checking.group_history import CommitAnswered, CommitAsked, OffsetsRead
from tests.cluster.client_session import PAUSE_S, Job, Session, now_ms

OFFSET_COMMIT: Final = 8
OFFSET_COMMIT_VERSION: Final = 2
OFFSET_FETCH: Final = 9
OFFSET_FETCH_VERSION: Final = 5
INTERVAL_S: Final = 0.2
COMMIT_TIMEOUT_S: Final = 1.0
READ_TIMEOUT_S: Final = 15.0
PARTITION: Final = 0


def register_beside(group: str, partition_count: int = 50) -> str:
    """A group that the coordinator of `group` coordinates, too."""
    names = (f"register-{number}" for number in count())
    return next(name for name in names if partition_of(name, partition_count) == partition_of(group, partition_count))


def keep_register(session: Session) -> None:
    """Until it is to stop; questions that are open then are given up."""
    threading.Thread(target=_write, args=(session,), daemon=True).start()
    while not session.stop.wait(INTERVAL_S):
        for address in session.job.bootstrap.split(","):
            threading.Thread(target=read_register, args=(session, address), daemon=True).start()


def _write(session: Session) -> None:
    """Each number is committed once, at the broker that took the last one; after a failure, the next number at the
    next broker."""
    addresses = _in_turn(session.job.bootstrap.split(","))
    address, job = next(addresses), session.job
    for number in count(1):
        if session.stop.wait(PAUSE_S):
            return
        session.add(CommitAsked(0.0, job.name, number, job.topic, [(PARTITION, number)]))
        error = _commit(address, job, number)
        session.add(CommitAnswered(0.0, job.name, number, error))
        if error:
            address = next(addresses)


def _in_turn(addresses: list[str]) -> Iterator[str]:
    while True:
        yield from addresses


def _commit(address: str, job: Job, offset: int) -> str:
    """What went wrong; nothing where it is acknowledged."""
    partition = OffsetCommitRequestPartition(
        partition_index=PARTITION, committed_offset=offset, committed_leader_epoch=-1, committed_metadata=""
    )
    request = OffsetCommitRequest(
        group_id=job.group,
        generation_id_or_member_epoch=-1,
        member_id="",
        retention_time_ms=-1,
        topics=[OffsetCommitRequestTopic(name=job.topic, partitions=[partition])],
    )
    body = b"".join(encode_parts(request, OFFSET_COMMIT_VERSION))
    try:
        answer = _asked(address, OFFSET_COMMIT, OFFSET_COMMIT_VERSION, body, COMMIT_TIMEOUT_S)
    except OSError as error:
        return repr(error)
    [topic] = decode(OffsetCommitResponse, OFFSET_COMMIT_VERSION, answer).topics
    code = topic.partitions[0].error_code
    return f"error {code}" if code else ""


def read_register(session: Session, address: str) -> None:
    job, asked_ms = session.job, now_ms()
    topic = OffsetFetchRequestTopic(name=job.topic, partition_indexes=[PARTITION])
    request = OffsetFetchRequest(group_id=job.group, topics=[topic])
    body = b"".join(encode_parts(request, OFFSET_FETCH_VERSION))
    try:
        answer = _asked(address, OFFSET_FETCH, OFFSET_FETCH_VERSION, body, READ_TIMEOUT_S)
    except OSError:
        return
    response = decode(OffsetFetchResponse, OFFSET_FETCH_VERSION, answer)
    if response.error_code == 0 and not session.stop.is_set():
        told = [(each.partition_index, each.committed_offset) for each in response.topics[0].partitions]
        session.add(OffsetsRead(0.0, asked_ms, address, job.topic, told))


def _asked(address: str, api_key: int, api_version: int, body: bytes, timeout_s: float) -> bytes:
    """The body of the answer. Raises OSError."""
    host, _, port = address.rpartition(":")
    request = struct.pack(">hhih", api_key, api_version, 1, 0) + body
    with socket.create_connection((host, int(port)), timeout=timeout_s) as connection:
        connection.sendall(struct.pack(">i", len(request)) + request)
        with connection.makefile("rb") as stream:
            size = stream.read(4)
            answer = stream.read(int.from_bytes(size, "big"))
    if len(answer) < 4:
        raise ConnectionResetError("the broker has gone away")
    return answer[4:]
