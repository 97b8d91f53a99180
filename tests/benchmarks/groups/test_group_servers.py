"""What is committed is found again, and a commit that is refused is told."""

import pytest

from benchmarks.groups.group_servers import commit, commit_when_led, committed
from benchmarks.harness.coordinators import KeyType, coordinator_of
from benchmarks.harness.servers import Server
from benchmarks.load.wire import create_topic
from odradek.protocol.errors import ErrorCode, KafkaError


def test_offsets_are_committed_and_found(group_server: Server) -> None:
    with group_server.wire() as wire:
        create_topic(wire, "found", 3)
        commit_when_led(wire, "finders", "found", {0: 7, 2: 9})
        assert committed(wire, "finders", "found", range(3)) == {0: 7, 1: -1, 2: 9}
        assert coordinator_of(wire, "finders", KeyType.GROUP) == 0


def test_a_refused_commit_is_an_error(group_server: Server) -> None:
    with group_server.wire() as wire:
        create_topic(wire, "refused")
        commit_when_led(wire, "refused", "refused", {0: 1})
        with pytest.raises(KafkaError) as raised:
            commit(wire, "refused", "refused", {5: 1})
    assert raised.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
