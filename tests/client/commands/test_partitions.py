"""`odradek partitions` on a scripted cluster: moves, throttles, elections, and what is refused or asked before.

What it does against brokers stands in `tests/compat/test_cluster_commands.py`.
"""

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from odradek.client.admin.configs import ResourceType
from odradek.client.admin.errors import ItemsFailed
from odradek.client.commands.failures import CommandFailed
from odradek.client.commands.partitions import partitions
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from odradek.protocol.messages.elect_leaders import ElectLeadersRequest
from odradek.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from odradek.protocol.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from tests.client.admin_handlers import Served
from tests.client.broker_faults import disconnect_before
from tests.client.commands.scripted import on_terminal, ran, replicated_cluster

Printed = pytest.CaptureFixture[str]

RATES = {"leader.replication.throttled.rate": "1000", "follower.replication.throttled.rate": "1000"}
ONE = ("--topic", "orders", "--partition", "0")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("reassign",), "give FILE, or --topic and --partition"),
        (("reassign", "--topic", "t"), "give FILE, or --topic and --partition"),
        (("reassign", *ONE), "give --replicas, or --cancel"),
        (("reassign", *ONE, "--replicas", "1,x"), "write ids of brokers"),
        (("reassign", *ONE, "--replicas", "1", "--cancel"), "leave --replicas out"),
        (("reassign", "file", *ONE), "FILE stands in place of"),
        (("reassign", "nowhere.json"), "No such file"),
        (("reassign", "--list", "--topic", "t"), "leave the rest out"),
        (("reassign", "--list", "--cancel"), "leave the rest out"),
        (("reassign", "--list", "--wait"), "--throttle and --wait belong to a move"),
        (("reassign", *ONE, "--cancel", "--throttle", "5"), "--throttle and --wait belong to a move"),
        (("reassign", *ONE, "--replicas", "1", "--throttle", "0"), "0 is not in the range"),
        (("elect", "--preferred", "--unclean"), "exclude each other"),
        (("elect", "--partition", "0"), "give --topic, too"),
    ],
)
def test_a_wrong_command_line_is_told_without_asking_a_broker(arguments: tuple[str, ...], said: str) -> None:
    done = CliRunner().invoke(partitions, [*arguments, "-b", "localhost:1"])
    assert done.exit_code == 2, done.output
    assert said in done.output


# -------------------------------------------------------------------------------------------------------------- moves
@pytest.mark.virtual_time
async def test_a_partition_is_moved_listed_and_left_where_it_was(capsys: Printed) -> None:
    with replicated_cluster(4, orders=1) as (scripted, _, replicated):
        replicated.place("orders", 0, (0, 1), (0, 1))
        assert await ran(scripted, partitions, "reassign", *ONE, "--replicas", "1,2") is None
        assert await ran(scripted, partitions, "reassign", "--list") is None
        assert capsys.readouterr().out.splitlines() == ["orders-0 moves from 0,1 to 1,2", "orders\t0\t1,2\t2\t0"]
        assert await ran(scripted, partitions, "reassign", "--list", "--json") is None
        assert json.loads(capsys.readouterr().out)[0]["target"] == [1, 2]
        assert await ran(scripted, partitions, "reassign", *ONE, "--cancel") is None
        assert capsys.readouterr().out == "orders-0 stays where it was\n"
        assert replicated.of("orders", 0).target is None
        error = await ran(scripted, partitions, "reassign", *ONE, "--cancel")
        assert isinstance(error, ItemsFailed)
        assert [each.code for each in error.errors.values()] == [ErrorCode.NO_REASSIGNMENT_IN_PROGRESS]
        assert scripted.count(IncrementalAlterConfigsRequest) == 0, "nothing was throttled"


@pytest.mark.virtual_time
async def test_of_several_in_a_file_all_are_tried(tmp_path: Path, capsys: Printed) -> None:
    rows = [
        {"topic": "orders", "partition": 0, "replicas": [1]},
        {"topic": "orders", "partition": 1, "replicas": [99]},
        {"topic": "orders", "partition": 7, "replicas": [1]},
        {"topic": "typo", "partition": 0, "replicas": [1]},
    ]
    file = tmp_path / "moves.json"
    file.write_text(json.dumps({"version": 1, "partitions": rows}))
    with replicated_cluster(2, orders=2) as (scripted, _, replicated):
        error = await ran(scripted, partitions, "reassign", str(file))
        assert capsys.readouterr().out == "orders-0 moves from 0 to 1\n"
        assert isinstance(error, ItemsFailed)
        said = [str(each) for each in error.errors.values()]
        assert len(said) == 3
        assert "Metadata of typo failed with UNKNOWN_TOPIC_OR_PARTITION" in said[0]
        assert "the reassignment names partition 7 of orders, which has 0 to 1" in said[1]
        assert "orders-1 failed with INVALID_REPLICA_ASSIGNMENT" in said[2]
        assert replicated.of("orders", 0).target == [1]


async def until(happened: Callable[[], bool]) -> None:
    """Lets virtual time pass."""
    while not happened():  # noqa: ASYNC110 - nobody is told
        await asyncio.sleep(0.01)


def throttled(served: Served) -> dict[str, dict[str, str]]:
    """What is set, by the resource's name."""
    return {name: dict(options) for (_, name), options in served.configs.items() if options}


@pytest.mark.virtual_time
async def test_a_throttle_is_set_before_the_move_and_removed_after_it(capsys: Printed) -> None:
    with replicated_cluster(5, orders=2, others=1) as (scripted, served, replicated):
        replicated.place("orders", 0, (0, 1), (0, 1))
        replicated.place("orders", 1, (1, 0), (1, 0))
        served.configs[ResourceType.BROKER, "1"]["log.cleaner.threads"] = "3"
        moving = asyncio.ensure_future(
            ran(scripted, partitions, "reassign", *ONE, "--replicas", "1,2", "--throttle", "1000", "--wait")
        )
        await until(lambda: replicated.of("orders", 0).target is not None)
        assert throttled(served) == {
            "0": RATES,
            "1": {**RATES, "log.cleaner.threads": "3"},
            "2": RATES,
            "orders": {
                "leader.replication.throttled.replicas": "0:0,0:1",
                "follower.replication.throttled.replicas": "0:2",
            },
        }
        await asyncio.sleep(5)
        assert not moving.done()
        replicated.finish("orders", 0)
        assert await moving is None
        assert throttled(served) == {"1": {"log.cleaner.threads": "3"}}
        assert capsys.readouterr().out.splitlines() == ["orders-0 moves from 0,1 to 1,2", "done"]


@pytest.mark.virtual_time
async def test_a_broker_that_is_down_keeps_no_throttled_move_from_beginning(capsys: Printed) -> None:
    """Neither as the one that gets a replica nor as the one that is replaced."""
    with replicated_cluster(4, orders=1) as (scripted, served, replicated):
        replicated.place("orders", 0, (0, 1), (0,))
        for down in (1, 2):
            scripted.brokers[down].is_fenced = True
        moved = ("reassign", *ONE, "--replicas", "0,2", "--throttle", "1000")
        assert await ran(scripted, partitions, *moved) is None
        assert replicated.of("orders", 0).target == [0, 2]
        assert throttled(served) == {
            "0": RATES,
            "orders": {
                "leader.replication.throttled.replicas": "0:0,0:1",
                "follower.replication.throttled.replicas": "0:2",
            },
        }
        assert "The rate is not set on 1,2, which are not there: give the same command again" in capsys.readouterr().err
        scripted.brokers[2].is_fenced = False
        assert await ran(scripted, partitions, *moved) is None
        assert throttled(served)["2"] == RATES
        assert "not set on 1, which is not there" in capsys.readouterr().err


@pytest.mark.virtual_time
async def test_a_throttle_that_others_need_stays(capsys: Printed) -> None:
    """Of a second move: of the same topic all of it, of another topic the rates of the brokers."""
    with replicated_cluster(4, orders=2, others=1) as (scripted, served, replicated):
        for topic, index in (("orders", 0), ("orders", 1), ("others", 0)):
            replicated.place(topic, index, (0, 1), (0, 1))
        two = ("--topic", "orders", "--partition", "1")
        assert await ran(scripted, partitions, "reassign", *ONE, "--replicas", "1,2", "--throttle", "1000") is None
        assert "The throttle stays until the same command is given with --wait" in capsys.readouterr().err
        assert await ran(scripted, partitions, "reassign", *two, "--replicas", "0,3", "--throttle", "1000") is None
        assert throttled(served)["orders"] == {
            "leader.replication.throttled.replicas": "0:0,0:1,1:0,1:1",
            "follower.replication.throttled.replicas": "0:2,1:3",
        }
        before = throttled(served)
        assert await ran(scripted, partitions, "reassign", *two, "--cancel") is None
        assert throttled(served) == before
        other = ("--topic", "others", "--partition", "0")
        assert await ran(scripted, partitions, "reassign", *other, "--replicas", "1", "--throttle", "1000") is None
        replicated.finish("orders", 0)
        assert await ran(scripted, partitions, "reassign", *ONE, "--replicas", "1,2", "--wait") is None
        assert throttled(served).keys() == {"0", "1", "2", "3", "others"}
        assert await ran(scripted, partitions, "reassign", *other, "--cancel") is None
        assert throttled(served) == {}


@pytest.mark.virtual_time
async def test_a_move_that_did_not_begin_leaves_no_throttle() -> None:
    with replicated_cluster(2, orders=1) as (scripted, served, _):
        error = await ran(scripted, partitions, "reassign", *ONE, "--replicas", "1,0,99", "--throttle", "1000")
        assert isinstance(error, ItemsFailed)
        assert throttled(served) == {}


@pytest.mark.virtual_time
async def test_who_waits_is_told_that_somebody_else_has_ended_it(capsys: Printed) -> None:
    with replicated_cluster(3, orders=1) as (scripted, _, replicated):
        replicated.place("orders", 0, (0, 1), (0, 1))
        moving = asyncio.ensure_future(ran(scripted, partitions, "reassign", *ONE, "--replicas", "1,2", "--wait"))
        await until(lambda: replicated.of("orders", 0).target is not None)
        replicated.of("orders", 0).target = None
        error = await moving
        assert isinstance(error, CommandFailed)
        assert str(error) == "Not done, for it was cancelled or changed meanwhile: orders-0 has 0,1."


@pytest.mark.virtual_time
async def test_who_waits_is_not_told_of_an_end_that_the_broker_asked_has_not_heard_of() -> None:
    """The controller says that nothing is under way, and another broker tells the replicas of before for a while."""
    with replicated_cluster(3, orders=1) as (scripted, _, replicated):
        replicated.place("orders", 0, (0, 1), (0, 1))
        moving = asyncio.ensure_future(ran(scripted, partitions, "reassign", *ONE, "--replicas", "1,2", "--wait"))
        await until(lambda: replicated.of("orders", 0).target is not None)
        replicated.of("orders", 0).target = None
        await asyncio.sleep(2)  # of virtual time: it looks again and again meanwhile
        replicated.place("orders", 0, (1, 2), (1, 2))
        assert await moving is None


@pytest.mark.virtual_time
async def test_while_no_broker_answers_the_wait_goes_on(capsys: Printed) -> None:
    with replicated_cluster(3, orders=1) as (scripted, _, replicated):
        replicated.place("orders", 0, (0, 1), (0, 1))
        moving = asyncio.ensure_future(ran(scripted, partitions, "reassign", *ONE, "--replicas", "1,2", "--wait"))
        await until(lambda: scripted.count(ListPartitionReassignmentsRequest) > 0)
        scripted.on(ListPartitionReassignmentsRequest, disconnect_before(), times=200)
        await asyncio.sleep(7)
        assert not moving.done()
        assert "No answer for now" in capsys.readouterr().err
        scripted.rules.clear()
        replicated.finish("orders", 0)
        assert await moving is None


@pytest.mark.virtual_time
async def test_who_ends_the_wait_is_told_that_the_move_goes_on(capsys: Printed) -> None:
    with replicated_cluster(3, orders=1) as (scripted, _, replicated):
        replicated.place("orders", 0, (0, 1), (0, 1))
        arguments = (*ONE, "--replicas", "1,2", "--wait", "--throttle", "9")
        moving = asyncio.ensure_future(ran(scripted, partitions, "reassign", *arguments))
        await until(lambda: scripted.count(AlterPartitionReassignmentsRequest) > 0)
        await asyncio.sleep(1)
        moving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await moving
        assert "The reassignment goes on, and so does the throttle" in capsys.readouterr().err
        assert replicated.of("orders", 0).target == [1, 2]


# ---------------------------------------------------------------------------------------------------------- elections
@pytest.mark.virtual_time
async def test_preferred_leaders_are_elected_of_all_of_a_topic_or_of_one_partition(capsys: Printed) -> None:
    with replicated_cluster(3, orders=2, others=1) as (scripted, _, replicated):
        for topic, index in (("orders", 0), ("orders", 1), ("others", 0)):
            replicated.place(topic, index, (0, 1), (1, 0))
        assert await ran(scripted, partitions, "elect", *ONE) is None
        assert capsys.readouterr().out == "orders\t0\telected\n"
        assert await ran(scripted, partitions, "elect", "--preferred", "--topic", "orders", "--json") is None
        assert [each["elected"] for each in json.loads(capsys.readouterr().out)] == [False, True]
        replicated.place("others", 0, (0, 1), (1,))
        error = await ran(scripted, partitions, "elect")
        assert capsys.readouterr().out.splitlines() == ["orders\t0\tnot needed", "orders\t1\tnot needed"]
        assert isinstance(error, ItemsFailed)
        assert [each.code for each in error.errors.values()] == [ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE]


@pytest.mark.virtual_time
async def test_what_is_not_there_is_told() -> None:
    with replicated_cluster(1, orders=1) as (scripted, _, _):
        error = await ran(scripted, partitions, "elect", "--topic", "orders", "--partition", "5")
        assert "the election names partition 5 of orders" in str(error)
        error = await ran(scripted, partitions, "elect", "--topic", "typo")
        assert "UNKNOWN_TOPIC_OR_PARTITION" in str(error)
        assert scripted.count(ElectLeadersRequest) == 0


@pytest.mark.virtual_time
async def test_before_an_unclean_election_it_is_said_what_may_be_lost(
    capsys: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    with replicated_cluster(3, orders=3) as (scripted, _, replicated):
        replicated.place("orders", 0, (0, 1, 2), (), last_known=(0,))
        replicated.place("orders", 1, (0, 1, 2), ())
        replicated.place("orders", 2, (0, 1, 2), (0, 1))
        scripted.brokers[0].stop()
        scripted.controller_id = 1
        error = await ran(scripted, partitions, "elect", "--unclean")
        assert str(error) == "Nothing was elected: nobody can be asked here; give --yes."
        said = capsys.readouterr().err.splitlines()
        assert said == [
            "orders-0 has no leader. What was acknowledged is on 0: if another replica leads (1,2), what it lacks is "
            "lost, even when they come back.",
            "orders-1 has no leader. Which of 0,1,2 has most is not known: what the new leader lacks is lost.",
        ]
        monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
        answers = iter([False, True])
        asked: list[str] = []

        def confirm(text: str, *, err: bool) -> bool:
            assert err
            asked.append(text)
            return next(answers)

        monkeypatch.setattr(click, "confirm", confirm)
        assert str(await ran(scripted, partitions, "elect", "--unclean")) == "Nothing was elected."
        assert scripted.count(ElectLeadersRequest) == 0
        assert asked == ["Elect leaders of 2 partition(s), whatever is lost?"]
        on_terminal(monkeypatch)
        capsys.readouterr()
        assert await ran(scripted, partitions, "elect", "--unclean") is None
        assert [line.split() for line in capsys.readouterr().out.splitlines()] == [
            ["TOPIC", "PARTITION", "RESULT"],
            ["orders", "0", "elected"],
            ["orders", "1", "elected"],
            ["orders", "2", "not", "needed"],
        ]
        assert [each.leader for each in scripted.topics["orders"].partitions] == [1, 1, 0]


@pytest.mark.virtual_time
async def test_with_yes_nothing_is_asked_and_without_need_nothing_is_done(capsys: Printed) -> None:
    with replicated_cluster(2, orders=2) as (scripted, _, replicated):
        replicated.place("orders", 0, (1,), ())
        assert await ran(scripted, partitions, "elect", "--unclean", "--topic", "orders", "--yes") is None
        assert capsys.readouterr().out.splitlines() == ["orders\t0\telected", "orders\t1\tnot needed"]
        assert await ran(scripted, partitions, "elect", "--unclean") is None
        assert scripted.count(ElectLeadersRequest) == 1
