"""`odradek partitions spread` on a scripted cluster: told first, moved in lots, gone on with after any interruption.

What it does against brokers stands in `tests/compat/test_cluster_take.py`.
"""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

import pytest
from click.testing import CliRunner

from odradek.client.admin.configs import ResourceType
from odradek.client.admin.errors import ItemsFailed
from odradek.client.commands.failures import CommandFailed
from odradek.client.commands.partitions import partitions
from odradek.client.errors.client_errors import ClientError
from odradek.protocol.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from odradek.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from tests.client.admin_handlers import Served
from tests.client.commands.scripted import ran, replicated_cluster
from tests.client.replication_handlers import Replicated
from tests.client.scripted_broker import ScriptedCluster

Printed = pytest.CaptureFixture[str]

COPY_S = 0.7
"""What a reassignment takes."""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("spread", "--throttle", "5"), "--throttle belongs to --execute"),
        (("spread", "--brokers", "1,x"), "--brokers 1,x: write ids of brokers"),
        (("spread", "--lot", "0", "--execute"), "0 is not in the range"),
    ],
)
def test_a_wrong_command_line_is_told_without_asking_a_broker(arguments: tuple[str, ...], said: str) -> None:
    done = CliRunner().invoke(partitions, [*arguments, "-b", "localhost:1"])
    assert done.exit_code == 2, done.output
    assert said in done.output


def all_on_first(replicated: Replicated, **topics: int) -> None:
    for topic, count in topics.items():
        for index in range(count):
            replicated.place(topic, index, (0,), (0,))


@asynccontextmanager
async def copying(replicated: Replicated) -> AsyncGenerator[list[int]]:
    """Ends reassignments a while after they began; how many were under way at each look."""
    seen: list[int] = []

    async def run() -> None:
        while True:
            moving = [key for key, placed in replicated.placed.items() if placed.target is not None]
            seen.append(len(moving))
            await asyncio.sleep(COPY_S)
            for topic, index in moving:
                placed = replicated.of(topic, index)
                if placed.target is not None:
                    replicated.finish(topic, index)
                    leader = replicated.cluster.topics[topic].partitions[index].leader
                    if leader not in placed.replicas:
                        replicated.cluster.move_leader(topic, index, to=placed.replicas[0])

    task = asyncio.ensure_future(run())
    try:
        yield seen
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def held(replicated: Replicated, topic: str) -> list[list[int]]:
    return [replicated.of(topic, index).replicas for index in range(len(replicated.cluster.topics[topic].partitions))]


def led(scripted: ScriptedCluster, topic: str) -> list[int]:
    return sorted(each.leader for each in scripted.topics[topic].partitions)


def throttles(served: Served) -> dict[str, dict[str, str]]:
    return {name: dict(options) for (_, name), options in served.configs.items() if options}


@pytest.mark.virtual_time
async def test_what_would_move_is_told_and_nothing_is_changed(capsys: Printed) -> None:
    with replicated_cluster(2, orders=2, others=1) as (scripted, _, replicated):
        all_on_first(replicated, orders=2, others=1)
        assert await ran(scripted, partitions, "spread") is None
        printed = capsys.readouterr()
        *moves, summary = printed.out.splitlines()
        assert len(moves) == 1
        assert moves[0].startswith("orders-")
        assert moves[0].endswith("moves from 0 to 1")
        assert summary == (
            "1 of 3 partition(s) change, 1 replica(s) are copied; each broker of 0,1 has 1 to 2 replicas then, and is "
            "the preferred leader of 1 to 2"
        )
        assert printed.err == "Nothing was changed: give --execute to have it done.\n"
        assert await ran(scripted, partitions, "spread", "--json") is None
        (told,) = json.loads(capsys.readouterr().out)
        assert (told["replicas_before"], told["replicas"], told["is_done"]) == ([0], [1], False)
        assert scripted.count(AlterPartitionReassignmentsRequest) == 0
        assert scripted.count(IncrementalAlterConfigsRequest) == 0


@pytest.mark.virtual_time
async def test_partitions_move_in_lots_and_their_preferred_leaders_lead(capsys: Printed) -> None:
    with replicated_cluster(3, orders=9) as (scripted, served, replicated):
        for index in range(9):
            replicated.place("orders", index, (0, 1), (0, 1))
        async with copying(replicated) as seen:
            assert await ran(scripted, partitions, "spread", "--execute", "--lot", "2") is None
        assert max(seen) == 2
        assert led(scripted, "orders") == [0, 0, 0, 1, 1, 1, 2, 2, 2]
        counted = [broker for replicas in held(replicated, "orders") for broker in replicas]
        assert [counted.count(broker) for broker in range(3)] == [6, 6, 6]
        assert throttles(served) == {}
        assert "lot 1 of " in capsys.readouterr().out
        assert await ran(scripted, partitions, "spread", "--execute") is None
        assert capsys.readouterr().out.startswith("0 of 9 partition(s) change, 0 replica(s) are copied")


@pytest.mark.virtual_time
async def test_a_spread_interrupted_at_any_request_is_completed_by_the_next_one() -> None:
    """The command is cancelled at its n-th request, for each n until one runs through, and given again."""
    interrupted_at = 0
    has_ended = False
    while not has_ended:
        with replicated_cluster(3, orders=4, others=3) as (scripted, served, replicated):
            all_on_first(replicated, orders=4, others=3)
            served.configs[ResourceType.BROKER, "1"]["log.cleaner.threads"] = "3"
            async with copying(replicated):
                has_ended = await _interrupted(scripted, interrupted_at)
                error = await ran(scripted, partitions, "spread", "--execute", "--lot", "2")
                assert error is None, (interrupted_at, error)
            for topic in ("orders", "others"):
                counted = [broker for replicas in held(replicated, topic) for broker in replicas]
                assert max(counted.count(broker) for broker in range(3)) <= -(-len(counted) // 3)
            assert throttles(served) == {"1": {"log.cleaner.threads": "3"}}, interrupted_at
            assert led(scripted, "others") == [0, 1, 2]
        interrupted_at += 1
    assert interrupted_at > 20, "it has as many steps as that"


async def _interrupted(scripted: ScriptedCluster, at: int) -> bool:
    """Runs a throttled spread and cancels it once so many requests have come. Whether it ended before."""
    running = asyncio.ensure_future(
        ran(scripted, partitions, "spread", "--execute", "--lot", "2", "--throttle", "1000")
    )
    left = at

    def count(_connection: object, _request: object) -> bool:
        nonlocal left
        left -= 1
        if left < 0:
            running.cancel()
        return True

    scripted.guard = count
    try:
        assert await running is None
    except asyncio.CancelledError:
        return False
    finally:
        scripted.guard = None
    return True


@pytest.mark.virtual_time
async def test_what_was_killed_between_throttle_and_move_leaves_no_rate() -> None:
    """Rates of brokers that no replica is named for, and replicas that are named where nothing moves."""
    with replicated_cluster(2, orders=2) as (scripted, served, replicated):
        replicated.place("orders", 0, (0,), (0,))
        replicated.place("orders", 1, (1,), (1,))
        served.configs[ResourceType.BROKER, "1"]["leader.replication.throttled.rate"] = "1000"
        assert await ran(scripted, partitions, "spread", "--execute") is None
        assert throttles(served) == {}
        served.configs[ResourceType.TOPIC, "orders"]["leader.replication.throttled.replicas"] = "0:1"
        assert await ran(scripted, partitions, "spread", "--execute") is None
        assert throttles(served) == {}


@pytest.mark.virtual_time
async def test_a_cluster_without_topics_has_nothing_to_spread(capsys: Printed) -> None:
    with replicated_cluster(2) as (scripted, _, _):
        assert await ran(scripted, partitions, "spread", "--execute") is None
        assert capsys.readouterr().out.startswith("0 of 0 partition(s) change, 0 replica(s) are copied; each broker of")


@pytest.mark.virtual_time
async def test_a_move_under_way_counts_as_done_and_is_waited_for() -> None:
    with replicated_cluster(2, orders=2) as (scripted, _, replicated):
        all_on_first(replicated, orders=2)
        replicated.of("orders", 1).target = [1]
        async with copying(replicated):
            assert await ran(scripted, partitions, "spread", "--execute") is None
        assert held(replicated, "orders") == [[0], [1]]


@pytest.mark.virtual_time
async def test_a_broker_that_is_not_there_gets_nothing(capsys: Printed) -> None:
    with replicated_cluster(2, orders=2) as (scripted, _, replicated):
        all_on_first(replicated, orders=2)
        scripted.brokers[1].is_fenced = True
        assert await ran(scripted, partitions, "spread") is None
        assert "moves from 0 to 1" in capsys.readouterr().out
        error = await ran(scripted, partitions, "spread", "--execute")
        assert isinstance(error, CommandFailed)
        assert "Broker 1 is not there, and would get replicas: start it, or leave it out" in str(error)
        assert scripted.count(AlterPartitionReassignmentsRequest) == 0


@pytest.mark.virtual_time
async def test_what_cannot_be_spread_is_told_before_anything_moves() -> None:
    with replicated_cluster(3, orders=3) as (scripted, _, replicated):
        all_on_first(replicated, orders=3)
        refused: ClientError | CommandFailed | None
        refused = await ran(scripted, partitions, "spread", "--brokers", "0,9")
        assert "Broker 9 is not registered, and 0,1,2 are" in str(refused)
        replicated.place("orders", 0, (0,), ())
        refused = await ran(scripted, partitions, "spread", "--brokers", "1", "--execute")
        assert "orders-0 has no leader, so that nothing of it can be copied" in str(refused)
        assert scripted.count(AlterPartitionReassignmentsRequest) == 0


@pytest.mark.virtual_time
async def test_fewer_brokers_than_replicas_are_refused_unless_asked_for() -> None:
    with replicated_cluster(3, orders=2) as (scripted, _, replicated):
        for index in range(2):
            replicated.place("orders", index, (1, 2), (1, 2))
        error = await ran(scripted, partitions, "spread", "--brokers", "0", "--execute")
        assert "orders-0, orders-1 has more replicas than the 1 broker(s) to spread over" in str(error)
        async with copying(replicated):
            assert await ran(scripted, partitions, "spread", "--brokers", "0", "--execute", "--fewer-replicas") is None
        assert held(replicated, "orders") == [[0], [0]]


@pytest.mark.virtual_time
async def test_a_leader_that_cannot_be_elected_is_told_at_the_end() -> None:
    with replicated_cluster(2, orders=2) as (scripted, served, replicated):
        replicated.place("orders", 0, (0, 1), (0, 1))
        replicated.place("orders", 1, (1, 0), (0,))
        error = await ran(scripted, partitions, "spread", "--execute")
        assert isinstance(error, ItemsFailed)
        assert "PREFERRED_LEADER_NOT_AVAILABLE" in str(next(iter(error.errors.values())))
        assert throttles(served) == {}
