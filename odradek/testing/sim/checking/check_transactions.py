"""A transaction is all there or not at all, and each input of a copy is in its output once.

*Uncommitted read*: a reader of read_committed gets a record of a transaction that ended as aborted, whenever that was,
or one that nobody had asked to commit before the reader got it.

*Torn transaction*: of what a transaction sent some records can be read at the end and some cannot; or none can, though
its producer was told that it is committed. Where it was told nothing, all or none are right.

*Input without output*, *input with two outputs*: by the end each record that can be read has been copied, and its
copies are in one transaction that can be read.

What can be read at the end is what the last readers have read from beginning to end. After an unclean election, and
outside the loss model, nothing of this is promised: a coordinator's log and that of a group count as well.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from odradek.testing.sim.checking.expectations import Expectations, TopicPartition
from odradek.testing.sim.checking.finding import Anomaly, Finding
from odradek.testing.sim.checking.ledger import Ledger, Sighting
from odradek.testing.sim.checking.transaction_history import NO_SOURCE, Ended, Ending, InTransaction


@dataclass(slots=True)
class _Transaction:
    """One, with positions in the history; -1 where there is no such event."""

    name: str
    sends: dict[int, int] = field(default_factory=dict[int, int])
    """Value -> position of its `InTransaction`."""
    commit_asked: int = -1
    """The first time."""
    ended: int = -1
    outcome: str = ""


class _Transactions:
    """The history by transaction, and where each value was read."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.by_name: dict[str, _Transaction] = {}
        self.of_value: dict[int, _Transaction] = {}
        self.sources: dict[int, int] = {}
        for index, record in ledger.transaction_records:
            each = self.by_name.setdefault(record.transaction, _Transaction(record.transaction))
            match record:
                case InTransaction():
                    each.sends[record.value] = index
                    self.of_value[record.value] = each
                    self.sources[record.value] = record.source
                case Ending():
                    if record.wanted == "commit" and each.commit_asked < 0:
                        each.commit_asked = index
                case Ended():
                    each.ended, each.outcome = index, record.outcome
        self.read: dict[int, tuple[TopicPartition, Sighting]] = {}
        """By value, as it was read first."""
        for key, partition in ledger.partitions.items():
            for seen in partition.sightings():
                if seen.is_read and seen.value in self.of_value:
                    self.read.setdefault(seen.value, (key, seen))
        self.at_end = self._at_end()

    def _at_end(self) -> dict[int, tuple[TopicPartition, int]]:
        """Value -> where it was read in the last readings, and the position of that poll."""
        found: dict[int, tuple[TopicPartition, int]] = {}
        for key, (begun, placed) in self.ledger.last_readings.items():
            for index, polled in self.ledger.partition(*key).polls:
                if index > begun and polled.client == placed.client:
                    found.update((value, (key, index)) for _, value in polled.records if value in self.of_value)
        return found

    def place(self, value: int) -> TopicPartition:
        """Where it was read, or was to go."""
        if value in self.read:
            return self.read[value][0]
        sent = self.ledger.sends[value].sent
        return sent.topic, -1 if sent.partition is None else sent.partition


def broken_transactions(ledger: Ledger, expectations: Expectations) -> Iterator[Finding]:
    """Of all kinds that are named above."""
    if not ledger.transaction_records:
        return
    transactions = _Transactions(ledger)
    excuse = excuse_of_transactions(expectations)
    yield from _uncommitted_reads(transactions, excuse)
    if ledger.has_ended:
        yield from _torn(transactions, excuse)
        yield from _copies(transactions, excuse)


def excuse_of_transactions(expectations: Expectations) -> str | None:
    """Why nothing of this is promised any more."""
    keys = {*expectations.stored, *expectations.logged}
    return next((why for key in sorted(keys) if (why := expectations.of_loss(key, 0.0)) is not None), None)


def _uncommitted_reads(transactions: _Transactions, excuse: str | None) -> Iterator[Finding]:
    ledger = transactions.ledger
    for value, (key, seen) in transactions.read.items():
        each = transactions.of_value[value]
        if each.outcome == "aborted":
            text, index = f"value {value} was read, and {each.name} is aborted", each.ended
        elif each.commit_asked < 0 or each.commit_asked > seen.first_index:
            text, index = f"value {value} was read before {each.name} was to be committed", each.commit_asked
        else:
            continue
        indexes = [each.sends[value], seen.first_index, *([index] if index >= 0 else [])]
        yield Finding(Anomaly.UNCOMMITTED_READ, *key, seen.offset, text, ledger.events(*indexes), excuse)


def _torn(transactions: _Transactions, excuse: str | None) -> Iterator[Finding]:
    ledger, at_end = transactions.ledger, transactions.at_end
    for each in transactions.by_name.values():
        there = [value for value in each.sends if value in at_end]
        missing = [value for value in each.sends if value not in at_end]
        if not missing or (not there and each.outcome != "committed"):
            continue
        value = missing[0]
        text = f"{each.name} {each.outcome or 'has no known outcome'}, and of its {len(each.sends)} records "
        text += f"{len(missing)} cannot be read at the end, value {value} first"
        indexes = [each.sends[value], *(at_end[other][1] for other in there[:1])]
        indexes += [each.ended] if each.ended >= 0 else []
        yield Finding(Anomaly.TORN_TRANSACTION, *transactions.place(value), None, text, ledger.events(*indexes), excuse)


def _copies(transactions: _Transactions, excuse: str | None) -> Iterator[Finding]:
    """Where anybody copies."""
    ledger, at_end = transactions.ledger, transactions.at_end
    copies: dict[int, list[int]] = {}
    for value in at_end:
        if (source := transactions.sources[value]) != NO_SOURCE:
            copies.setdefault(source, []).append(value)
    for source, values in copies.items():
        if len(values) > 1:
            names = " and ".join(sorted({transactions.of_value[value].name for value in values}))
            text = f"value {source} was copied as {sorted(values)} by {names}"
            events = ledger.events(*(at_end[value][1] for value in values))
            yield Finding(Anomaly.DOUBLED_INPUT, *transactions.place(values[0]), None, text, events, excuse)
    if not any(transactions.sources.values()):
        return
    for value, (key, index) in at_end.items():
        if transactions.sources[value] == NO_SOURCE and value not in copies:
            text = f"value {value} can be read at the end, and no copy of it"
            yield Finding(Anomaly.LOST_INPUT, *key, None, text, ledger.events(index), excuse)
