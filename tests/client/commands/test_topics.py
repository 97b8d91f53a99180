"""`odradek topics`: command lines that are refused before anything is asked, the forms of its arguments, and, on a
scripted cluster, that of several topics all are tried.

What it does against brokers stands in `tests/compat/test_commands.py`.
"""

import json
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import click
import pytest
from click.testing import CliRunner

from odradek.client.admin.configs import ResourceType
from odradek.client.admin.errors import ItemsFailed
from odradek.client.commands.failures import NO_ANSWER, REFUSED, CommandFailed
from odradek.client.commands.running import exit_code_of
from odradek.client.commands.topics import parse_assignment, topics
from odradek.client.errors.client_errors import ClientError, ConnectionFailed, UnknownTopic
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.create_partitions import CreatePartitionsRequest
from odradek.protocol.messages.delete_topics import DeleteTopicsRequest
from odradek.protocol.messages.describe_configs import DescribeConfigsRequest
from odradek.protocol.messages.list_offsets import ListOffsetsRequest
from odradek.protocol.messages.metadata import MetadataRequest
from tests.client.admin_handlers import Served, serve_admin
from tests.client.broker_faults import disconnect_before, edited
from tests.client.commands import scripted as scripted_command
from tests.client.reading_handlers import fill, serve_reading
from tests.client.scripted_broker import ScriptedCluster, scripted_cluster


def test_replicas_are_assigned_as_kafkas_own_tool_has_it() -> None:
    assert parse_assignment("1") == {0: [1]}
    assert parse_assignment("1:2,2:1,3") == {0: [1, 2], 1: [2, 1], 2: [3]}


@pytest.mark.parametrize("text", ["", "1:", "a", "1,,2", "1;2", "-1", "1_0", " 1", "²", "2147483648"])
def test_another_form_is_refused(text: str) -> None:
    with pytest.raises(click.UsageError, match="write ids of brokers"):
        parse_assignment(text)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("create",), "Missing argument"),
        (("create", "t", "--partitions", "0"), "0 is not in the range"),
        (("create", "t", "--partitions", "2147483648"), "2147483648 is not in the range"),
        (("create", "t", "--replica-assignment", "0:2147483648"), "from 0 to 2147483647"),
        (("alter", "t", "--partitions", "3000000000"), "3000000000 is not in the range"),
        (("delete", "--ids", "orders"), "'orders' is no topic id"),
        (("create", "t", "--replica-assignment", "1", "--partitions", "3"), "stands in place of"),
        (("create", "t", "--replica-assignment", "one"), "write ids of brokers"),
        (("create", "t", "--set", "retention.ms"), "not of the form NAME=VALUE"),
        (("alter", "t"), "nothing to alter"),
        (("delete",), "Missing argument"),
        (("describe", "--no-such"), "No such option"),
    ],
)
def test_a_wrong_command_line_is_told_without_asking_a_broker(arguments: tuple[str, ...], said: str) -> None:
    done = CliRunner().invoke(topics, [*arguments, "-b", "localhost:1"] if "--no-such" not in arguments else arguments)
    assert done.exit_code == 2
    assert said in done.output


# ------------------------------------------------------------------------------------------------ of several topics
@contextmanager
def cluster_of(*names: str) -> Generator[tuple[ScriptedCluster, Served]]:
    with scripted_cluster(brokers=2) as scripted:
        served = serve_admin(scripted)
        serve_reading(scripted)
        for name in names:
            scripted.create_topic(name, 2)
        yield scripted, served


async def ran(scripted: ScriptedCluster, *arguments: str) -> ClientError | None:
    """Runs a command on the loop of the test. Returns the error that it would tell."""
    error = await scripted_command.ran(scripted, topics, *arguments)
    assert not isinstance(error, CommandFailed)
    return error


def told(error: ClientError | None) -> list[ClientError]:
    assert isinstance(error, ItemsFailed)
    return list(error.errors.values())


def refused(resource: str, code: ErrorCode) -> Any:
    """A fault of DescribeConfigs and ListOffsets: the code, for one topic."""

    def edit(response: Any) -> None:
        for result in getattr(response, "results", []):
            if result.resource_name == resource:
                result.error_code, result.configs = code, []
        for topic in getattr(response, "topics", []):
            if topic.name == resource:
                for partition in topic.partitions:
                    partition.error_code = code

    return edited(edit)


@pytest.mark.virtual_time
async def test_a_topic_that_is_not_there_does_not_hide_those_that_are(capsys: pytest.CaptureFixture[str]) -> None:
    with cluster_of("orders") as (scripted, _):
        fill(scripted, "orders", 1, [b"a"])
        error = await ran(scripted, "describe", "orders", "typo", "--offsets")
        assert [type(each) for each in told(error)] == [UnknownTopic]
        assert error is not None
        assert exit_code_of(error) == REFUSED
        lines = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
        assert [(line[0], line[1], line[-2:]) for line in lines] == [
            ("orders", "0", ["0", "0"]),
            ("orders", "1", ["0", "1"]),
        ]
        assert [type(each) for each in told(await ran(scripted, "describe", "typo", "--json"))] == [UnknownTopic]
        assert capsys.readouterr().out == ""


@pytest.mark.virtual_time
async def test_options_and_offsets_that_may_not_be_seen_do_not_hide_the_partitions(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with cluster_of("orders", "secret") as (scripted, served):
        served.configs[ResourceType.TOPIC, "orders"]["retention.ms"] = "5"
        for request in (DescribeConfigsRequest, ListOffsetsRequest):
            scripted.on(request, refused("secret", ErrorCode.TOPIC_AUTHORIZATION_FAILED), times=None)
        errors = told(await ran(scripted, "describe", "orders", "secret", "--offsets", "--json"))
        assert {each.code for each in errors} == {ErrorCode.TOPIC_AUTHORIZATION_FAILED}
        assert len(errors) == 3, "the options, and the offsets of two partitions, each once"
        orders, secret = json.loads(capsys.readouterr().out)
        assert (orders["configs"], secret["configs"]) == ({"retention.ms": "5"}, None)
        assert [each["end_offset"] for each in orders["partitions"]] == [0, 0]
        assert [(each["leader"], each["end_offset"]) for each in secret["partitions"]] == [(0, None), (1, None)]


@pytest.mark.virtual_time
async def test_offsets_that_no_broker_tells_do_not_hide_the_partitions(capsys: pytest.CaptureFixture[str]) -> None:
    with cluster_of("orders") as (scripted, _):
        scripted.on(ListOffsetsRequest, disconnect_before(), times=None)
        error = await ran(scripted, "describe", "orders", "--offsets")
        assert {type(each) for each in told(error)} == {ConnectionFailed}
        assert error is not None
        assert exit_code_of(error) == NO_ANSWER
        assert [line.split("\t")[-2:] for line in capsys.readouterr().out.splitlines()] == [["-", "-"], ["-", "-"]]


@pytest.mark.virtual_time
async def test_without_names_all_topics_are_described_except_one_deleted_meanwhile(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def mark(response: Any) -> None:
        for topic in response.topics:
            topic.is_internal = topic.name.startswith("__")

    def delete(response: Any) -> None:
        mark(response)
        if "gone" in scripted.topics and any(topic.name == "gone" for topic in response.topics):
            scripted.delete_topic("gone")

    with cluster_of("orders", "gone", "__offsets") as (scripted, _):
        scripted.on(MetadataRequest, edited(delete), times=None)
        assert await ran(scripted, "describe", "--json") is None
        described = json.loads(capsys.readouterr().out)
        assert [(each["name"], each["is_internal"]) for each in described] == [("__offsets", True), ("orders", False)]
    with cluster_of("gone") as (scripted, _):
        scripted.on(MetadataRequest, edited(delete), times=None)
        assert await ran(scripted, "describe", "--json") is None
        assert json.loads(capsys.readouterr().out) == []


@pytest.mark.virtual_time
async def test_of_several_topics_all_are_altered_and_each_failure_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with cluster_of("a", "b", "c") as (scripted, served):
        scripted.add_partitions("b", 4)
        error = await ran(scripted, "alter", "a", "missing", "b", "--partitions", "4", "--set", "x=y")
        said = [each.message for each in told(error)]
        assert len(said) == 2
        assert "IncrementalAlterConfigs of topic missing failed with UNKNOWN_TOPIC_OR_PARTITION" in said[0]
        assert "CreatePartitions of b failed with INVALID_PARTITIONS" in said[1]
        assert capsys.readouterr().out.splitlines() == ["a altered", "b: options changed"]
        assert len(scripted.topics["a"].partitions) == 4
        assert served.configs[ResourceType.TOPIC, "b"] == {"x": "y"}
        error = await ran(scripted, "alter", "c", "--partitions", "4", "--set", "no.such=y")
        assert [each.code for each in told(error)] == [ErrorCode.INVALID_CONFIG]
        assert len(scripted.topics["c"].partitions) == 2, "so that the corrected command can be given again"
        scripted.on(CreatePartitionsRequest, disconnect_before(), times=None)
        error = await ran(scripted, "alter", "c", "--partitions", "4", "--set", "x=y")
        assert [type(each) for each in told(error)] == [ConnectionFailed]
        assert capsys.readouterr().out.splitlines() == ["c: options changed"]
        assert await ran(scripted, "alter", "c", "--unset", "x") is None
        assert capsys.readouterr().out.splitlines() == ["c altered"]


@pytest.mark.parametrize(("value", "warns"), [("1", False), ("2", True), ("many", False)])
@pytest.mark.virtual_time
async def test_more_in_sync_replicas_than_there_are_is_warned_of(
    value: str, warns: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """By every command that sets it, and by describe; what is printed otherwise stays the same."""
    setting = f"min.insync.replicas={value}"
    warning = f"{setting} is more than orders has replicas (1): it counts as 1, and acks=all is refused while any"
    with scripted_cluster(brokers=2) as scripted:
        serve_admin(scripted)
        for arguments in (
            ("create", "orders", "--partitions", "2", "--set", setting),
            ("alter", "orders", "--set", setting),
            ("describe", "orders"),
        ):
            assert await ran(scripted, *arguments) is None
            printed = capsys.readouterr()
            assert "replicas=" not in printed.out
            assert printed.err.startswith(f"Warning: {warning}") == warns
            assert bool(printed.err) == warns
        assert await ran(scripted, "describe", "orders", "--json") is None
        printed = capsys.readouterr()
        [described] = json.loads(printed.out)
        assert ([each.startswith(warning) for each in described["warnings"]], printed.err) == ([True] * warns, "")


@pytest.mark.virtual_time
async def test_an_id_that_is_none_is_told_before_anything_is_asked() -> None:
    with cluster_of("a") as (scripted, _):
        with pytest.raises(click.UsageError, match="'orders' is no topic id"):
            await ran(scripted, "delete", "--ids", "orders", "--yes")
        assert scripted.count(DeleteTopicsRequest) == scripted.count(MetadataRequest) == 0
