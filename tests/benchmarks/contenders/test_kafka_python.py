"""kafka-python is refused without its checksum in C. (That it sends everything is shown where whole runs are.)"""

from importlib import import_module

import pytest

from benchmarks.contenders import kafka_python
from benchmarks.contenders.job import ContenderFailed


def test_the_checksum_in_c_is_in_use_and_its_absence_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    assert kafka_python.client().identity == "kafka-python 3.0.12 with crc32c"
    monkeypatch.setattr(import_module("kafka.record.util"), "crc32c_c", None)
    with pytest.raises(ContenderFailed, match="without the crc32c package"):
        kafka_python.client()
