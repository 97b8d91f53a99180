"""Members of both protocols join a real group until it is stable, and leave it empty."""

import pytest

from benchmarks.groups.group_servers import commit_when_led
from benchmarks.groups.rebalance_load import RebalanceLoad, run_rebalance
from benchmarks.harness.servers import Server
from benchmarks.load.replies import LoadFailed
from benchmarks.load.wire import create_topic
from odradek.protocol.messages.list_groups import ListGroupsRequest


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_members_join_are_stable_and_leave(group_server: Server, protocol: str) -> None:
    topic = f"rebalance-{protocol}"
    with group_server.wire() as wire:
        create_topic(wire, topic, 10)
        commit_when_led(wire, "somebody", topic, {0: 0})
        load = RebalanceLoad(protocol, f"group-{protocol}", topic, members=4, partitions=10)
        assert 0 < run_rebalance(group_server.address, load) < 30
        told = {each.group_id: each.group_state for each in wire.ask(ListGroupsRequest(), 5).groups}
    assert told.get(load.group) in (None, "Empty"), "all have left"


def test_an_error_ends_the_run(group_server: Server) -> None:
    with group_server.wire() as wire:
        create_topic(wire, "erring")
        commit_when_led(wire, "somebody", "erring", {0: 0})
    load = RebalanceLoad("consumer", "", "any", members=1, partitions=1)
    with pytest.raises(LoadFailed, match="INVALID_GROUP_ID"):
        run_rebalance(group_server.address, load)
