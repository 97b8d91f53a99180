"""`odradek configs`: whose options are meant, command lines that are refused before anything is asked, and, on a
scripted cluster, what is warned of."""

import click
import pytest
from click.testing import CliRunner

from odradek.client.admin.configs import ConfigEntry, ConfigResource, ConfigSource, ConfigType
from odradek.client.commands.configs import configs, resource_of
from odradek.client.commands.warnings import is_unknown
from tests.client.commands.scripted import ran, replicated_cluster


def test_a_resource_is_a_topic_a_group_a_broker_or_all_brokers() -> None:
    assert resource_of("topic", "7") == ConfigResource.topic("7")
    assert resource_of("topic", "default") == ConfigResource.topic("default")
    assert resource_of("group", "a/b c") == ConfigResource.group("a/b c")
    assert resource_of("broker", "7") == ConfigResource.broker(7)
    assert resource_of("broker", "default") == ConfigResource.broker()


@pytest.mark.parametrize("name", ["", "-1", "one", "1.5", "²"])
def test_a_broker_has_a_number(name: str) -> None:
    with pytest.raises(click.UsageError, match="no id of a broker"):
        resource_of("broker", name)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("describe", "user", "u"), "'user' is not one of 'topic', 'group', 'broker'"),
        (("describe", "topic"), "Missing argument"),
        (("set", "topic", "t"), "nothing to set"),
        (("set", "topic", "t", "retention.ms"), "not of the form NAME=VALUE"),
        (("set", "broker", "one", "a=b"), "no id of a broker"),
        (("delete", "topic", "t"), "Missing argument"),
    ],
)
def test_a_wrong_command_line_is_told_without_asking_a_broker(arguments: tuple[str, ...], said: str) -> None:
    done = CliRunner().invoke(configs, [*arguments, "-b", "localhost:1"])
    assert done.exit_code == 2
    assert said in done.output


@pytest.mark.virtual_time
async def test_more_in_sync_replicas_than_a_topic_has_are_warned_of(capsys: pytest.CaptureFixture[str]) -> None:
    with replicated_cluster(2, orders=1) as (scripted, _, _):
        for option, warns in (("min.insync.replicas=3", True), ("min.insync.replicas=1", False), ("a=9", False)):
            for validate_only in ((), ("--validate-only",)):
                assert await ran(scripted, configs, "set", "topic", "orders", option, *validate_only) is None
                said = capsys.readouterr().err
                assert ("min.insync.replicas=3 is more than orders has replicas" in said) == bool(said) == warns


@pytest.mark.parametrize(
    ("read_only", "sensitive", "kind", "unknown"),
    [
        (True, True, ConfigType.UNKNOWN, True),
        (False, True, ConfigType.UNKNOWN, False),
        (True, True, ConfigType.PASSWORD, False),
        (True, False, ConfigType.UNKNOWN, False),
    ],
)
def test_what_a_broker_does_not_know(read_only: bool, sensitive: bool, kind: ConfigType, unknown: bool) -> None:
    """A password of a broker before Kafka 2.6, which tells no types, is not taken for unknown."""
    entry = ConfigEntry("name", None, ConfigSource.DYNAMIC_BROKER, read_only, sensitive, type=kind)
    assert is_unknown(entry) == unknown
