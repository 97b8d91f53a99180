"""`odradek produce`: its settings, its pace on virtual time, the first line that is not delivered, and transactions."""

import asyncio
import io
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NoReturn, Self

import pytest
from click.testing import CliRunner

from odradek.broker.launch.serving import serving
from odradek.client.admin.config import AdminConfig
from odradek.client.admin.topics import NewTopic
from odradek.client.commands.failures import NO_ANSWER, REFUSED, CommandFailed
from odradek.client.commands.options import Target
from odradek.client.commands.produce import Progress, Sending, ended, interrupted, produce, producer_config
from odradek.client.commands.record_text import RecordToSend
from odradek.client.consumer.consumer import Consumer
from odradek.client.errors.client_errors import MetadataTimeout
from odradek.client.producer.config import ProducerConfig
from odradek.client.producer.producer import Producer
from odradek.client.producer.transaction import Transaction
from odradek.client.topic_partition import TopicPartition
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.end_txn import EndTxnRequest
from odradek.protocol.messages.produce import ProduceRequest
from tests.client.broker_faults import error, late, never
from tests.client.commands.scripted import ran_command
from tests.client.consuming import read
from tests.client.coordinator_handlers import coordinated
from tests.client.producing import producing
from tests.client.scripted_broker import ScriptedCluster, scripted_cluster

TOPIC = "orders"


class Input:
    """In place of a LineReader: chunks of lines, and then the end, or (`ends` off) a wait for `stop`."""

    def __init__(self, *chunks: list[bytes], ends: bool = True) -> None:
        self.chunks = list(chunks)
        self.stopped = asyncio.Event()
        if ends:
            self.chunks.append([])

    async def read(self) -> list[bytes]:
        if self.stopped.is_set():
            return []
        if not self.chunks:
            await self.stopped.wait()
            return []
        return self.chunks.pop(0)

    def stop(self) -> None:
        self.stopped.set()


def parse(line: bytes) -> RecordToSend:
    if line == b"bad":
        raise ValueError("for it is bad")
    return RecordToSend(None, line, (("own", b"1"),))


@asynccontextmanager
async def sending(
    given: Input, scripted: ScriptedCluster, partition: int | None = None
) -> AsyncGenerator[tuple[Sending, Producer]]:
    async with Producer(scripted.bootstrap, environment=lambda: scripted.environment, linger_ms=0) as producer:
        headers = (("common", b"2"),)
        yield Sending(producer, given, scripted.environment, TOPIC, partition, headers), producer  # type: ignore[arg-type]  # pyright: ignore


@pytest.mark.virtual_time
async def test_every_line_is_a_record_with_its_own_headers_and_the_common_ones() -> None:
    with scripted_cluster() as scripted:
        scripted.create_topic(TOPIC, 2)
        async with sending(Input([b"a", b""], [b"b"]), scripted, partition=1) as (found, producer):
            await found.send_all(parse, None)
            await producer.flush()
            found.check()
            assert (found.acknowledged, found.bytes_sent) == (3, 2)
        assert scripted.values(TOPIC, 1) == [b"a", b"", b"b"]
        headers = {record.headers for batch in scripted.batches(TOPIC, 1) for record in batch.records}
        assert headers == {(("own", b"1"), ("common", b"2"))}


@pytest.mark.virtual_time
@pytest.mark.parametrize("rate", [0.5, 10.0, 1_000.0])
async def test_no_more_than_the_rate_is_sent_and_no_less(rate: float) -> None:
    count = max(3, int(rate * 2))
    with scripted_cluster() as scripted:
        scripted.create_topic(TOPIC)
        async with sending(Input([b"x"] * count), scripted) as (found, producer):
            began_ms = scripted.now_ms()
            await found.send_all(parse, rate)
            took_ms = scripted.now_ms() - began_ms
            await producer.flush()
        expected_ms = (count - 1) * 1000.0 / rate
        assert expected_ms - 3 <= took_ms <= expected_ms + 50


@pytest.mark.virtual_time
async def test_a_pause_of_the_input_is_not_made_up_for() -> None:
    class Pausing(Input):
        async def read(self) -> list[bytes]:
            if len(self.chunks) == 2:
                await asyncio.sleep(5)
            return await super().read()

    with scripted_cluster() as scripted:
        scripted.create_topic(TOPIC)
        async with sending(Pausing([b"x"], [b"y"] * 100), scripted) as (found, producer):
            await found.send_all(parse, 10)
            await producer.flush()
        times_ms = [record.timestamp_ms for batch in scripted.batches(TOPIC) for record in batch.records]
        assert len(times_ms) == 101
        assert max(sum(start <= each < start + 1000 for each in times_ms) for start in times_ms) <= 10


@pytest.mark.virtual_time
async def test_a_line_that_is_no_record_ends_it_after_those_before() -> None:
    with scripted_cluster() as scripted:
        scripted.create_topic(TOPIC)
        async with sending(Input([b"a", b"b", b"bad", b"c"], [b"d"]), scripted) as (found, producer):
            await found.send_all(parse, None)
            await producer.flush()
            with pytest.raises(CommandFailed) as caught:
                found.check()
        assert str(caught.value) == "Line 3 was not delivered: it is no record, for it is bad. Acknowledged: 2."
        assert caught.value.code == REFUSED
        assert scripted.values(TOPIC) == [b"a", b"b"]


@pytest.mark.virtual_time
async def test_a_record_that_is_refused_ends_the_wait_for_more_input() -> None:
    with scripted_cluster() as scripted:
        scripted.create_topic(TOPIC)
        scripted.on(ProduceRequest, error(ErrorCode.INVALID_RECORD, message="no"), times=None)
        async with sending(Input([b"a"], ends=False), scripted) as (found, _):
            await asyncio.wait_for(found.send_all(parse, None), 60)
            with pytest.raises(CommandFailed, match=r"Line 1 was not delivered: .* no") as caught:
                found.check()
        assert caught.value.code == REFUSED


@pytest.mark.virtual_time
async def test_the_first_line_that_failed_is_told_even_if_a_later_one_was_heard_of_before() -> None:
    with scripted_cluster() as scripted:
        scripted.create_topic(TOPIC)
        scripted.on(ProduceRequest, error(ErrorCode.INVALID_RECORD), times=None)
        async with sending(Input([b"a", b"bad"]), scripted) as (found, producer):
            await found.send_all(parse, None)
            assert str(found.error) == "it is no record, for it is bad."
            await producer.flush()
            with pytest.raises(CommandFailed, match="Line 1 was not delivered"):
                found.check()


@pytest.mark.virtual_time
async def test_a_partition_that_does_not_exist_is_refused_at_once() -> None:
    with scripted_cluster() as scripted:
        scripted.create_topic(TOPIC)
        async with sending(Input([b"a", b"b"]), scripted, partition=9) as (found, _):
            await found.send_all(parse, None)
            with pytest.raises(CommandFailed, match=r"Line 1 .* partition 9 of orders"):
                found.check()


@pytest.mark.virtual_time
async def test_no_answer_has_its_own_exit_code() -> None:
    with scripted_cluster() as scripted:
        scripted.create_topic(TOPIC)
        scripted.on(ProduceRequest, never(), times=None)
        config = producer_config(
            Target(",".join(scripted.bootstrap), timeout_ms=2_000), {"enable.idempotence": "false"}
        )
        async with Producer(
            scripted.bootstrap,
            environment=lambda: scripted.environment,
            request_timeout_ms=config.request_timeout_ms,
            delivery_timeout_ms=config.delivery_timeout_ms,
        ) as producer:
            given = Input([b"a"], ends=False)
            found = Sending(producer, given, scripted.environment, TOPIC, None, ())  # type: ignore[arg-type]  # pyright: ignore
            began_ms = scripted.now_ms()
            await found.send_all(parse, None)
            assert scripted.now_ms() - began_ms <= 2_500
            with pytest.raises(CommandFailed) as caught:
                found.check()
            assert caught.value.code == NO_ANSWER


def test_the_timeout_of_the_command_is_that_of_all_waits_unless_they_are_set(tmp_path: Path) -> None:
    config = producer_config(Target(timeout_ms=3_000), {})
    waits = (config.request_timeout_ms, config.max_block_ms, config.close_timeout_ms)
    assert waits == (3_000, 3_000, 3_000)
    assert config.delivery_timeout_ms == 3_000 + config.linger_ms
    file = tmp_path / "client.properties"
    file.write_text("request.timeout.ms=9000\ndelivery.timeout.ms=10000\n")
    config = producer_config(Target(config_file=str(file), timeout_ms=3_000), {"acks": "1"})
    assert (config.request_timeout_ms, config.delivery_timeout_ms, config.acks) == (9_000, 10_000, 1)


@pytest.mark.parametrize("name", ["max.block.ms", "max_block_ms"])
@pytest.mark.parametrize("source", ["command line", "file"])
def test_a_wait_is_set_under_either_name(tmp_path: Path, name: str, source: str) -> None:
    file = tmp_path / "client.properties"
    file.write_text(f"{name}=1000\n" if source == "file" else "")
    settings: dict[str, object] = {name: "1000"} if source == "command line" else {}
    assert producer_config(Target(config_file=str(file)), settings).max_block_ms == 1_000


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.virtual_time
async def test_progress_is_for_terminals(monkeypatch: pytest.MonkeyPatch) -> None:
    with scripted_cluster() as scripted:
        scripted.create_topic(TOPIC)
        for stream, expected in ((Terminal(), 4), (io.StringIO(), 0)):
            monkeypatch.setattr(sys, "stderr", stream)
            async with sending(Input(), scripted) as (found, _):
                found.acknowledged = 1_234
                progress = Progress(found, scripted.environment)
                await asyncio.sleep(1.2)
                progress.close()
            assert stream.getvalue().count("1,234 records acknowledged") == expected
            assert stream.getvalue().endswith("\n") == bool(expected)


@pytest.mark.parametrize(
    "arguments",
    [
        "",
        "t --json --key-separator :",
        "t --json --null-marker x",
        "t --rate 0",
        "t --rate nan",
        "t --rate inf",
        "t --rate 1e-300",
        "t --partition -1",
        "t --header x",
    ],
)
def test_a_wrong_command_line_is_told(arguments: str) -> None:
    done = CliRunner().invoke(produce, [*arguments.split(), "-b", "localhost:1"])
    assert done.exit_code == 2, done.output


class NoProducer:
    """In place of a Producer: one that learns of no topic."""

    def __init__(self, config: ProducerConfig) -> None:
        self.config = config

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    async def send(self, topic: str, value: bytes, **_: object) -> NoReturn:
        raise MetadataTimeout(topic, self.config.max_block_ms)

    async def flush(self) -> None:
        pass


def test_whether_the_topic_exists_is_asked_over_connections_set_as_for_the_producer(
    admins: list[AdminConfig], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    lines = tmp_path / "lines"
    lines.write_bytes(b"one\n")
    monkeypatch.setattr("odradek.client.producer.producer.Producer", NoProducer)
    with lines.open() as given:
        monkeypatch.setattr(sys, "stdin", given)
        with pytest.raises(SystemExit):
            produce(["t", "-b", "h:1", "--set", "security_protocol=SSL", "--set", "acks=1"])
    assert [config.security_protocol for config in admins] == ["SSL"]


def test_an_empty_separator_is_refused() -> None:
    done = CliRunner().invoke(produce, ["t", "--key-separator", "", "-b", "localhost:1"])
    assert (done.exit_code, "is empty" in done.output) == (2, True)


def test_an_empty_transactional_id_is_refused() -> None:
    done = CliRunner().invoke(produce, ["t", "--transactional-id", "", "-b", "localhost:1"])
    assert (done.exit_code, "is empty" in done.output) == (2, True)


# --------------------------------------------------------------------------------------------------------- transactions
ALL_LOST = "The transaction is aborted: nothing of the input counts, so send all of it again."


@asynccontextmanager
async def transacting(given: Input, cluster: ScriptedCluster) -> AsyncGenerator[tuple[Transaction, Sending]]:
    waits = {"max_block_ms": 5_000, "request_timeout_ms": 2_000, "delivery_timeout_ms": 5_000}
    async with producing(cluster, transactional_id="importer", **waits) as producer:
        txn = await producer.transaction().begin()
        yield txn, Sending(txn, given, cluster.environment, TOPIC, None, ())  # type: ignore[arg-type]  # pyright: ignore


@pytest.mark.virtual_time
async def test_the_whole_input_is_one_transaction() -> None:
    with coordinated() as (cluster, coordinator):
        async with transacting(Input([b"a"], [b"b", b"c"]), cluster) as (txn, found):
            await found.send_all(parse, None)
            assert coordinator.visible(TOPIC) == []
            await ended(txn, found)
            found.check()
        assert coordinator.visible(TOPIC) == [b"a", b"b", b"c"]
        assert coordinator.model.decisions == [True]


@pytest.mark.virtual_time
async def test_a_line_that_is_no_record_aborts_what_came_before() -> None:
    with coordinated() as (cluster, coordinator):
        async with transacting(Input([b"a", b"b", b"bad"]), cluster) as (txn, found):
            await found.send_all(parse, None)
            await ended(txn, found)
            with pytest.raises(CommandFailed) as caught:
                found.check()
        said = str(caught.value)
        assert said == f"Line 3 was not delivered: it is no record, for it is bad. Acknowledged: 0. {ALL_LOST}"
        assert caught.value.code == REFUSED
        assert coordinator.visible(TOPIC) == []


@pytest.mark.virtual_time
async def test_a_record_that_is_refused_aborts_it_and_its_line_is_told() -> None:
    with coordinated() as (cluster, coordinator):
        coordinator.refuses(ProduceRequest, ErrorCode.INVALID_RECORD)
        async with transacting(Input([b"a", b"b"]), cluster) as (txn, found):
            await found.send_all(parse, None)
            await ended(txn, found)
            with pytest.raises(CommandFailed, match=r"Line 1 was not delivered: .*INVALID_RECORD") as caught:
                found.check()
        assert str(caught.value).endswith(f"Acknowledged: 0. {ALL_LOST}")
        assert coordinator.visible(TOPIC) == []


@pytest.mark.virtual_time
async def test_a_commit_that_is_refused_says_that_nothing_counts() -> None:
    with coordinated() as (cluster, coordinator):
        coordinator.refuses(EndTxnRequest, ErrorCode.TRANSACTION_ABORTABLE)
        async with transacting(Input([b"a"]), cluster) as (txn, found):
            await found.send_all(parse, None)
            with pytest.raises(CommandFailed, match="TRANSACTION_ABORTABLE") as caught:
                await ended(txn, found)
        assert str(caught.value).endswith(ALL_LOST)
        assert coordinator.visible(TOPIC) == []


@pytest.mark.virtual_time
async def test_a_commit_without_an_answer_says_where_to_ask() -> None:
    with coordinated() as (cluster, _):
        rule = cluster.on(EndTxnRequest, never(), times=None)
        async with transacting(Input([b"a"]), cluster) as (txn, found):
            await found.send_all(parse, None)
            with pytest.raises(CommandFailed, match="odradek transactions describe importer") as caught:
                await ended(txn, found)
            rule.cancel()
        assert str(caught.value).startswith("It is not known whether a transaction of importer was committed")
        assert caught.value.code == NO_ANSWER


@pytest.mark.virtual_time
async def test_an_abort_without_an_answer_says_who_does_it() -> None:
    with coordinated() as (cluster, coordinator):
        rule = cluster.on(EndTxnRequest, never(applies=False), times=None)
        async with transacting(Input([b"a" * 20_000], [b"bad"]), cluster) as (txn, found):
            await found.send_all(parse, None)
            await ended(txn, found)
            with pytest.raises(CommandFailed, match=r"Line 2 .* does it by itself after transaction\.timeout\.ms"):
                found.check()
            rule.cancel()
        assert coordinator.visible(TOPIC) == []


@pytest.mark.virtual_time
async def test_whoever_was_fenced_is_told_so_beside_its_line() -> None:
    with coordinated() as (cluster, coordinator):
        coordinator.refuses(EndTxnRequest, ErrorCode.PRODUCER_FENCED)
        async with transacting(Input([b"a" * 20_000], [b"bad"]), cluster) as (txn, found):
            await found.send_all(parse, None)
            await ended(txn, found)
            with pytest.raises(CommandFailed, match=r"Line 2 .* Nothing of the input counts: .*PRODUCER_FENCED"):
                found.check()


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    ("after_s", "said", "decisions"),
    [(0.1, ALL_LOST, [False]), (0.7, "odradek transactions describe importer", [True])],
)
async def test_an_interruption_aborts_what_is_not_being_committed(
    after_s: float, said: str, decisions: list[bool], capsys: pytest.CaptureFixture[str]
) -> None:
    with coordinated() as (cluster, coordinator):
        cluster.on(ProduceRequest, late(500))
        cluster.on(EndTxnRequest, late(500))
        async with transacting(Input([b"a"]), cluster) as (txn, found):
            await found.send_all(parse, None)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(ended(txn, found), after_s)
            await interrupted(txn)
            told = capsys.readouterr().err
            assert told.startswith("Interrupted. ")
            assert said in told
        assert coordinator.model.decisions == decisions


@pytest.mark.virtual_time
async def test_an_interruption_while_input_is_waited_for_aborts(capsys: pytest.CaptureFixture[str]) -> None:
    with coordinated() as (cluster, coordinator):
        async with transacting(Input([b"a"], ends=False), cluster) as (txn, found):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(found.send_all(parse, None), 5)
            await interrupted(txn)
            assert capsys.readouterr().err == f"Interrupted. {ALL_LOST}\n"
        assert coordinator.visible(TOPIC) == []
        assert coordinator.model.decisions == [False]


@pytest.mark.parametrize("option", [["--transactional-id", "importer"], ["--set", "transactional.id=importer"]])
async def test_the_command_commits_or_aborts(
    option: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(memory=True, config={"transaction.state.log.num.partitions": "2"}) as broker:
        target = Target(bootstrap_server=broker.bootstrap_servers)
        async with target.admin() as admin:
            await admin.create_topics([NewTopic(TOPIC, 1, 1)])
        failures: list[str] = []
        for text in (b"k:1\nno key\n", b"k:2\nk:3\n"):
            (tmp_path / "lines").write_bytes(text)
            with (tmp_path / "lines").open() as given:
                monkeypatch.setattr(sys, "stdin", given)
                error = await ran_command(target, produce, TOPIC, "--key-separator", ":", *option)
            failures.append(str(error))
        assert failures[0].startswith("Line 2 was not delivered")
        assert failures[0].endswith(ALL_LOST)
        assert failures[1] == "None"
        reader = Consumer(broker.bootstrap_servers, auto_offset_reset="earliest", isolation_level="read_committed")
        async with reader:
            reader.assign([TopicPartition(TOPIC, 0)])
            assert [record.value for record in await read(reader, 2)] == [b"2", b"3"]
