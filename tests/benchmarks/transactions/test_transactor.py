"""Transactions of a producer that gives up nothing are committed, each with its record, and the last is not one yet."""

from benchmarks.harness.cluster_servers import Cluster
from benchmarks.transactions.transaction_topic import require_committed, transaction_topic
from benchmarks.transactions.transactor import Transactor


def test_each_transaction_has_one_record(cluster: Cluster) -> None:
    with transaction_topic(cluster, "one-each", 3) as places, Transactor("one-each", 1, "one-each") as transactor:
        transactor.initialize(cluster.members)
        for _ in range(2):
            transactor.write(cluster.members)
            transactor.commit(cluster.members)
        assert transactor.committed == 2
        assert require_committed(places, "one-each", 2) == 4, "a marker each"
