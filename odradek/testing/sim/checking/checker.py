"""Judges a history: which promises of the cluster it breaks. Pure; modelled on the queue workload by which Jepsen tests
Kafka and Redpanda, and on the invariants of the cluster.

    verdict = check(history)                                # what clients saw, and what the world did
    verdict = check(history, stored_states, Rules(...))     # and what the metadata store held
    verdict.check()                                         # raises AssertionError, with the events of each finding

Each family of anomalies is a function in a module of its own, from the ledger (ledger.py, the history by record) and
what may be expected (expectations.py: configuration, the loss model, unclean elections) to findings. Logs that are laid
side by side are judged apart, in replica_logs.py.

Rules:
- What cannot be told from the history is no finding: an answer that never came, a record that nobody tried to read.
- What was promised to nobody is counted, with its excuse, and is no finding: `Verdict.excused`.
- It takes about a second for 100,000 events.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from odradek.testing.sim.checking.check_groups import broken_groups
from odradek.testing.sim.checking.check_offsets import duplicates, inconsistent_offsets
from odradek.testing.sim.checking.check_operators import (
    hasty_reassignments,
    misplaced_records,
    moved_starts,
    returned_records,
    undone_changes,
    wanting_creations,
)
from odradek.testing.sim.checking.check_reads import disordered_polls, unwritten_reads
from odradek.testing.sim.checking.check_replicas import impossible_replicas, impossible_states
from odradek.testing.sim.checking.check_transactions import broken_transactions
from odradek.testing.sim.checking.check_writes import disordered_writes, lost_writes, vanished_records
from odradek.testing.sim.checking.cluster_history import ClusterRecord
from odradek.testing.sim.checking.expectations import Expectations, Rules
from odradek.testing.sim.checking.finding import Finding, Verdict
from odradek.testing.sim.checking.history import Record
from odradek.testing.sim.checking.ledger import Ledger

Family = Callable[[Ledger, Expectations], Iterator[Finding]]

FAMILIES: Final[tuple[Family, ...]] = (
    lost_writes,
    vanished_records,
    inconsistent_offsets,
    duplicates,
    unwritten_reads,
    disordered_writes,
    disordered_polls,
    impossible_replicas,
    impossible_states,
    returned_records,
    moved_starts,
    misplaced_records,
    undone_changes,
    hasty_reassignments,
    wanting_creations,
    broken_groups,
    broken_transactions,
)
EXPECTED: Final = Rules()


def check(history: Iterable[Record], cluster: Iterable[ClusterRecord] = (), rules: Rules = EXPECTED) -> Verdict:
    """`cluster`: in the order of the commits, and in the history's time."""
    ledger = Ledger(history)
    expectations = Expectations(ledger.records, cluster, rules)
    return Verdict(finding for family in FAMILIES for finding in family(ledger, expectations))
