"""What the common options come to: which source of a setting wins, and which settings of a shared file are left out."""

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from odradek.client.admin.config import AdminConfig
from odradek.client.commands.failures import USAGE, CommandFailed
from odradek.client.commands.options import Assignment, Target, on_target
from odradek.client.errors.client_errors import ConfigError
from odradek.client.fetching.config import FetchConfig
from odradek.client.producer.config import ProducerConfig


@pytest.fixture
def targets(monkeypatch: pytest.MonkeyPatch) -> list[Target]:
    """Those that the command below got."""
    monkeypatch.delenv("ODRADEK_BOOTSTRAP_SERVER", raising=False)
    return []


def invoke(targets: list[Target], *arguments: str) -> int:
    @click.command()
    @on_target
    async def command(target: Target) -> None:
        targets.append(target)

    return CliRunner().invoke(command, arguments).exit_code


def addresses(target: Target) -> list[str]:
    return [str(address) for address in target.config(AdminConfig).bootstrap_servers]


def test_the_command_line_wins_over_the_environment_the_file_and_the_default(
    targets: list[Target], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "client.properties"
    file.write_text("bootstrap.servers=file:1\n")
    assert invoke(targets) == 0
    assert invoke(targets, "--config", str(file)) == 0
    monkeypatch.setenv("ODRADEK_BOOTSTRAP_SERVER", "environment:2")
    assert invoke(targets, "--config", str(file)) == 0
    assert invoke(targets, "--config", str(file), "-b", "option:3,other:4") == 0
    monkeypatch.setenv("ODRADEK_BOOTSTRAP_SERVER", "")
    assert invoke(targets) == 0
    expected = [["localhost:9092"], ["file:1"], ["environment:2"], ["option:3", "other:4"], ["localhost:9092"]]
    assert list(map(addresses, targets)) == expected


def test_the_other_options_reach_the_target(targets: list[Target]) -> None:
    assert invoke(targets, "--timeout", "0.25", "--verbose") == 0
    [target] = targets
    assert (target.timeout_ms, target.is_verbose) == (250, True)
    assert target.admin().config.default_api_timeout_ms == 250
    for refused in ("0", "nan", "-nan", "inf", "1e999"):
        assert invoke(targets, "--timeout", refused) == 2
    assert invoke(targets, "--config", "no-such-file") == 2


def test_a_file_may_hold_settings_of_our_other_clients(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("acks=1\nfetch.max.wait.ms=7\ndefault.api.timeout.ms=9\nclient.id=me\n")
    target = Target(config_file=str(file))
    admin, producer, fetch = target.config(AdminConfig), target.config(ProducerConfig), target.config(FetchConfig)
    assert (admin.client_id, producer.client_id, fetch.client_id) == ("me", "me", "me")
    assert (admin.default_api_timeout_ms, producer.acks, fetch.fetch_max_wait_ms) == (9, 1, 7)


def test_settings_win_over_the_file_and_the_file_over_defaults(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("acks=1\nlinger.ms=3\n")
    target = Target(config_file=str(file))
    config = target.config(ProducerConfig, {"linger.ms": "4"}, {"acks": 0, "linger.ms": 9, "batch.size": 7})
    assert (config.acks, config.linger_ms, config.batch_size) == (1, 4, 7)


@pytest.mark.parametrize("in_file", ["linger.ms=3\nbootstrap.servers=file:1", "linger_ms=3\nbootstrap_servers=file:1"])
@pytest.mark.parametrize("setting", [{}, {"linger.ms": "4"}, {"linger_ms": "4"}])
@pytest.mark.parametrize("default", [{"linger.ms": 9}, {"linger_ms": 9}])
def test_names_with_dots_and_with_underscores_are_the_same_everywhere(
    tmp_path: Path, in_file: str, setting: dict[str, object], default: dict[str, object]
) -> None:
    file = tmp_path / "client.properties"
    file.write_text(in_file)
    target = Target(config_file=str(file))
    config = target.config(ProducerConfig, setting, default)
    assert (config.linger_ms, [str(address) for address in config.bootstrap_addresses]) == (
        4 if setting else 3,
        ["file:1"],
    )
    assert addresses(Target("option:3", config_file=str(file))) == ["option:3"]


@pytest.mark.parametrize("name", ["bootstrap.servers", "bootstrap_servers"])
def test_a_setting_of_the_command_line_wins_over_the_environment_too(name: str) -> None:
    config = Target("environment:2").config(AdminConfig, {name: "setting:4"})
    assert [str(address) for address in config.bootstrap_addresses] == ["setting:4"]


@pytest.mark.parametrize("name", ["default.api.timeout.ms", "default_api_timeout_ms"])
def test_an_admin_client_takes_the_settings_of_a_command_that_it_knows(name: str) -> None:
    settings = {"security_protocol": "SSL", "acks": "1", "fetch.min.bytes": "7", "client.id": "me", name: "5"}
    config = Target(timeout_ms=9).admin(settings).config
    assert (config.security_protocol, config.client_id, config.default_api_timeout_ms) == ("SSL", "me", 5)
    assert Target(timeout_ms=9).admin().config.default_api_timeout_ms == 9


def test_what_no_client_knows_is_refused_with_the_nearest_name(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("client.idd=me\n")
    with pytest.raises(ConfigError, match=r"client\.id"):
        Target(config_file=str(file)).config(AdminConfig)


@pytest.mark.parametrize("content", [b"a=\\u12", b"\xff"])
def test_a_file_that_cannot_be_read_is_told_by_name(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "client.properties"
    file.write_bytes(content)
    with pytest.raises(CommandFailed, match=r"client\.properties: ") as caught:
        Target(config_file=str(file)).config(AdminConfig)
    assert caught.value.code == USAGE


def test_an_assignment_is_divided_at_its_first_sign() -> None:
    kind = Assignment()
    assert kind.convert(" a = b=c ", None, None) == ("a", "b=c")
    assert kind.convert(("a", "b"), None, None) == ("a", "b")
    for text in ("a", "=b"):
        with pytest.raises(click.UsageError, match="not of the form NAME=VALUE"):
            kind.convert(text, None, None)
