"""The file and the command line of a start: values by reference from real files, and who may read these."""

import logging
from pathlib import Path

import pytest

from odradek.broker.config.option import ConfigError
from odradek.broker.launch.static_file import read_static

CLASSES = "org.apache.kafka.common.config.provider."


def write(path: Path, text: str, mode: int = 0o600) -> Path:
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)
    return path


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    return write(tmp_path / "secrets.properties", "etcd=hunter2\n")


def config_with(tmp_path: Path, secrets: Path, mode: int = 0o644) -> str:
    text = f"config.providers=file\nconfig.providers.file.class={CLASSES}FileConfigProvider\n"
    text += f"metadata.etcd.password=${{file:{secrets}:etcd}}\nbroker.rack=ä\n"
    return str(write(tmp_path / "server.properties", text, mode))


def test_values_are_looked_up_in_files_and_in_the_environment(
    tmp_path: Path, secrets: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("ODRADEK_USER", "of the environment")
    assignments = [
        "config.providers=file,env",
        f"config.providers.env.class={CLASSES}EnvVarConfigProvider",
        "metadata.etcd.username=${env:ODRADEK_USER}",
    ]
    with caplog.at_level(logging.WARNING):
        static = read_static(config_with(tmp_path, secrets), assignments)
    assert static == {
        "config.providers": "file,env",
        "metadata.etcd.password": "hunter2",
        "metadata.etcd.username": "of the environment",
        "broker.rack": "ä",
    }
    assert caplog.messages == [], "the file with references may be open, and the secrets are not"


def test_a_file_with_secrets_that_others_may_read_is_warned_of(
    tmp_path: Path, secrets: Path, caplog: pytest.LogCaptureFixture
) -> None:
    secrets.chmod(0o640)
    open_one = write(tmp_path / "open.properties", "metadata.etcd.password=hunter3\n", 0o644)
    with caplog.at_level(logging.WARNING):
        read_static(config_with(tmp_path, secrets), [])
        read_static(str(open_one), [])
    assert caplog.messages == [
        f"{secrets} holds secrets and has mode 0640, so its group may read it: chmod 600 {secrets}",
        f"{open_one} holds secrets and has mode 0644, so everybody on this machine may read it: chmod 600 {open_one}",
    ]


def test_a_file_without_secrets_may_be_open(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = write(tmp_path / "server.properties", "num.partitions=3\n", 0o644)
    with caplog.at_level(logging.WARNING):
        assert read_static(str(file), ["node.id=1"]) == {"num.partitions": "3", "node.id": "1"}
        assert read_static(None, []) == {}
    assert caplog.messages == []


def test_what_cannot_be_looked_up_ends_the_start(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^metadata\.etcd\.password refers to \$\{file:.* cannot be read: No such"):
        read_static(config_with(tmp_path, tmp_path / "no-such"), [])
