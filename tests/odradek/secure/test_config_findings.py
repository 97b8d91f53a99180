"""What is said of a configuration and its files: what the broker's rules say, and modes that let others read."""

from pathlib import Path

import pytest

from odradek.broker.config.option import ConfigError
from odradek.secure import config_findings as subject
from odradek.secure.config_findings import config_findings
from odradek.secure.findings import Level

ETCD = "metadata.store=etcd://e:2379/k\n"


@pytest.fixture(autouse=True)
def rules(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the broker's own rules say; they are tested there."""
    sentences: list[str] = []

    def protection_of(listeners: list[object], config: object, metrics: object) -> list[object]:
        assert metrics is None
        return listeners

    def refusals(listeners: list[object]) -> list[str]:
        return [f"--secure: {sentence}" for sentence in sentences if listeners]

    monkeypatch.setattr(subject, "protection_of", protection_of)
    monkeypatch.setattr(subject, "refusals", refusals)
    return sentences


def configured(directory: Path, text: str, mode: int = 0o600) -> str:
    path = directory / "secure.properties"
    path.write_text(f"log.dirs={directory}/data\n{text}")
    path.chmod(mode)
    return str(path)


def said(path: str) -> list[str]:
    found = config_findings(path)
    assert all(finding.level is Level.WEAK for finding in found)
    return [finding.what for finding in found]


def test_what_the_broker_would_refuse_is_said(tmp_path: Path, rules: list[str]) -> None:
    rules.append("there is no authorizer")
    assert said(configured(tmp_path, "")) == ["there is no authorizer"]


def test_an_open_etcd_is_said_once(tmp_path: Path, rules: list[str]) -> None:
    path = configured(tmp_path, ETCD)
    assert len(said(path)) == 1
    rules.append("the metadata is in an etcd without TLS")
    assert said(path) == ["the metadata is in an etcd without TLS"]


def test_files_that_others_may_read_are_said(tmp_path: Path) -> None:
    key = tmp_path / "broker.pem"
    key.write_text("")
    (tmp_path / "data").mkdir()
    text = f"{ETCD}metadata.etcd.ca.location=/ca\nmetadata.etcd.username=u\nmetadata.etcd.password=secret\n"
    text += f"metadata.etcd.certificate.location=/c\nmetadata.etcd.key.location={key}\n"
    for path, mode, wanted in (
        (tmp_path / "secure.properties", 0o644, "600"),
        (key, 0o640, "600"),
        (tmp_path / "data", 0o755, "700"),
    ):
        file = configured(tmp_path, text)
        key.chmod(0o600)
        (tmp_path / "data").chmod(0o700)
        assert said(file) == []
        path.chmod(mode)
        (sentence,) = said(file)
        assert f"{path} has mode {mode:04o}" in sentence
        assert sentence.endswith(f"chmod {wanted} {path}")
        assert "secret" not in sentence


def test_a_file_without_secrets_may_be_read_and_what_is_not_there_is_passed_over(tmp_path: Path) -> None:
    assert said(configured(tmp_path, "metadata.etcd.key.location=/nowhere/key.pem\n", 0o644)) == []


def test_what_no_broker_would_take_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        config_findings(configured(tmp_path, "node.id=one\n"))
