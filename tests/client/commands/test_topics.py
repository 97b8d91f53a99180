"""`odradek topics`: command lines that are refused before anything is asked, and the forms of its arguments.

What it does against brokers stands in `tests/compat/test_commands.py`.
"""

import click
import pytest
from click.testing import CliRunner

from client.commands.topics import parse_assignment, topics


def test_replicas_are_assigned_as_kafkas_own_tool_has_it() -> None:
    assert parse_assignment("1") == {0: [1]}
    assert parse_assignment("1:2,2:1,3") == {0: [1, 2], 1: [2, 1], 2: [3]}


@pytest.mark.parametrize("text", ["", "1:", "a", "1,,2", "1;2"])
def test_another_form_is_refused(text: str) -> None:
    with pytest.raises(click.UsageError, match="write ids of brokers"):
        parse_assignment(text)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("create",), "Missing argument"),
        (("create", "t", "--partitions", "0"), "0 is not in the range"),
        (("create", "t", "--replica-assignment", "1", "--partitions", "3"), "stands in place of"),
        (("create", "t", "--replica-assignment", "one"), "write ids of brokers"),
        (("create", "t", "--set", "retention.ms"), "not of the form NAME=VALUE"),
        (("alter", "t"), "nothing to alter"),
        (("delete",), "Missing argument"),
        (("describe", "--no-such"), "No such option"),
    ],
)
def test_a_wrong_command_line_is_told_without_asking_a_broker(arguments: tuple[str, ...], said: str) -> None:
    done = CliRunner().invoke(topics, [*arguments, "-b", "localhost:1"] if "--no-such" not in arguments else arguments)
    assert done.exit_code == 2
    assert said in done.output
