"""aiokafka is refused without its extension in C. (That it sends everything is shown where whole runs are.)"""

from importlib import import_module
from typing import Any

import pytest

from benchmarks.contenders import aiokafka
from benchmarks.contenders.client_load import ClientLoad
from benchmarks.contenders.job import ContenderFailed, Job

JOB = Job("latency", "aiokafka", "", "127.0.0.1", 9092, ClientLoad("t", 10, 1, 50, 150))


@pytest.mark.parametrize(
    ("module", "name", "python"),
    [
        ("default_records", "DefaultRecordBatchBuilder", "_DefaultRecordBatchBuilderPy"),
        ("default_records", "DefaultRecordBatch", "_DefaultRecordBatchPy"),
        ("memory_records", "MemoryRecords", "_MemoryRecordsPy"),
    ],
)
def test_the_extension_in_c_is_in_use_and_its_absence_is_an_error(
    module: str, name: str, python: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert aiokafka.client().identity == "aiokafka 0.14.0 with its C extension"
    records = import_module(f"aiokafka.record.{module}")
    monkeypatch.setattr(records, name, vars(records)[python])
    with pytest.raises(ContenderFailed, match=rf"{name} of aiokafka is that of aiokafka\.record\.{module}, not"):
        aiokafka.client()


class Connected(Exception):
    """Instead of a connection."""


async def test_all_have_the_same_settings_and_awaited_sends_do_not_linger(monkeypatch: pytest.MonkeyPatch) -> None:
    settings: list[dict[str, Any]] = []

    def connect(**given: Any) -> None:
        settings.append(given)
        raise Connected

    monkeypatch.setattr(aiokafka, "AIOKafkaProducer", connect)
    with pytest.raises(Connected):
        aiokafka.producer_of(JOB)
    with pytest.raises(Connected):
        async with aiokafka.awaited(JOB):
            pass
    common = {"bootstrap_servers": "127.0.0.1:9092", "acks": "all", "enable_idempotence": True, "max_batch_size": 65536}
    assert settings == [common | {"linger_ms": 5}, common | {"linger_ms": 0}]
