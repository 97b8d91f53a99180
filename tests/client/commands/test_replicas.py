"""Lists of brokers, and the file of several partitions: what is taken, and where it is told that something is wrong."""

import json
from pathlib import Path

import click
import pytest

from odradek.client.commands.replicas import broker_ids, parse_replicas, read_targets
from odradek.client.topic_partition import TopicPartition


def test_brokers_are_written_with_commas() -> None:
    assert (broker_ids((3, 1)), broker_ids(()), broker_ids(None)) == ("3,1", None, None)
    assert parse_replicas("3,1,2147483647") == [3, 1, 2147483647]


@pytest.mark.parametrize("text", ["", "1,", "a", "-1", "1 2", "2147483648", "1,1", "²"])
def test_another_form_is_refused(text: str) -> None:
    with pytest.raises(click.UsageError, match="--replicas"):
        parse_replicas(text)


def written(tmp_path: Path, content: object) -> str:
    path = tmp_path / "moves.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return str(path)


def test_a_file_is_that_of_kafkas_own_tool(tmp_path: Path) -> None:
    rows = [
        {"topic": "a", "partition": 0, "replicas": [1, 2], "log_dirs": ["any", "any"]},
        {"topic": "b.c", "partition": 12, "replicas": [3]},
    ]
    found = read_targets(written(tmp_path, {"version": 1, "partitions": rows}))
    assert found == {TopicPartition("a", 0): [1, 2], TopicPartition("b.c", 12): [3]}


GOOD = {"topic": "a", "partition": 0, "replicas": [1]}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "moves.json: Expecting"),
        ([], "no JSON object"),
        ("[" * 200_000, "moves.json: it is nested too deeply"),
        ({"version": 2, "partitions": [GOOD]}, "version 2, only 1 is known"),
        ({"version": 1}, "no list `partitions`"),
        ({"partitions": []}, "no list `partitions`"),
        ({"partitions": [GOOD, GOOD]}, "a-0 twice"),
        ({"partitions": [GOOD, 5]}, "partition 2 of the list"),
        ({"partitions": [GOOD | {"replicas": []}]}, "ids of brokers, each once"),
        ({"partitions": [GOOD | {"replicas": [1, 1]}]}, "ids of brokers, each once"),
        ({"partitions": [GOOD | {"replicas": [1, True]}]}, "ids of brokers, each once"),
        ({"partitions": [GOOD | {"partition": -1}]}, "partition 1 of the list"),
        ({"partitions": [GOOD | {"partition": False}]}, "partition 1 of the list"),
        ({"partitions": [GOOD | {"topic": ""}]}, "partition 1 of the list"),
        ({"partitions": [GOOD | {"log_dirs": ["/data"]}]}, '"log_dirs" other than "any"'),
    ],
)
def test_what_is_wrong_with_a_file_is_told_with_its_place(tmp_path: Path, content: object, said: str) -> None:
    with pytest.raises(click.UsageError) as error:
        read_targets(written(tmp_path, content))
    assert said in error.value.message


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(click.UsageError, match="No such file"):
        read_targets(str(tmp_path / "nowhere"))
