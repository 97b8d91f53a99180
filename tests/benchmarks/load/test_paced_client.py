"""librdkafka by the clock, to a real broker: every record is timed and arrives, and one that does not fails the run."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.load.paced_client import ClientPace, Sending, run_client, settings
from benchmarks.load.replies import LoadFailed
from benchmarks.load.wire import LATEST, Wire, create_topic, offsets_at
from processes.odradek_broker import OdradekBroker


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OdradekBroker]:
    directory: Path = tmp_path_factory.mktemp("paced-client")
    with OdradekBroker(directory / "data", "--set", "auto.create.topics.enable=false") as broker:
        yield broker


def test_each_record_has_a_latency_and_arrives_in_its_partition(broker: OdradekBroker) -> None:
    with Wire(broker.host, broker.port) as wire:
        create_topic(wire, "paced", 3)
        job = ClientPace(broker.bootstrap, "paced", 500, 150, 1024, 3)
        paced = run_client(job)
        assert offsets_at(wire, "paced", LATEST, 3) == [51, 51, 51], "50 each, and the first that opened connections"
    assert len(paced.latencies_ns) == len(paced.lateness_ns) == 150
    assert all(0 < late < took for late, took in zip(paced.lateness_ns, paced.latencies_ns, strict=True))


def test_a_topic_that_is_not_there_fails_the_run(broker: OdradekBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    job = ClientPace(broker.bootstrap, "missing", 500, 10, 1024, 1)
    monkeypatch.setattr("benchmarks.load.paced_client.FLUSH_TIMEOUT_S", 5.0)
    with pytest.raises(LoadFailed, match="the first records were not delivered"):
        Sending(job).run()


def test_the_client_waits_for_all_replicas_and_for_nothing_else() -> None:
    told = settings(ClientPace("h:1", "t", 1, 1, 1, 1))
    assert (told["acks"], told["linger.ms"]) == ("all", 0)
    assert ClientPace.from_json(ClientPace("h:1", "t", 1, 1, 1, 1).to_json()) == ClientPace("h:1", "t", 1, 1, 1, 1)
