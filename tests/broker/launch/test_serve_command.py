"""`odradek serve`: what each option makes of a start, refusals in one sentence, the ready line, signals."""

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from prometheus_client.parser import text_string_to_metric_families

from odradek.broker.config.listeners import Listener, parse_listener
from odradek.broker.config.settings import Settings
from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.broker.launch import logging_format, run_broker
from odradek.broker.launch.run_broker import ready_line
from odradek.broker.launch.serve_command import serve
from odradek.broker.server import Broker
from odradek.broker.version import VERSION
from odradek.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from odradek.runtime.environment import Environment
from processes.odradek_broker import REPOSITORY, OdradekBroker
from tests.broker.wire import RawClient, batch, create_topic, produce, settings, topic_id

STOP_S = 5.0


@pytest.fixture
def invoked(monkeypatch: pytest.MonkeyPatch) -> list[Settings]:
    """What `serve` would have run."""
    seen: list[Settings] = []

    def run(wanted: Settings) -> int:
        seen.append(wanted)
        return 0

    monkeypatch.setattr(run_broker, "run", run)
    monkeypatch.setattr(logging_format, "configure_logging", lambda levels, log_format: None)  # pyright: ignore
    return seen


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(serve, arguments)


def test_help_answers_without_importing_what_it_would_run() -> None:
    serve = "from odradek.broker.launch.serve_command import serve"
    count = f"import sys; {serve}\ntry:\n serve(['--help'])\nfinally:\n print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", count], capture_output=True, text=True, check=True, timeout=60)
    assert "--data-dir" in done.stdout
    modules = done.stdout.splitlines()[-1].split()
    assert "odradek.broker.launch.serve_command" in modules
    heavy = ("asyncio", "odradek.protocol", "odradek.client", "uvloop", "prometheus_client")
    assert sorted(name for name in modules if name.startswith(heavy)) == []
    ours = sorted(name for name in modules if name.startswith("odradek.broker."))
    of_launch = ("log_level_option", "serve_command")
    assert ours == ["odradek.broker.launch", *(f"odradek.broker.launch.{name}" for name in of_launch)]


@pytest.mark.parametrize("level", ["loud", "=debug", "kafka.request.logger=", "kafka.request.logger=loud"])
def test_a_log_level_that_there_is_not_is_refused(level: str) -> None:
    result = invoke("--log-level", level)
    assert result.exit_code == 2
    assert "levels are trace, debug, info, warning, error" in result.output


# -- options ----------------------------------------------------------------------------------------------------------


def test_without_options_it_listens_on_loopback_and_keeps_its_data_beside(invoked: list[Settings]) -> None:
    assert invoke().exit_code == 0
    (wanted,) = invoked
    assert wanted.listeners == [Listener("PLAINTEXT", "127.0.0.1", 9092)]
    assert wanted.advertised == {"PLAINTEXT": Listener("PLAINTEXT", "127.0.0.1", 9092)}
    assert (wanted.data_dirs, wanted.node_id, wanted.metrics) == (("./odradek-data",), 0, None)


def test_every_option_reaches_the_settings(invoked: list[Settings], tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("# a comment\nnum.partitions=3\nlog.segment.bytes=2097152\nnode.id=9\n")
    result = invoke(
        *("--listen", "0.0.0.0:9092", "--listen", "inside=[::1]:0", "--advertise", "broker.example:19092"),
        *("--data-dir", "/var/lib/odradek", "--node-id", "4", "--config", str(file)),
        *("--set", "num.partitions=5", "--metrics", "127.0.0.1:9100"),
    )
    assert result.exit_code == 0, result.output
    (wanted,) = invoked
    assert wanted.listeners == [Listener("PLAINTEXT", "0.0.0.0", 9092), Listener("INSIDE", "::1", 0)]  # noqa: S104
    assert wanted.advertised["PLAINTEXT"] == Listener("PLAINTEXT", "broker.example", 19092)
    assert (wanted.data_dirs, wanted.node_id) == (("/var/lib/odradek",), 4)
    assert wanted.metrics == Listener("PLAINTEXT", "127.0.0.1", 9100)
    assert (wanted.config.num_partitions, wanted.config.log_segment_bytes) == (5, 2 << 20)


def test_listeners_may_come_from_the_file_in_kafkas_form(invoked: list[Settings], tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text(f"listeners=A://127.0.0.1:0,B://[::1]:0\nlog.dirs={tmp_path}\nadvertised.listeners=B://host:7\n")
    assert invoke("--config", str(file)).exit_code == 0
    assert [str(listener) for listener in invoked[0].listeners] == ["A://127.0.0.1:0", "B://[::1]:0"]
    assert str(invoked[0].advertised["B"]) == "B://host:7"
    assert invoked[0].data_dirs == (str(tmp_path),)


def test_a_protocol_may_be_mapped_for_listeners_that_are_not_here(invoked: list[Settings], tmp_path: Path) -> None:
    """As in Kafka's own server.properties."""
    file = tmp_path / "server.properties"
    file.write_text("listeners=SSL://127.0.0.1:0\nlistener.security.protocol.map=CONTROLLER:SASL_SSL,SSL:PLAINTEXT\n")
    assert invoke("--config", str(file)).exit_code == 0
    assert [str(listener) for listener in invoked[0].listeners] == ["SSL://127.0.0.1:0"]


def test_memory_has_no_directory(invoked: list[Settings]) -> None:
    assert invoke("--memory").exit_code == 0
    assert invoked[0].data_dirs is None


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--set", "no.such.option=1"), r"no\.such\.option"),
        (("--set", "num.partitions=many"), r"many for configuration num\.partitions: it must be a whole number"),
        (("--set", "num.partitions=0"), r"0 for configuration num\.partitions: .* at least 1"),
        (("--set", "log.segment.bytes=1"), r"1 for configuration log\.segment\.bytes: .* at least 1048576"),
        (
            ("--set", "auto.create.topics.enable=maybe"),
            r"maybe for configuration auto\.create\.topics\.enable: .* true or false",
        ),
        (
            ("--set", "log.message.timestamp.type=Sometime"),
            r"Sometime .* log\.message\.timestamp\.type: .* one of CreateTime, LogAppendTime",
        ),
        (("--set", "nonsense"), r"'nonsense' is not of the form name=value"),
        (("--data-dir", "/a", "--data-dir", "/a/"), r"the data directory /a is given twice"),
        (("--set", "log.dirs=/a,/a/b-1"), r"/a and /a/b-1 lie in one another"),
        (("--listen", "0.0.0.0:9092"), r"add --advertise PLAINTEXT=HOST:9092"),
        (("--listen", "[::]:9092"), r"add --advertise PLAINTEXT=HOST:9092"),
        (("--listen", ":9092"), r"add --advertise PLAINTEXT=HOST:9092"),
        (("--listen", "::1:9092"), r"--listen ::1:9092: write \[NAME=\]HOST:PORT"),
        (("--listen", "127.0.0.1"), r"--listen 127\.0\.0\.1: write \[NAME=\]HOST:PORT"),
        (("--listen", "127.0.0.1:65536"), r"a port from 0 to 65535"),
        (("--listen", "127.0.0.1:0", "--listen", "127.0.0.1:1"), r"the listener name PLAINTEXT stands twice"),
        (("--advertise", "0.0.0.0:9092"), r"cannot connect to a wildcard"),
        (("--advertise", "OUTSIDE=host:1"), r"no listener named OUTSIDE"),
        (("--metrics", "9100"), r"--metrics 9100: write"),
        (("--metrics", "SSL=127.0.0.1:9100"), r"--metrics SSL=127\.0\.0\.1:9100: .* leave SSL= out"),
        (
            ("--set", "listeners=OUT://127.0.0.1:0", "--set", "listener.security.protocol.map=OUT:SASL_PLAINTEXT"),
            r"the listener OUT speaks SASL, and sasl\.enabled\.mechanisms has no mechanism for it",
        ),
        (
            ("--set", "listener.security.protocol.map=OUT:TLS"),
            r"OUT:TLS for configuration listener\.security\.protocol",
        ),
        (("--secure", "--listen", "192.0.2.1:0"), r"2 mistakes"),
        (
            ("--metrics", "192.0.2.1:0", "--set", "secure=true"),
            r"--secure: the page of metrics on 192\.0\.2\.1:0 is open",
        ),
        (
            ("--set", "security.inter.broker.protocol=SSL"),
            r"security\.inter\.broker\.protocol=SSL: there is no listener",
        ),
        (("--set", "broker.rack=${env:NO_SUCH}"), r"\{env:NO_SUCH\}: config\.providers declares no provider 'env'"),
    ],
)
def test_a_start_is_refused_in_one_sentence_that_names_what_is_wrong(
    invoked: list[Settings], arguments: tuple[str, ...], said: str
) -> None:
    result = invoke(*arguments)
    assert (result.exit_code, invoked) == (1, [])
    line, *reasons = result.output.splitlines()
    assert line.startswith("Error: ")
    assert re.search(said, line), line
    assert all(reason.startswith("  --secure: ") for reason in reasons)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--memory", "--data-dir", "d"), "--memory and --data-dir exclude each other"),
        (("--node-id", "-1"), "--node-id"),
        (("--no-such-flag",), "--no-such-flag"),
        (("--config", "no-such-file"), "no-such-file"),
        (("--log-level", "loud"), "loud"),
    ],
)
def test_a_wrong_command_line_is_explained(invoked: list[Settings], arguments: tuple[str, ...], said: str) -> None:
    result = invoke(*arguments)
    assert (result.exit_code, invoked) == (2, [])
    assert said in result.output


def test_a_file_that_is_not_text_is_refused(invoked: list[Settings], tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"\xff\xfe")
    result = invoke("--config", str(tmp_path / "file"))
    assert (result.exit_code, invoked) == (1, [])
    assert result.output.startswith("Error: ")


def test_what_is_secure_may_start(invoked: list[Settings]) -> None:
    assert invoke("--secure", "--metrics", "127.0.0.1:0").exit_code == 0
    assert invoked[0].config.secure


# -- what it says -----------------------------------------------------------------------------------------------------


async def said_when_ready(wanted: Settings) -> tuple[str, list[int]]:
    """The ready line, and the ports bound."""
    broker = Broker(wanted, Environment(), MemoryDisk())
    await broker.start()
    try:
        return ready_line(broker), [endpoint.port for endpoint in broker.bound.values()]
    finally:
        await broker.stop()


async def test_the_ready_line_names_every_address_the_node_and_the_directory() -> None:
    listeners = [parse_listener(text) for text in ("FIRST://127.0.0.1:0", "SECOND://[::1]:0", "THIRD://127.0.0.1:0")]
    advertised = {listener.name: listener._replace(host="elsewhere.example", port=1) for listener in listeners}
    base = settings("dir/data", node_id=7)
    line, ports = await said_when_ready(Settings(listeners, advertised, ["dir/data"], 7, base.config))
    assert line == (
        f"odradek {VERSION} ready on 127.0.0.1:{ports[0]}, SECOND=[::1]:{ports[1]}, THIRD=127.0.0.1:{ports[2]} "
        "(node 7, data in dir/data)"
    )


async def test_the_ready_line_of_a_broker_in_memory_says_so() -> None:
    line, (port,) = await said_when_ready(settings())
    assert line == f"odradek {VERSION} ready on 127.0.0.1:{port} (node 0, data in memory)"


# -- as a process -----------------------------------------------------------------------------------------------------


def refused(*arguments: str, module: str = "odradek") -> str:
    """The one line that a start ends with."""
    call = [sys.executable, "-m", module, *(["serve"] if module == "odradek" else []), *arguments]
    ended = subprocess.run(call, capture_output=True, text=True, cwd=REPOSITORY, timeout=30, check=False)
    assert (ended.returncode, ended.stdout) == (1, "")
    (line,) = ended.stderr.splitlines()
    return line


@asynccontextmanager
async def client_of(broker: OdradekBroker) -> AsyncGenerator[RawClient]:
    reader, writer = await asyncio.open_connection(broker.host, broker.port)
    try:
        yield RawClient(reader, writer)
    finally:
        writer.transport.abort()


async def long_poll(client: RawClient) -> FetchRequest:
    """A Fetch that waits for a minute, on the way, and a Produce behind it."""
    await create_topic(client, "orders")
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    topics = [FetchTopic(topic_id=await topic_id(client, "orders"), partitions=[partition])]
    request = FetchRequest(max_wait_ms=60_000, min_bytes=1, max_bytes=1 << 20, topics=topics)
    client.send(request, 13)
    client.send(produce("orders", batch(b"behind it")), 9)
    return request


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_it_cleanly_with_the_running_request_answered(tmp_path: Path, number: int) -> None:
    """The long poll is answered and not given up, the request behind it is not begun, and the exit code is 0."""
    with OdradekBroker(tmp_path / "data", "--log-format", "json", "--log-level", "debug") as broker:
        async with client_of(broker) as client, client_of(broker) as other:
            request = await long_poll(client)
            await create_topic(other, "later")  # so the poll, sent before, has been read
            loop = asyncio.get_running_loop()
            before_s = loop.time()
            os.kill(broker.pid, number)
            _, answer = await client.receive(request, 13)
            assert answer.error_code == 0
            assert await client.is_closed()
            assert await other.is_closed()
        assert broker.ended(STOP_S - (loop.time() - before_s)) == 0
    assert broker.ready_line == (f"odradek {VERSION} ready on {broker.bootstrap} (node 0, data in {broker.data_dir})")
    entries = [json.loads(line) for line in broker.output.splitlines()]
    assert "stopping" in [entry["message"] for entry in entries]
    assert {"error", "critical"}.isdisjoint(entry["level"] for entry in entries)


def test_a_port_in_use_and_a_directory_in_use_are_refused_in_one_line(tmp_path: Path) -> None:
    with OdradekBroker(tmp_path / "data") as broker:
        line = refused("--listen", broker.bootstrap, "--data-dir", str(tmp_path / "other"))
        assert line == f"Error: cannot listen on {broker.bootstrap}: Address already in use"
        line = refused("--listen", "127.0.0.1:0", "--data-dir", str(broker.data_dir), module="odradek.broker")
        assert line == (
            f"Error: the data directory {broker.data_dir} cannot be used: another running broker holds the lock file"
        )


def test_a_directory_that_cannot_be_written_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    line = refused("--listen", "127.0.0.1:0", "--data-dir", str(tmp_path / "file" / "data"))
    assert line == f"Error: the data directory {tmp_path}/file/data cannot be used: Not a directory"
    # A directory where a file is to be written fails at a later step of the start, for root, too.
    (tmp_path / "data" / "metadata.log.tmp").mkdir(parents=True)
    (tmp_path / "data").chmod(0o700)
    line = refused("--listen", "127.0.0.1:0", "--data-dir", str(tmp_path / "data"))
    assert line.startswith("Error: the broker cannot start: ")
    assert "metadata.log" in line


async def with_topic(broker: OdradekBroker) -> None:
    async with client_of(broker) as client:
        await create_topic(client, "orders")


class ByModule(OdradekBroker):
    """`python -m odradek.broker`, in memory, with a page of metrics."""

    def command(self) -> list[str]:
        with socket.create_server((self.host, 0)) as probe:
            self.metrics_port = probe.getsockname()[1]
        metrics = f"{self.host}:{self.metrics_port}"
        return [sys.executable, "-m", "odradek.broker", "--memory", "--listen", f"{self.host}:0", "--metrics", metrics]


def test_python_m_broker_is_the_same_server(tmp_path: Path) -> None:
    with ByModule(tmp_path / "unused") as broker:
        assert broker.ready_line == f"odradek {VERSION} ready on {broker.bootstrap} (node 0, data in memory)"
        asyncio.run(with_topic(broker))
        with urllib.request.urlopen(f"http://127.0.0.1:{broker.metrics_port}/metrics", timeout=10) as page:
            families = list(text_string_to_metric_families(page.read().decode()))
        samples = {sample.name: sample.value for family in families for sample in family.samples if not sample.labels}
        assert samples["kafka_server_replicamanager_partitioncount"] == 1
        assert broker.terminate() == 0
    assert not (tmp_path / "unused").exists()
