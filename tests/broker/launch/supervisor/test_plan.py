"""Where each broker listens and what it is told, and what cannot be, said in a sentence."""

import json
from collections.abc import Mapping, Sequence

import pytest

from odradek.broker.config.broker_config import ConfigError
from odradek.broker.config.option import ByReference
from odradek.broker.launch.listen_options import ListenerError, parse_address
from odradek.broker.launch.supervisor.broker_process import settings_from
from odradek.broker.launch.supervisor.plan import (
    ONE_REPLICA,
    Options,
    descriptors_problem,
    plan,
    replicas_of,
    topic_defaults,
)


def options(
    listen: Sequence[str] = ("127.0.0.1:9092",),
    advertise: Sequence[str] = (),
    data_dir: str | None = "dir",
    static: Mapping[str, str] | None = None,
) -> Options:
    return Options(
        [parse_address(text, "--listen") for text in listen],
        [parse_address(text, "--advertise") for text in advertise],
        data_dir,
        static or {},
    )


def addresses(given: Options, ids: Sequence[int]) -> list[tuple[str, str]]:
    return [(each.listener.address, each.advertised.address) for each in plan(given, ids)]


def test_ports_follow_one_another_from_the_first() -> None:
    assert addresses(options(), (1, 2, 4)) == [
        (f"127.0.0.1:{port}", f"127.0.0.1:{port}") for port in (9092, 9093, 9094)
    ]
    assert addresses(options(["127.0.0.1:0"]), (1, 2)) == [("127.0.0.1:0", "127.0.0.1:0")] * 2
    assert addresses(options(["0.0.0.0:9092"], ["kafka.example:19092"]), (1, 2)) == [
        ("0.0.0.0:9092", "kafka.example:19092"),
        ("0.0.0.0:9093", "kafka.example:19093"),
    ]


def test_or_each_is_given() -> None:
    given = options(["[::1]:9092", "127.0.0.1:7000"], ["a:1", "b:2"])
    assert addresses(given, (1, 2)) == [("[::1]:9092", "a:1"), ("127.0.0.1:7000", "b:2")]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            options(["127.0.0.1:65534"]),
            "3 brokers would need the ports up to 65536, and there are 65535",
        ),
        (options(["127.0.0.1:1", "127.0.0.1:2"]), "--listen is given 2 times, and there are 3 brokers"),
        (options(advertise=["a:1", "b:2"]), "--advertise is given 2 times, and there are 3 brokers"),
        (options(["a:1", "a:2", "a:1"]), "two brokers cannot listen at one address"),
        (options(["0.0.0.0:9092"]), "add --advertise"),
    ],
)
def test_what_cannot_be_is_said(given: Options, said: str) -> None:
    with pytest.raises(ListenerError, match=said):
        plan(given, (1, 2, 3))


def test_options_are_checked_before_anything_is_started() -> None:
    with pytest.raises(ConfigError, match=r"num\.partitions"):
        plan(options(static={"num.partitions": "many"}), (1,))


def test_a_process_is_told_all_that_it_is_to_be() -> None:
    given = options(static={"num.partitions": "7", "broker.rack": "mine"})
    _, second = plan(given, (1, 2))
    begin = second.begin(given, ONE_REPLICA, "unix:dir/metadata/store.sock", 9093, None)
    assert begin["static"] == {
        "default.replication.factor": "1",
        "min.insync.replicas": "1",
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1",
        "num.partitions": "7",
        "log.dirs": "dir/broker-2",
        "node.id": "2",
        "broker.rack": "rack-2",
        "listeners": "PLAINTEXT://127.0.0.1:9093",
        "advertised.listeners": "PLAINTEXT://127.0.0.1:9093",
        "metadata.store": "unix:dir/metadata/store.sock",
    }
    assert (begin["memory"], begin["metrics"]) == (False, None)


@pytest.mark.parametrize(("factor", "internal"), [("1", "1"), ("2", "2"), ("5", "3")])
def test_internal_topics_get_as_many_replicas_as_others(factor: str, internal: str) -> None:
    given = options(static={"default.replication.factor": factor})
    (only,) = plan(given, (1,))
    static = only.begin(given, ONE_REPLICA, "unix:x", 9092, None)["static"]
    assert static["offsets.topic.replication.factor"] == internal
    assert static["transaction.state.log.replication.factor"] == internal


def test_internal_topics_have_options_of_their_own() -> None:
    given = options(static={"offsets.topic.replication.factor": "3"})
    (only,) = plan(given, (1,))
    static = only.begin(given, ONE_REPLICA, "unix:x", 9092, None)["static"]
    assert static["offsets.topic.replication.factor"] == "3"
    assert static["transaction.state.log.replication.factor"] == "1"


def test_what_came_by_reference_is_known_as_such_in_the_process() -> None:
    """JSON has text and nothing else. The broker would describe the value to any client otherwise."""
    given = options(static={"broker.rack": "x", "num.partitions": ByReference("7")})
    (only,) = plan(given, (1,))
    begin = json.loads(json.dumps(only.begin(given, ONE_REPLICA, "unix:x", 9092, None)))
    assert begin["by_reference"] == ["num.partitions"]
    (found,) = settings_from(begin).config.describe_broker(["num.partitions"])
    assert (found.value, found.is_sensitive, settings_from(begin).config.num_partitions) == (None, True, 7)


def test_brokers_that_are_to_be_secure_are_looked_at_before_any_is_started() -> None:
    given = options(["b1.example:9092"], static={"secure": "true"})
    with pytest.raises(ConfigError, match=r"--secure: listener PLAINTEXT://b1\.example:9092 accepts"):
        plan(given, (1, 2, 3))


def test_a_free_port_is_kept_for_the_next_start() -> None:
    given = options(["127.0.0.1:0"], data_dir=None)
    (only,) = plan(given, (1,))
    begin = only.begin(given, ONE_REPLICA, "unix:x", 40_000, 40_001)
    assert begin["static"]["listeners"] == "PLAINTEXT://127.0.0.1:40000"
    assert begin["static"]["advertised.listeners"] == "PLAINTEXT://127.0.0.1:40000"
    assert begin["static"]["group.initial.rebalance.delay.ms"] == "0"
    assert "log.dirs" not in begin["static"]
    assert (begin["memory"], begin["metrics"]) == (True, "127.0.0.1:40001")


def test_topics_have_one_replica_in_new_directories_only() -> None:
    assert topic_defaults(None, 3, is_new=True) == ONE_REPLICA
    three = topic_defaults(None, 3, is_new=False)
    assert replicas_of(options(), three) == 3
    assert replicas_of(options(), topic_defaults(None, 2, is_new=False)) == 2
    assert replicas_of(options(), topic_defaults(ONE_REPLICA, 3, is_new=False)) == 1
    assert replicas_of(options(static={"default.replication.factor": "2"}), ONE_REPLICA) == 2


def test_more_brokers_than_descriptors_allow_are_refused() -> None:
    assert descriptors_problem(50, 1024) is None
    assert descriptors_problem(2, 72) is None
    assert descriptors_problem(3, 72) == (
        "3 brokers need 76 open files of their supervisor, and the limit is 72: raise it (ulimit -n), or run 2 brokers "
        "at most"
    )
