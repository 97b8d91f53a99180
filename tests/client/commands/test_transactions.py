"""`odradek transactions` on a scripted cluster: what is refused before anything is asked, listed, found to hang, ended.

What it does against a broker stands in `test_transactions_broker.py`.
"""

import json
from collections.abc import Generator
from contextlib import contextmanager

import pytest
from click.testing import CliRunner

from odradek.client.admin.calls import UnknownBroker
from odradek.client.admin.errors import ItemsFailed
from odradek.client.commands import hanging
from odradek.client.commands.failures import NO_ANSWER, REFUSED, CommandFailed
from odradek.client.commands.running import exit_code_of
from odradek.client.commands.transactions import transactions
from odradek.client.errors.client_errors import BrokerError, ClientError
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_producers import DescribeProducersRequest, DescribeProducersResponse
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest
from odradek.protocol.messages.list_transactions import ListTransactionsRequest
from odradek.protocol.messages.write_txn_markers import WriteTxnMarkersRequest
from tests.client.admin_handlers import serve_admin
from tests.client.broker_faults import edited
from tests.client.commands.scripted import on_terminal, ran
from tests.client.scripted_broker import ScriptedCluster, scripted_cluster
from tests.client.transaction_handlers import Transactions, serve_transactions

Printed = pytest.CaptureFixture[str]

MINUTE_MS = 60_000


@contextmanager
def cluster_of(brokers: int = 2) -> Generator[tuple[ScriptedCluster, Transactions]]:
    """With orders of three partitions and payments of one, on one broker each."""
    with scripted_cluster(brokers=brokers) as scripted:
        serve_admin(scripted)
        scripted.create_topic("orders", 3)
        scripted.create_topic("payments", 1)
        yield scripted, serve_transactions(scripted)


def ago_ms(scripted: ScriptedCluster, minutes: int) -> int:
    return int(scripted.environment.now_ms()) - minutes * MINUTE_MS


def lines(printed: Printed) -> list[list[str]]:
    return [line.split("\t") for line in printed.readouterr().out.splitlines()]


# ------------------------------------------------------------------------------------------------- before it is asked
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("list", "--topic", "orders"), "are about hanging transactions: give --hanging"),
        (("list", "--broker", "1"), "are about hanging transactions: give --hanging"),
        (("list", "--max-timeout-minutes", "1"), "are about hanging transactions: give --hanging"),
        (("list", "--hanging", "--state", "Ongoing"), "--hanging is about partitions"),
        (("list", "--hanging", "--producer-id", "1"), "--hanging is about partitions"),
        (("list", "--hanging", "--duration-filter", "0"), "--hanging is about partitions"),
        (("list", "--hanging", "--pattern", ""), "--hanging is about partitions"),
        (("list", "--hanging", "--topic", "orders", "--broker", "0"), "give one of --broker and --topic"),
        (("list", "--duration-filter", "-1"), "-1 is not in the range"),
        (("describe",), "Missing argument"),
        (("abort", "orders-0"), "give one of --start-offset, --transactional-id, and --producer-id"),
        (("abort", "orders-0", "--start-offset", "5", "--producer-id", "7"), "give one of --start-offset"),
        (("abort", "--start-offset", "5", "--transactional-id", "a"), "give one of --start-offset"),
        (("abort", "orders-0", "--transactional-id", "a"), "give TOPIC-PARTITION, as in orders-0, but not with"),
        (("abort", "--start-offset", "5"), "give TOPIC-PARTITION, as in orders-0"),
        (("abort", "orders", "--start-offset", "5"), "write a topic and one of its partitions, as in orders-0"),
        (("abort", "orders-9999999999", "--start-offset", "5"), "write a topic and one of its partitions"),
        (("abort", "orders-0", "--producer-id", "7", "--producer-epoch", "1"), "belong together"),
        (("abort", "orders-0", "--coordinator-epoch", "0"), "belong together"),
    ],
)
def test_a_wrong_command_line_is_told_without_asking_a_broker(arguments: tuple[str, ...], said: str) -> None:
    done = CliRunner().invoke(transactions, [*arguments, "-b", "localhost:1"])
    assert done.exit_code == 2, done.output
    assert said in done.output


# ------------------------------------------------------------------------------------------------------------- showing
@pytest.mark.virtual_time
async def test_ids_are_listed(capsys: Printed) -> None:
    with cluster_of() as (scripted, served):
        served.add("b", 8, node=1, state="Ongoing")
        served.add("a", 7)
        assert await ran(scripted, transactions, "list") is None
        assert lines(capsys) == [["a", "0", "7", "Empty"], ["b", "1", "8", "Ongoing"]]
        assert await ran(scripted, transactions, "list", "--state", "Ongoing", "--json") is None
        assert json.loads(capsys.readouterr().out) == [
            {"transactional_id": "b", "coordinator": 1, "producer_id": 8, "state": "Ongoing"}
        ]


@pytest.mark.virtual_time
async def test_filters_of_the_command_line_reach_the_brokers() -> None:
    with cluster_of(1) as (scripted, _):
        filters = ("--state", "Empty", "--state", "Ongoing", "--producer-id", "7", "--duration-filter", "0")
        assert await ran(scripted, transactions, "list", *filters, "--pattern", "pay.*") is None
        (request,) = [each.request for each in scripted.exchanges if isinstance(each.request, ListTransactionsRequest)]
        assert (request.state_filters, request.producer_id_filters) == (["Empty", "Ongoing"], [7])
        assert (request.duration_filter, request.transactional_id_pattern) == (0, "pay.*")


@pytest.mark.virtual_time
async def test_a_broker_that_does_not_answer_is_told_with_the_ids_of_the_others(capsys: Printed) -> None:
    with cluster_of() as (scripted, served):
        served.add("a", 7)
        served.loading = {1}
        error = await ran(scripted, transactions, "list")
        assert lines(capsys) == [["a", "0", "7", "Empty"]]
        assert isinstance(error, ItemsFailed)
        assert "broker 1" in str(error.errors[1])
        assert exit_code_of(error) == NO_ANSWER


@pytest.mark.virtual_time
async def test_transactions_are_shown_with_their_partitions_and_age(
    capsys: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    with cluster_of() as (scripted, served):
        its = served.add("a", 7, node=1, state="Ongoing", places=[("orders", 2), ("orders", 0)])
        its.producer_epoch, its.started_ms = 4, ago_ms(scripted, 2)
        error = await ran(scripted, transactions, "describe", "typo", "a")
        ((*first, started, age_s, places),) = lines(capsys)
        assert first == ["a", "1", "7", "4", "Ongoing", "60000"]
        assert (started[-1], age_s, places) == ("Z", "120", "orders:0,2")
        assert isinstance(error, ItemsFailed)
        assert exit_code_of(error) == REFUSED
        assert await ran(scripted, transactions, "describe", "a", "--json") is None
        (found,) = json.loads(capsys.readouterr().out)
        assert (found["started_ms"], found["producer_epoch"], found["timeout_ms"]) == (its.started_ms, 4, 60_000)
        assert found["partitions"] == [{"topic": "orders", "partition": 0}, {"topic": "orders", "partition": 2}]
        its.started_ms, its.places = -1, []
        on_terminal(monkeypatch)
        assert await ran(scripted, transactions, "describe", "a") is None
        header, row = capsys.readouterr().out.splitlines()
        assert header.startswith("TRANSACTIONAL ID  COORDINATOR")
        assert row.split()[-3:] == ["-", "-", "-"]


# ------------------------------------------------------------------------------------------------------------- hanging
@pytest.mark.virtual_time
async def test_only_what_is_old_and_nobody_will_end_hangs(capsys: Printed) -> None:
    with cluster_of() as (scripted, served):
        for index, minutes, producer_id in ((0, 16, 7), (1, 14, 8), (2, 16, 9), (2, 20, 10)):
            served.open("orders", index, producer_id, at=producer_id, timestamp_ms=ago_ms(scripted, minutes))
        served.open("payments", 0, 11, at=3, timestamp_ms=ago_ms(scripted, 90))
        served.add("has it", 9, state="Ongoing", places=[("orders", 2)])
        served.add("has another", 10, node=1, state="Ongoing", places=[("orders", 1)])
        assert await ran(scripted, transactions, "list", "--hanging") is None
        found = lines(capsys)
        assert [row[:6] for row in found] == [
            ["orders", "0", "7", "3", "-", "7"],
            ["orders", "2", "10", "3", "-", "10"],
            ["payments", "0", "11", "3", "-", "3"],
        ]
        assert [row[-1] for row in found] == ["16", "20", "90"]
        hanging_in = ("list", "--hanging", "--max-timeout-minutes", "10", "--topic", "orders:0,1", "--json")
        assert await ran(scripted, transactions, *hanging_in) is None
        assert [each["producer_id"] for each in json.loads(capsys.readouterr().out)] == [7, 8]


@pytest.mark.virtual_time
async def test_what_hangs_may_be_looked_for_in_the_partitions_of_a_broker(capsys: Printed) -> None:
    with cluster_of() as (scripted, served):
        for index in range(3):
            served.open("orders", index, 7 + index, at=5)
        assert await ran(scripted, transactions, "list", "--hanging", "--broker", "1") is None
        assert [row[:2] for row in lines(capsys)] == [["orders", "1"]]
        error = await ran(scripted, transactions, "list", "--hanging", "--broker", "5")
        assert isinstance(error, UnknownBroker)


@pytest.mark.virtual_time
async def test_what_has_ended_between_two_looks_does_not_hang(capsys: Printed) -> None:
    """The coordinator has no more of it when it is asked, though it was open before."""
    with cluster_of() as (scripted, served):
        served.open("orders", 0, 7, at=5)
        served.open("orders", 0, 8, at=6)

        def end(response: DescribeProducersResponse) -> None:
            """After the answer was made."""
            served.producers["orders", 0][7] = served.open("orders", 0, 7, at=9)

        scripted.on(DescribeProducersRequest, edited(end), nth=1)
        assert await ran(scripted, transactions, "list", "--hanging", "--topic", "orders:0") is None
        assert [row[2] for row in lines(capsys)] == ["8"]


@pytest.mark.virtual_time
async def test_an_id_that_expires_between_two_looks_coordinates_nothing(capsys: Printed) -> None:
    with cluster_of(1) as (scripted, served):
        served.open("orders", 0, 7, at=5)
        served.add("expires", 7, state="Ongoing", places=[("orders", 0)])
        served.errors["expires"] = [ErrorCode.TRANSACTIONAL_ID_NOT_FOUND]
        assert await ran(scripted, transactions, "list", "--hanging", "--topic", "orders") is None
        assert [row[2] for row in lines(capsys)] == ["7"]


@pytest.mark.virtual_time
async def test_nothing_is_said_to_hang_where_a_coordinator_does_not_tell(capsys: Printed) -> None:
    with cluster_of(1) as (scripted, served):
        served.open("orders", 0, 7, at=5)
        served.add("secret", 7, state="Ongoing", places=[("orders", 0)])
        served.errors["secret"] = [ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED]
        error = await ran(scripted, transactions, "list", "--hanging", "--topic", "orders")
        assert isinstance(error, ItemsFailed)
        assert list(error.errors) == ["secret"]
        assert capsys.readouterr().out == ""


@pytest.mark.virtual_time
async def test_many_partitions_are_asked_about_a_part_at_a_time(
    capsys: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hanging, "TOGETHER_MAX", 2)
    with cluster_of(1) as (scripted, served):
        served.open("orders", 2, 7, at=5)
        assert await ran(scripted, transactions, "list", "--hanging") is None
        assert [row[:2] for row in lines(capsys)] == [["orders", "2"]]
        assert scripted.count(DescribeProducersRequest) == 2 + 1


@pytest.mark.virtual_time
async def test_partitions_that_cannot_be_looked_at_are_told_with_what_hangs(capsys: Printed) -> None:
    with cluster_of() as (scripted, served):
        served.open("orders", 0, 7, at=5)
        served.partition_errors["orders", 1] = [ErrorCode.TOPIC_AUTHORIZATION_FAILED]
        error = await ran(scripted, transactions, "list", "--hanging", "--topic", "orders")
        assert [row[2] for row in lines(capsys)] == ["7"]
        assert isinstance(error, ItemsFailed)
        assert "DescribeProducers of orders-1" in str(next(iter(error.errors.values())))


# ------------------------------------------------------------------------------------------------------------- ending
@pytest.mark.virtual_time
async def test_a_hanging_transaction_is_ended_only_when_that_is_said(capsys: Printed) -> None:
    with cluster_of() as (scripted, served):
        served.open("orders", 1, 7, at=5)
        abort = ("abort", "orders-1", "--start-offset", "5")
        assert await ran(scripted, transactions, *abort) is None
        printed = capsys.readouterr()
        assert printed.out == "orders\t1\t7\t3\t0\n", "before its first marker a producer has coordinator epoch 0"
        assert "this is what --execute would do" in printed.err
        assert served.markers == []
        assert await ran(scripted, transactions, *abort, "--execute", "--json") is None
        printed = capsys.readouterr()
        assert json.loads(printed.out) == {
            "topic": "orders", "partition": 1, "producer_id": 7, "producer_epoch": 3, "coordinator_epoch": 0,
            "executed": True,
        }  # fmt: skip
        assert printed.err == ""
        (marker,) = served.markers
        assert (marker.producer_id, marker.producer_epoch, marker.coordinator_epoch) == (7, 3, 0)


@pytest.mark.virtual_time
async def test_a_start_at_which_nothing_is_open_is_told_with_those_that_are() -> None:
    with cluster_of() as (scripted, served):
        error = await ran(scripted, transactions, "abort", "orders-1", "--start-offset", "5", "--execute")
        assert isinstance(error, CommandFailed)
        assert "begins at offset 5: none is open there" in str(error)
        served.open("orders", 1, 7, at=6)
        served.open("orders", 1, 8, at=4)
        error = await ran(scripted, transactions, "abort", "orders-1", "--start-offset", "5", "--execute")
        assert "those that are open begin at 4, 6" in str(error)


@pytest.mark.virtual_time
async def test_what_a_coordinator_has_under_way_is_not_torn() -> None:
    with cluster_of() as (scripted, served):
        served.open("orders", 1, 7, at=5)
        its = served.add("a", 7, node=1, state="Ongoing", places=[("orders", 1)])
        for state, said in (
            ("Ongoing", "`odradek transactions abort --transactional-id a` ends all of it"),
            ("PrepareCommit", "its coordinator, broker 1, still has to write the marker there"),
        ):
            its.state = state
            error = await ran(scripted, transactions, "abort", "orders-1", "--start-offset", "5", "--execute")
            assert isinstance(error, CommandFailed)
            assert said in str(error)
        assert scripted.count(WriteTxnMarkersRequest) == 0


@pytest.mark.virtual_time
async def test_what_is_named_by_all_its_numbers_is_ended_without_a_look(capsys: Printed) -> None:
    """As at brokers that cannot describe producers; -1 stands for no coordinator epoch, as Kafka prints it."""
    with cluster_of() as (scripted, served):
        served.open("orders", 1, 7, at=5)
        numbers = ("--producer-id", "7", "--producer-epoch", "2", "--coordinator-epoch", "-1")
        assert await ran(scripted, transactions, "abort", "orders:1", *numbers) is None
        assert served.markers == []
        assert await ran(scripted, transactions, "abort", "orders:1", *numbers, "--execute") is None
        assert capsys.readouterr().out == "orders\t1\t7\t2\t0\n" * 2
        (marker,) = served.markers
        assert (marker.producer_epoch, marker.coordinator_epoch) == (2, 0)
        assert scripted.count(DescribeProducersRequest) == 0


@pytest.mark.virtual_time
async def test_an_id_is_aborted_by_fencing_its_producer(capsys: Printed) -> None:
    with cluster_of() as (scripted, served):
        its = served.add("a", 7, node=1, state="Ongoing", places=[("orders", 1), ("payments", 0)])
        assert await ran(scripted, transactions, "abort", "--transactional-id", "a") is None
        assert "this is what --execute would do" in capsys.readouterr().err
        assert scripted.count(InitProducerIdRequest) == 0
        assert await ran(scripted, transactions, "abort", "--transactional-id", "a", "--execute") is None
        assert capsys.readouterr().out == "a\t7\t0\torders:1 payments:0\n"
        assert (its.state, its.producer_epoch) == ("CompleteAbort", 2)
        error = await ran(scripted, transactions, "abort", "--transactional-id", "a", "--execute")
        assert isinstance(error, CommandFailed)
        assert "the transaction of a is CompleteAbort, not Ongoing" in str(error)
        assert its.producer_epoch == 2, "a producer without a transaction is not fenced"


@pytest.mark.virtual_time
async def test_an_id_that_does_not_exist_is_not_made() -> None:
    with cluster_of() as (scripted, served):
        error = await ran(scripted, transactions, "abort", "--transactional-id", "typo", "--execute")
        assert isinstance(error, BrokerError)
        assert error.code is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
        assert served.transactions == {}


@pytest.mark.virtual_time
async def test_a_marker_that_is_refused_fails_the_command(capsys: Printed) -> None:
    with cluster_of() as (scripted, served):
        served.open("orders", 1, 7, at=5)
        numbers = ("--producer-id", "7", "--producer-epoch", "2", "--coordinator-epoch", "0")
        served.partition_errors["orders", 1] = [ErrorCode.INVALID_PRODUCER_EPOCH]
        error = await ran(scripted, transactions, "abort", "orders-1", *numbers, "--execute")
        assert isinstance(error, ClientError)
        assert exit_code_of(error) == REFUSED
        assert capsys.readouterr().out == ""
