"""The demo's broker process, with a stand-in that listens, prints the ready line, and ignores SIGTERM on request."""

import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from odradek.spark_jobs.demo import broker_process
from odradek.spark_jobs.demo.broker_process import BrokerProcess, odradek_command, ready_address
from odradek.spark_jobs.demo.steps import DemoFailed

STAND_IN = """
import os, signal, socket, sys
host, port = sys.argv[1].rsplit(":", 1)
if os.path.exists(sys.argv[2] + ".stubborn"):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
listener = socket.create_server((host, int(port)))
with open(sys.argv[2], "a") as runs:
    print(os.getpid(), file=runs)
print("a line before", flush=True)
print(f"odradek 0.1.0 ready on {host}:{listener.getsockname()[1]} (node 0, data in x)", flush=True)
signal.pause()
"""


def stand_in(listen: str, data_directory: Path) -> list[str]:
    return [sys.executable, "-c", STAND_IN, listen, str(data_directory)]


def runs(tmp_path: Path) -> list[int]:
    """The process ids of the stand-ins that were started."""
    return [int(line) for line in (tmp_path / "data").read_text(encoding="utf-8").split()]


def is_running(process_id: int) -> bool:
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    return True


def answers(address: str) -> bool:
    host, port = address.rsplit(":", 1)
    with socket.socket() as client:
        return client.connect_ex((host, int(port))) == 0


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    with BrokerProcess(stand_in, tmp_path / "data", tmp_path / "log") as process:
        yield process


def test_kill_and_start_again_on_the_same_port(broker: BrokerProcess, tmp_path: Path) -> None:
    """The address comes from the ready line; after SIGKILL nobody answers, and the next process has the same port."""
    broker.start()
    address = broker.address
    assert address != "127.0.0.1:0" and answers(address)
    broker.kill()
    assert not answers(address)
    broker.start()
    assert broker.address == address and answers(address)
    first, second = runs(tmp_path)
    assert not is_running(first) and is_running(second)


def test_nothing_is_left_when_the_block_ends_with_an_exception(tmp_path: Path) -> None:
    """The broker is gone when the block is left, and its output is in the log."""
    with pytest.raises(KeyboardInterrupt), BrokerProcess(stand_in, tmp_path / "data", tmp_path / "log") as broker:
        broker.start()
        raise KeyboardInterrupt
    assert not is_running(*runs(tmp_path))
    assert (tmp_path / "log").read_text(encoding="utf-8").startswith("a line before\nodradek 0.1.0 ready on 127.0.0.1:")


def test_a_broker_that_does_not_stop_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SIGTERM comes first, SIGKILL when the time is over."""
    monkeypatch.setattr(broker_process, "STOP_TIMEOUT_S", 0.2)
    (tmp_path / "data.stubborn").touch()
    with BrokerProcess(stand_in, tmp_path / "data", tmp_path / "log") as broker:
        broker.start()
    assert not is_running(*runs(tmp_path))


def test_a_broker_that_ends_at_once_is_a_failure(tmp_path: Path) -> None:
    """Without a ready line the demo fails at once, and names the log, which has the reason."""
    log = tmp_path / "log"
    command = [sys.executable, "-c", "import sys; sys.exit('no room')"]
    with (
        BrokerProcess(lambda _listen, _directory: command, tmp_path, log) as broker,
        pytest.raises(DemoFailed, match=r"did not get ready.*log"),
    ):
        broker.start()
    assert log.read_text(encoding="utf-8") == "no room\n"


@pytest.mark.parametrize(
    ("line", "address"),
    [
        ("odradek 0.1.0 ready on 127.0.0.1:9092 (node 0, data in /tmp/x)", "127.0.0.1:9092"),
        ("odradek 1.0rc1 ready on [::1]:9092 (node 3, data in memory)", "[::1]:9092"),
        ("odradek 0.1.0 ready on 127.0.0.1:9092, inside=10.0.0.1:9093 (node 0, data in x)", "127.0.0.1:9092"),
        ("a line about odradek 0.1.0 ready on 127.0.0.1:9092 (node 0)", None),
        ("", None),
    ],
)
def test_ready_address(line: str, address: str | None) -> None:
    """The first listener's address, from ready lines only."""
    assert ready_address(line) == address


def test_the_command_is_odradek_serve() -> None:
    """The interpreter of the demo runs the front door, with an address and a data directory."""
    assert odradek_command("127.0.0.1:0", Path("d")) == [
        sys.executable, "-m", "odradek", "serve", "--listen", "127.0.0.1:0", "--data-dir", "d",
    ]  # fmt: skip
