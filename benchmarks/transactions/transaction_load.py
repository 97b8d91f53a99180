"""The load: producers that commit one transaction after the other, in one process, by Java's client or librdkafka.

Java's client speaks transaction version 2, librdkafka the protocol before (KIP-98). Both are used as they come: keyless
records, whose partitions the client chooses, and a commit that sends what is left.
"""

import json
from dataclasses import asdict, dataclass
from typing import Final, Literal, Self, assert_never

from benchmarks.harness.java_tools import HEAP
from benchmarks.load.generator import run_command, run_generator
from benchmarks.load.replies import LoadFailed
from processes.apache_kafka import OWN_JVM
from processes.java_source import java_source_command

Client = Literal["java", "librdkafka"]
CLIENTS: Final[dict[Client, str]] = {
    "java": "Java (transaction version 2)",
    "librdkafka": "librdkafka (transaction version 1)",
}
JAVA_LOAD: Final = "benchmarks/transactions/TransactionLoad.java"
LIBRDKAFKA_LOAD: Final = "benchmarks.transactions.librdkafka_load"


@dataclass(frozen=True, slots=True)
class TransactionLoad:
    """`producers` with transactional ids that begin with `prefix`, each of which commits transactions of `records`
    records for `warm_s` and, measured, for `measured_s` seconds."""

    bootstrap: str
    topic: str
    prefix: str
    producers: int
    records: int
    warm_s: float
    measured_s: float
    value_bytes: int = 100

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        return cls(**json.loads(text))


@dataclass(frozen=True, slots=True)
class Committed:
    """Measured transactions a second, of all producers together; how many were committed, the warm-up's too."""

    per_s: float
    committed: int


def run_transactions(client: Client, load: TransactionLoad) -> Committed:
    """Runs the process, and waits for it. Raises LoadFailed."""
    match client:
        case "java":
            printed = run_command(_java_command(load))
        case "librdkafka":
            printed = run_generator(LIBRDKAFKA_LOAD, load.to_json())
        case _:
            assert_never(client)
    return parse(printed)


def _java_command(load: TransactionLoad) -> list[str]:
    words = (load.bootstrap, load.topic, load.prefix, load.producers, load.records, load.value_bytes)
    times = (load.warm_s, load.measured_s)
    return java_source_command(JAVA_LOAD, *map(str, (*words, *times)), jvm_options=(HEAP, *OWN_JVM), log_level="error")


def parse(printed: str) -> Committed:
    """What either process prints as its last line. Raises LoadFailed where it committed nothing, or says nothing."""
    try:
        told = Committed(**json.loads(printed.splitlines()[-1]))
    except (ValueError, TypeError, IndexError) as error:
        raise LoadFailed(f"the load does not say what it committed: {printed[-2000:]}") from error
    if told.committed == 0 or told.per_s == 0:
        raise LoadFailed("no transaction was committed")
    return told
