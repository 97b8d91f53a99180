"""`odradek configs`: whose options are meant, and command lines that are refused before anything is asked."""

import click
import pytest
from click.testing import CliRunner

from client.admin.configs import ConfigResource
from client.commands.configs import configs, resource_of


def test_a_resource_is_a_topic_a_broker_or_all_brokers() -> None:
    assert resource_of("topic", "7") == ConfigResource.topic("7")
    assert resource_of("topic", "default") == ConfigResource.topic("default")
    assert resource_of("broker", "7") == ConfigResource.broker(7)
    assert resource_of("broker", "default") == ConfigResource.broker()


@pytest.mark.parametrize("name", ["", "-1", "one", "1.5", "²"])
def test_a_broker_has_a_number(name: str) -> None:
    with pytest.raises(click.UsageError, match="no id of a broker"):
        resource_of("broker", name)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("describe", "group", "g"), "'group' is not one of 'topic', 'broker'"),
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
