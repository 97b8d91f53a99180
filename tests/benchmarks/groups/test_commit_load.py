"""Every commit of the load is sent, answered and there; a reply that is not as it should be ends the run."""

import pytest

from benchmarks.groups.commit_load import CommitLoad, run_commits
from benchmarks.groups.group_servers import commit_when_led, committed
from benchmarks.harness.servers import Server
from benchmarks.load.replies import LoadFailed
from benchmarks.load.wire import create_topic


@pytest.mark.parametrize("in_flight", [1, 5])
def test_every_group_ends_at_its_last_commit(group_server: Server, in_flight: int) -> None:
    topic = f"commits-{in_flight}"
    load = CommitLoad(topic, topic, groups=3, in_flight=in_flight, commits=40)
    assert load.count == 120
    with group_server.wire() as wire:
        create_topic(wire, topic)
        for group in load.names:
            commit_when_led(wire, group, topic, {0: 0})
        assert run_commits(group_server.address, load) > 0
        assert [committed(wire, group, topic, [0])[0] for group in load.names] == [40, 40, 40]


def test_a_reply_with_an_error_ends_the_run(group_server: Server) -> None:
    load = CommitLoad("missing", "missing", groups=1, in_flight=1, commits=1)
    with group_server.wire() as wire:
        create_topic(wire, "there")
        commit_when_led(wire, "missing-0", "there", {0: 0})
    with pytest.raises(LoadFailed, match="reply 0 is"):
        run_commits(group_server.address, load)
