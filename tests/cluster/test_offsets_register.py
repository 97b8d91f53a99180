"""A register is beside the group that it belongs to, and writes down what it was told and no refusal."""

import socket
import struct
import threading
from pathlib import Path

from odradek.broker.coordinator.key_partition import partition_of
from odradek.protocol.codec.codec import encode_parts
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.offset_fetch import (
    OffsetFetchResponse,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
)
from odradek.testing.sim.checking.group_history import OffsetsRead
from odradek.testing.sim.checking.history import History
from tests.cluster.client_session import Job, Session
from tests.cluster.offsets_register import OFFSET_FETCH_VERSION, read_register, register_beside


def test_a_register_has_the_coordinator_of_its_group() -> None:
    assert partition_of(register_beside("rounds"), 50) == partition_of("rounds", 50)
    assert register_beside("rounds") != "rounds"


def answer_once(listener: socket.socket, response: OffsetFetchResponse) -> None:
    body = b"".join(encode_parts(response, OFFSET_FETCH_VERSION))
    connection, _ = listener.accept()
    with connection:
        connection.recv(4096)
        connection.sendall(struct.pack(">ii", 4 + len(body), 1) + body)


def test_what_a_broker_tells_is_written_down_and_its_refusals_are_not(tmp_path: Path) -> None:
    job = Job("register", "register", "", "t", 1, str(tmp_path / "history"), group="g")
    session = Session(job)
    partition = OffsetFetchResponsePartition(partition_index=0, committed_offset=7, metadata="")
    told = OffsetFetchResponse(topics=[OffsetFetchResponseTopic(name="t", partitions=[partition])])
    refused = OffsetFetchResponse(topics=[], error_code=ErrorCode.NOT_COORDINATOR)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        for response in (refused, told):
            answering = threading.Thread(target=answer_once, args=(listener, response))
            answering.start()
            read_register(session, address)
            answering.join()
    read_register(session, address)  # nobody listens any more
    session.close()
    [read] = History.from_json(Path(job.file).read_text()).of(OffsetsRead)
    assert (read.machine, read.topic, read.offsets) == (address, "t", [(0, 7)])
    assert read.asked_ms <= read.at_ms
