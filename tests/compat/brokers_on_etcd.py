"""Three brokers of ours, a process each and in three racks, with their metadata in etcd.

with brokers_on_etcd(tmp_path) as brokers:
    brokers[2].kill()                              # or stop, start, pause, resume
"""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from processes.cluster_processes import Processes
from processes.odradek_broker import OdradekBroker, settings_words

NODE_IDS: Final = (1, 2, 3)
OPTIONS: Final = {"auto.create.topics.enable": "false", "auto.leader.rebalance.enable": "false"}


@contextmanager
def brokers_on_etcd(directory: Path, **options: str) -> Generator[dict[int, OdradekBroker]]:
    """The brokers by their ids, all ready. `options` win over those here."""
    with Processes(directory) as processes:
        etcd = processes.etcd()
        processes.start(etcd)
        metadata = ("--metadata", etcd.address("/odradek"))
        words = settings_words(OPTIONS | options)
        brokers = {
            node_id: processes.broker(node_id, *metadata, "--set", f"broker.rack=rack-{node_id}", *words)
            for node_id in NODE_IDS
        }
        processes.start(*brokers.values())
        yield brokers
