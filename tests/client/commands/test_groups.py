"""`odradek groups` on a scripted cluster: what is refused before anything is asked, shown, planned and changed.

What it does against a broker stands in `test_groups_broker.py`.
"""

import json
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from odradek.client.admin.configs import ResourceType
from odradek.client.admin.errors import ItemsFailed
from odradek.client.commands.failures import NO_ANSWER, REFUSED, CommandFailed
from odradek.client.commands.groups import groups
from odradek.client.commands.running import exit_code_of
from odradek.client.errors.client_errors import ClientError, InvalidPartition
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.fetch import FetchRequest
from odradek.protocol.messages.group_rebalances import GroupRebalance
from odradek.protocol.messages.list_offsets import ListOffsetsRequest
from odradek.protocol.messages.offset_commit import OffsetCommitRequest
from tests.client.admin_handlers import serve_admin
from tests.client.commands.scripted import on_terminal, ran
from tests.client.group_handlers import Groups, member, serve_groups
from tests.client.reading_handlers import fill, serve_reading
from tests.client.scripted_broker import ScriptedCluster, scripted_cluster

Printed = pytest.CaptureFixture[str]

IN_ORDERS = ("--topic", "orders")


@contextmanager
def cluster_of(brokers: int = 1) -> Generator[tuple[ScriptedCluster, Groups]]:
    """With orders: ten records in partition 0, from offset 2 on, and twenty in partition 1."""
    with scripted_cluster(brokers=brokers) as scripted:
        served = serve_admin(scripted)
        for node in scripted.brokers:
            served.configs[ResourceType.BROKER, str(node)]["offsets.retention.minutes"] = "2880"
        serve_reading(scripted)
        scripted.create_topic("orders", 2)
        fill(scripted, "orders", 0, *[[b"x"]] * 12)
        fill(scripted, "orders", 1, *[[b"x"]] * 20)
        scripted.log("orders", 0).start_offset = 2
        yield scripted, serve_groups(scripted)


def lines(printed: Printed) -> list[list[str]]:
    return [line.split("\t") for line in printed.readouterr().out.splitlines()]


# ------------------------------------------------------------------------------------------------- before it is asked
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("reset", "a", *IN_ORDERS), "give one of --to-earliest"),
        (("reset", "a", *IN_ORDERS, "--to-earliest", "--to-latest"), "give one of --to-earliest"),
        (("reset", "a", *IN_ORDERS, "--to-offset", "0", "--shift-by", "0"), "give one of --to-earliest"),
        (("reset", "a", "--to-earliest"), "give --topic (it may be repeated), or --all-topics"),
        (("reset", "a", "--to-earliest", *IN_ORDERS, "--all-topics"), "give --topic (it may be repeated), or"),
        (("reset", "a", "--from-file", __file__, *IN_ORDERS), "write topic,partition,offset"),
        (("reset", "a", "--from-file", "nowhere.csv"), "does not exist"),
        (("reset", "--to-earliest", *IN_ORDERS), "Missing argument"),
        (("reset", "a", *IN_ORDERS, "--to-offset", "-1"), "-1 is not in the range"),
        (("reset", "a", *IN_ORDERS, "--to-time", "soon"), "'soon' is none of"),
        (("reset", "a", "--topic", "orders:x", "--to-earliest"), "write a topic, or a topic and some of"),
        (("describe", "a", "--isolation", "none"), "'none' is not one of"),
        (("delete-offsets", "a"), "give --topic (it may be repeated), or --all-topics"),
        (("delete",), "Missing argument"),
        (("members",), "Missing argument"),
    ],
)
def test_a_wrong_command_line_is_told_without_asking_a_broker(arguments: tuple[str, ...], said: str) -> None:
    done = CliRunner().invoke(groups, [*arguments, "-b", "localhost:1"])
    assert done.exit_code == 2, done.output
    assert said in done.output


def test_a_file_leaves_no_room_for_topics(tmp_path: Path) -> None:
    file = tmp_path / "offsets.csv"
    file.write_text("orders,0,5\n")
    for more in (IN_ORDERS, ("--all-topics",)):
        done = CliRunner().invoke(groups, ["reset", "a", "--from-file", str(file), *more, "-b", "localhost:1"])
        assert done.exit_code == 2
        assert "FILE says which partitions" in done.output


# ------------------------------------------------------------------------------------------------------------- showing
@pytest.mark.virtual_time
async def test_groups_are_listed(capsys: Printed) -> None:
    with cluster_of(2) as (scripted, served):
        served.add("b", members=[member("m", {})])
        served.add("a", node=1).protocol_type = ""
        assert await ran(scripted, groups, "list") is None
        assert lines(capsys) == [["a", "classic", "Empty", "-"], ["b", "classic", "Stable", "consumer"]]
        assert await ran(scripted, groups, "list", "--state", "Stable", "--json") is None
        (found,) = json.loads(capsys.readouterr().out)
        assert found == {"group_id": "b", "protocol_type": "consumer", "state": "Stable", "group_type": "classic"}


@pytest.mark.virtual_time
async def test_a_broker_that_does_not_answer_is_told_with_the_groups_of_the_others(capsys: Printed) -> None:
    with cluster_of(2) as (scripted, served):
        served.add("a")
        served.loading = {1}
        error = await ran(scripted, groups, "list")
        assert lines(capsys) == [["a", "classic", "Empty", "consumer"]]
        assert isinstance(error, ItemsFailed)
        assert "broker 1" in str(error.errors[1])
        assert exit_code_of(error) == NO_ANSWER


@pytest.mark.virtual_time
async def test_a_group_is_shown_with_its_lag_and_who_reads(capsys: Printed, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lag counts from the log start where the offset is before it, and so does not count what is gone."""
    with cluster_of() as (scripted, served):
        served.add("a", members=[member("m-1", {"orders": [0]})])
        served.offsets["a"] = {("orders", 0): (0, "", -1), ("orders", 1): (25, "", -1), ("gone", 0): (7, "", -1)}
        assert await ran(scripted, groups, "describe") is None
        assert lines(capsys) == [
            ["a", "Stable", "gone", "0", "7", "-", "-", "-", "-", "-", "-"],
            ["a", "Stable", "orders", "0", "0", "2", "12", "10", "m-1", "app", "10.1.2.3"],
            ["a", "Stable", "orders", "1", "25", "0", "20", "0", "-", "-", "-"],
        ]
        served.groups["a"].members.clear()
        served.groups["a"].state = "Empty"
        on_terminal(monkeypatch)
        assert await ran(scripted, groups, "describe", "a") is None
        said = capsys.readouterr().out.splitlines()[-1]
        assert said == "a: classic, 0 member(s), coordinator 0; its offsets expire 2 day(s) after the last member left"
        told = GroupRebalance(started_ms=0, generation=1, cause="member left", reason="member m-1 left: bye")
        served.groups["a"].rebalances = [told]
        assert await ran(scripted, groups, "describe", "a") is None
        *_, before, why = capsys.readouterr().out.splitlines()
        assert (before, why) == (said, "  rebalanced 1970-01-01T00:00:00Z: member m-1 left: bye (member left)")


@pytest.mark.virtual_time
async def test_only_a_small_lag_is_looked_at(capsys: Printed) -> None:
    with cluster_of() as (scripted, served):
        served.add("a")
        served.offsets["a"] = {("orders", 0): (10, "", -1), ("orders", 1): (0, "", -1)}
        assert await ran(scripted, groups, "describe", "a", "--isolation", "read_committed", "--json") is None
        (found,) = json.loads(capsys.readouterr().out)
        assert [each["lag"] for each in found["partitions"]] == [2, 20], "there are records"
        (asked,) = scripted.requests(FetchRequest)
        assert [(part.partition, part.fetch_offset) for topic in asked.topics for part in topic.partitions] == [(0, 10)]
        assert asked.isolation_level == 1
        levels = {each.isolation_level for each in scripted.requests(ListOffsetsRequest)}
        assert levels == {0, 1}, "starts, and ends by the last stable offset"


@pytest.mark.virtual_time
async def test_a_group_that_does_not_exist_does_not_hide_the_others(capsys: Printed) -> None:
    with cluster_of() as (scripted, served):
        served.add("a")
        error = await ran(scripted, groups, "describe", "a", "typo")
        assert isinstance(error, ItemsFailed)
        assert [each.code for each in error.errors.values()] == [ErrorCode.GROUP_ID_NOT_FOUND]
        assert exit_code_of(error) == REFUSED
        assert lines(capsys) == [["a", "Empty", *["-"] * 9]]


@pytest.mark.virtual_time
async def test_members_are_shown_with_their_partitions(capsys: Printed) -> None:
    with cluster_of() as (scripted, served):
        opaque = member("m-3", {})
        opaque.member_assignment = b"\0"
        served.add("a", members=[member("m-1", {"orders": [1, 0]}, instance_id="one"), member("m-2", {}), opaque])
        assert await ran(scripted, groups, "members", "a") is None
        assert lines(capsys) == [
            ["a", "m-1", "one", "app", "10.1.2.3", "orders:0,1"],
            ["a", "m-2", "-", "app", "10.1.2.3", "-"],
            ["a", "m-3", "-", "app", "10.1.2.3", "(1 bytes)"],
        ]
        assert await ran(scripted, groups, "members", "a", "--json") is None
        assert [each["group"] for each in json.loads(capsys.readouterr().out)] == ["a"] * 3


# ----------------------------------------------------------------------------------------------------------- resetting
@pytest.mark.virtual_time
async def test_a_reset_shows_what_it_would_do_and_does_it_when_told(capsys: Printed) -> None:
    with cluster_of() as (scripted, served):
        served.add("a")
        served.offsets["a"] = {("orders", 1): (5, "note", 3)}
        assert await ran(scripted, groups, "reset", "a", *IN_ORDERS, "--to-earliest") is None
        shown = capsys.readouterr()
        assert shown.out.splitlines() == ["a\torders\t0\t-\t2\t-", "a\torders\t1\t5\t0\t-"]
        assert "Nothing was changed: this is what --execute would do." in shown.err
        assert scripted.count(OffsetCommitRequest) == 0
        assert await ran(scripted, groups, "reset", "a", *IN_ORDERS, "--to-earliest", "--execute") is None
        assert capsys.readouterr() == (shown.out, "")
        assert served.offsets["a"] == {("orders", 0): (2, "", -1), ("orders", 1): (0, "", -1)}


@pytest.mark.parametrize(
    ("how", "offsets", "notes"),
    [
        (("--to-latest",), [12, 20], ["-", "-"]),
        (("--to-offset", "15"), [12, 15], ["15 is behind the end", "-"]),
        (("--shift-by", "-4"), [2, 1], ["-1 is before the start", "-"]),
        (("--to-time", "@1004"), [4, 4], ["-", "-"]),
        (("--to-time", "@1015"), [12, 15], ["no record is as young: the end", "-"]),
    ],
)
@pytest.mark.virtual_time
async def test_offsets_are_reset_to_where_they_shall_be(
    capsys: Printed, how: tuple[str, ...], offsets: list[int], notes: list[str]
) -> None:
    with cluster_of() as (scripted, served):
        served.add("a")
        served.offsets["a"] = {("orders", 0): (3, "", -1), ("orders", 1): (5, "", -1)}
        assert await ran(scripted, groups, "reset", "a", "--all-topics", *how, "--execute") is None
        assert [each[0] for each in served.offsets["a"].values()] == offsets
        assert [line[-1] for line in lines(capsys)] == notes


@pytest.mark.virtual_time
async def test_offsets_are_reset_as_a_file_says(capsys: Printed, tmp_path: Path) -> None:
    file = tmp_path / "offsets.csv"
    file.write_text("a,orders,0,5\nb,orders,1,6\n")
    with cluster_of() as (scripted, served):
        served.add("a")
        assert await ran(scripted, groups, "reset", "a", "b", "--from-file", str(file), "--execute", "--json") is None
        assert {group: dict(offsets) for group, offsets in served.offsets.items()} == {
            "a": {("orders", 0): (5, "", -1)},
            "b": {("orders", 1): (6, "", -1)},
        }
        assert [(each["group"], each["after"], each["executed"]) for each in json.loads(capsys.readouterr().out)] == [
            ("a", 5, True),
            ("b", 6, True),
        ]


@pytest.mark.virtual_time
async def test_a_group_with_members_is_not_reset_and_they_are_named(capsys: Printed) -> None:
    with cluster_of() as (scripted, served):
        served.add("a", members=[member("m-1", {}), member("m-2", {}, instance_id="two")])
        served.add("b")
        error = await ran(scripted, groups, "reset", "b", "a", *IN_ORDERS, "--to-latest", "--execute")
        assert isinstance(error, CommandFailed)
        assert str(error) == (
            "Nothing was reset: a is Stable and has members: m-1 of app at 10.1.2.3, m-2 (instance two) of app at "
            "10.1.2.3. Stop the members, and reset then."
        )
        served.add("c").state = "PreparingRebalance"
        error = await ran(scripted, groups, "reset", "c", *IN_ORDERS, "--to-latest")
        assert "c is PreparingRebalance." in str(error)
        served.add("d", members=[member(f"m-{index}", {}) for index in range(12)])
        error = await ran(scripted, groups, "reset", "d", *IN_ORDERS, "--to-latest")
        assert "m-9 of app at 10.1.2.3, and 2 other(s)." in str(error)
        assert scripted.count(OffsetCommitRequest) == 0
        assert capsys.readouterr().out == ""


@pytest.mark.virtual_time
async def test_nothing_is_reset_where_a_part_of_it_cannot_be(capsys: Printed) -> None:
    with cluster_of() as (scripted, served):
        served.add("a")
        served.offsets["a"] = {("orders", 1): (5, "", -1)}

        async def failed(*arguments: str) -> ClientError | CommandFailed:
            error = await ran(scripted, groups, "reset", "a", *arguments, "--execute")
            assert error is not None
            return error

        shifted = await failed(*IN_ORDERS, "--shift-by", "1")
        assert str(shifted).startswith("Nothing was reset: a: orders-0 has no offset that could be shifted")
        assert isinstance(await failed("--topic", "orders:0,7", "--to-latest"), InvalidPartition)
        assert "UNKNOWN_TOPIC_OR_PARTITION" in str(await failed(*IN_ORDERS, "--topic", "typo", "--to-latest"))
        del served.offsets["a"]
        assert "a has no offsets: name topics by --topic" in str(await failed("--all-topics", "--to-latest"))
        assert scripted.count(OffsetCommitRequest) == 0
        assert capsys.readouterr().out == ""


@pytest.mark.virtual_time
async def test_partitions_that_could_not_be_reset_are_told_and_not_shown_as_done(capsys: Printed) -> None:
    with cluster_of() as (scripted, served):
        served.errors["a"] = [0, 0, ErrorCode.GROUP_AUTHORIZATION_FAILED]
        error = await ran(scripted, groups, "reset", "a", *IN_ORDERS, "--to-latest", "--execute")
        assert isinstance(error, ItemsFailed)
        assert [each.code for each in error.errors.values()] == [ErrorCode.GROUP_AUTHORIZATION_FAILED] * 2
        assert capsys.readouterr().out == ""


# ------------------------------------------------------------------------------------------------------------ deleting
@pytest.mark.virtual_time
async def test_groups_are_deleted_and_each_failure_told(capsys: Printed) -> None:
    with cluster_of() as (scripted, served):
        served.add("a")
        served.add("b", members=[member("m", {})])
        error = await ran(scripted, groups, "delete", "a", "b")
        assert capsys.readouterr().out == "a deleted\n"
        assert isinstance(error, ItemsFailed)
        (why,) = error.errors.values()
        assert (why.code, "Stop its members" in str(why)) == (ErrorCode.NON_EMPTY_GROUP, True)


@pytest.mark.virtual_time
async def test_offsets_of_some_topics_or_of_all_are_deleted(capsys: Printed) -> None:
    with cluster_of() as (scripted, served):
        served.add("a")
        served.offsets["a"] = {("orders", index): (5, "", -1) for index in range(2)}
        assert await ran(scripted, groups, "delete-offsets", "a", "--topic", "orders:1") is None
        assert list(served.offsets["a"]) == [("orders", 0)]
        assert await ran(scripted, groups, "delete-offsets", "a", "--all-topics") is None
        assert served.offsets["a"] == {}
        assert capsys.readouterr().out == "a: offset of orders-1 deleted\na: offset of orders-0 deleted\n"
        error = await ran(scripted, groups, "delete-offsets", "a", "--all-topics")
        assert "a has no offsets" in str(error)


@pytest.mark.virtual_time
async def test_who_says_no_on_a_terminal_keeps_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def no(question: str, *, err: bool) -> bool:
        assert err
        asked.append(question)
        return False

    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    monkeypatch.setattr(click, "confirm", no)
    with cluster_of() as (scripted, served):
        served.add("a")
        served.offsets["a"] = {("orders", 0): (5, "", -1)}
        for arguments in (("delete", "a"), ("delete-offsets", "a", *IN_ORDERS)):
            error = await ran(scripted, groups, *arguments)
            assert str(error) == "Nothing was deleted."
        assert asked == ["Delete a with all offsets?", "Delete the offsets of a in orders-0, orders-1?"]
        assert served.offsets["a"]
        assert await ran(scripted, groups, "delete", "a", "--yes") is None
        assert not served.groups
