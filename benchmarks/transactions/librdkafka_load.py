"""The load by librdkafka, a process of its own: `python -m benchmarks.transactions.librdkafka_load LOAD`.

LOAD is a `TransactionLoad` in JSON. Each producer has a thread; what takes time happens in librdkafka's own threads,
and without Python's lock. It prints a `Committed` as one line of JSON.
"""

import json
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from functools import partial
from threading import Barrier

from confluent_kafka import KafkaException, Producer

from benchmarks.transactions.transaction_load import Committed, TransactionLoad

CALL_S = 60.0


def commit_all(load: TransactionLoad) -> Committed:
    """Raises KafkaException."""
    ready = Barrier(load.producers)
    with ThreadPoolExecutor(load.producers) as pool:
        told = list(pool.map(partial(_commit, load, ready), range(load.producers)))
    return together(told)


def together(told: Sequence[Committed]) -> Committed:
    return Committed(sum(each.per_s for each in told), sum(each.committed for each in told))


def _commit(load: TransactionLoad, ready: Barrier, number: int) -> Committed:
    try:
        producer = Producer(
            {"bootstrap.servers": load.bootstrap, "transactional.id": f"{load.prefix}-{number}", "acks": "all"}
        )
        producer.init_transactions(CALL_S)
    except BaseException:
        ready.abort()
        raise
    ready.wait()
    warmed, _ = _commit_for(producer, load, load.warm_s)
    measured, took_s = _commit_for(producer, load, load.measured_s)
    return Committed(measured / took_s, warmed + measured)


def _commit_for(producer: Producer, load: TransactionLoad, seconds: float) -> tuple[int, float]:
    """How many transactions were committed, and what they took."""
    value, count, began = bytes(load.value_bytes), 0, time.perf_counter()
    while (took_s := time.perf_counter() - began) < seconds:
        producer.begin_transaction()
        for _ in range(load.records):
            producer.produce(load.topic, value)
        producer.commit_transaction(CALL_S)
        count += 1
    return count, took_s


def main(text: str) -> int:
    try:
        told = commit_all(TransactionLoad.from_json(text))
    except KafkaException as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(json.dumps(asdict(told)) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
