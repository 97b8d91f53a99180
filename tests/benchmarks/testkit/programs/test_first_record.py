"""The program says that its record is acknowledged, whoever started the brokers."""

import sys

import pytest

from benchmarks.testkit.programs.first_record import TOPIC, main
from odradek.testing import cluster


def test_by_brokers_that_run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    with cluster(1, topics=[TOPIC]) as kafka:
        monkeypatch.setattr(sys, "argv", ["first_record.py", kafka.bootstrap_servers])
        main()
        assert [record.value for record in kafka.records(TOPIC, 1)] == [b"first"]
    assert capsys.readouterr().out == "acknowledged\n"


def test_by_brokers_of_its_own(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["first_record.py"])
    main()
    assert capsys.readouterr().out == "acknowledged\n"
