"""Which partitions are read, what of them is in the program's hands, and what it is done with.

    assigned ──> take ──> hand_batch | hand_records ──> settle ──> committable
             <── revoked

It is told by a program that assigns partitions itself, or by a group's membership: `assigned` and `revoked` do not
know the difference. Everything happens between two awaits; who has to wait does that at the fetcher.

What is done. `settle` says that the program asks for more: what it had in hand is done then, unless `manual_done`.
Records that an `async for` has been given are counted by how far their list has been walked, so none of them costs a
call: `_take_back` ends the list and keeps its rest when a partition is paused, moved or taken away.

Order within a partition: what was put back, then what the fetcher has.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from operator import length_hint
from typing import Final

from odradek.client.consumer.deserialization import Deserialization, DeserializationError
from odradek.client.consumer.done_offsets import Committable, DoneOffsets
from odradek.client.consumer.errors import NotAssigned, PositionMissing
from odradek.client.consumer.records import ConsumerRecord, PartitionRecords
from odradek.client.errors.base import ClientError
from odradek.client.fetching.fetch_settings import Start
from odradek.client.fetching.fetcher import Fetcher
from odradek.client.topic_partition import TopicPartition

__all__ = ["RUN_RECORDS", "ConsumerCore"]

RUN_RECORDS: Final = 1_000
"""So many records are decoded together, as far as an answer has them; then the loop has its turn."""


class _Hand:
    """What the program has been given last. `iterator` walks the records of the only part, where there is one."""

    __slots__ = ("iterator", "parts")

    def __init__(self, parts: list[PartitionRecords], iterator: Iterator[ConsumerRecord] | None = None) -> None:
        self.parts = parts
        self.iterator = iterator

    @property
    def given_count(self) -> int:
        """How many records of the only part the program has got."""
        assert self.iterator is not None
        return len(self.parts[0]) - length_hint(self.iterator)


class ConsumerCore:
    """See the module."""

    def __init__(self, fetcher: Fetcher, deserialization: Deserialization, *, manual_done: bool) -> None:
        self.done: Final = DoneOffsets()
        self._fetcher = fetcher
        self._deserialization = deserialization
        self._manual_done = manual_done
        self._assigned: dict[TopicPartition, object] = {}
        """With a mark of its own for each time that it was assigned."""
        self._paused: set[TopicPartition] = set()
        self._held: set[TopicPartition] = set()
        """Partitions of which a group's membership has nothing handed out for the time being."""
        self._placeless: set[TopicPartition] = set()
        """Partitions that are to be read from nowhere, before a seek."""
        self._unplaced: set[TopicPartition] = set()
        """Partitions for which it is being looked up where they begin."""
        self._bad: dict[TopicPartition, DeserializationError] = {}
        """Partitions that stand before a record that cannot be read."""
        self._left: dict[TopicPartition, deque[PartitionRecords]] = {}
        """Decoded, and not handed out."""
        self._hand: _Hand | None = None
        self._walks: dict[TopicPartition, _Hand] = {}
        """Records of single partitions that are walked by themselves, and done one by one."""
        self.taken_away: set[TopicPartition] = set()
        """Partitions that were taken away while the program had records of them in hand, which it still has; where it
        is bound, in work."""
        self.has_handed_out = False
        self._is_bound = False
        self._left_behind: set[TopicPartition] = set()
        """Where it is bound: partitions whose records are in work, and that were sought elsewhere since."""
        self._block: ClientError | None = None
        """Why nothing is handed out at all."""
        self._failure: ClientError | None = None
        """What is raised when the program asks next."""
        self._taken_count = 0
        self._walked_count = 0
        """Records that were walked, in walks that have been cut."""

    # ------------------------------------------------------------------------------------------------- what is read
    @property
    def partitions(self) -> frozenset[TopicPartition]:
        return frozenset(self._assigned)

    @property
    def paused(self) -> frozenset[TopicPartition]:
        return frozenset(self._paused)

    def assigned(self, partitions: Iterable[TopicPartition], positions: Mapping[TopicPartition, Start]) -> None:
        """Reads these, too; from `positions`, or where `auto_offset_reset` says. One that is read begins again."""
        for partition in partitions:
            self._paused.discard(partition)
            self._assigned[partition] = object()
            self._place(partition, positions.get(partition))
        self._fetcher.wake()

    def assigned_unplaced(self, partitions: Iterable[TopicPartition]) -> None:
        """Reads these, too, once `place` or `seek` has said where they begin."""
        for partition in partitions:
            self._paused.discard(partition)
            self._assigned[partition] = object()
            self._forget(partition)
            self._fetcher.release(partition)
            self._unplaced.add(partition)
            self.done.assigned(partition)
        self._fetcher.wake()

    def place(self, partition: TopicPartition, start: Start | None) -> None:
        """An unplaced partition begins there; None: where `auto_offset_reset` says."""
        assert partition in self._unplaced
        self._place(partition, start)
        self._fetcher.wake()

    def is_unplaced(self, partition: TopicPartition) -> bool:
        """Whether it still waits for `place`: the program may have sought to an offset, or it is not assigned."""
        return partition in self._unplaced

    def revoked(self, partitions: Iterable[TopicPartition]) -> None:
        """Reads these no more. What the program has in hand of them does not become done."""
        for partition in partitions:
            if self._assigned.pop(partition, None) is not None:
                if self._is_in_hand(partition):
                    self.taken_away.add(partition)
                self._forget(partition)
                self._paused.discard(partition)
                self._held.discard(partition)
                self._fetcher.release(partition)
                self.done.revoked(partition)
        self._fetcher.wake()

    def token(self, partition: TopicPartition) -> object | None:
        """What this assignment of it can be told by; None: it is not assigned."""
        return self._assigned.get(partition)

    def seek(self, partition: TopicPartition, start: Start) -> None:
        """Goes on at another place. Raises NotAssigned."""
        self._require(partition)
        if self._is_bound and self._is_in_hand(partition):
            self._left_behind.add(partition)
        self._place(partition, start)

    def pause(self, partition: TopicPartition) -> None:
        """Hands nothing more out of it. Raises NotAssigned."""
        self._require(partition)
        self._paused.add(partition)
        self._withhold(partition)

    def resume(self, partition: TopicPartition) -> None:
        """Ends `pause`. Raises NotAssigned."""
        self._require(partition)
        self._paused.discard(partition)
        self._give_free(partition)

    def hold(self, partitions: Iterable[TopicPartition]) -> None:
        """Hands nothing more out of these, whatever the program pauses and resumes, until `let_go` or `revoked`."""
        for partition in self._assigned.keys() & set(partitions):
            self._held.add(partition)
            self._withhold(partition)

    def let_go(self, partitions: Iterable[TopicPartition]) -> None:
        """Ends `hold`."""
        for partition in self._held & set(partitions):
            self._held.discard(partition)
            self._give_free(partition)

    def in_work_count(self, partition: TopicPartition) -> int:
        """How many records of a held partition the program has got and is not done with."""
        left = sum(map(len, self._left.get(partition, ())))
        return self.done.pending_count(partition) - left + (partition in self._left_behind)

    @property
    def progress(self) -> tuple[int, int]:
        """Something else whenever the program has taken something."""
        walks = [walk for walk in (self._hand, *self._walks.values()) if walk is not None and walk.iterator is not None]
        return self._taken_count, self._walked_count + sum(walk.given_count for walk in walks)

    def position(self, partition: TopicPartition) -> int:
        """The offset of the record that is handed out next; -1: it is not known yet. Raises NotAssigned."""
        self._require(partition)
        for walk in (self._hand, self._walks.get(partition)):
            if walk is not None and walk.iterator is not None and walk.parts[0].partition == partition:
                given = walk.given_count
                if given < len(walk.parts[0]):
                    return walk.parts[0].offsets[given]
        if left := self._left.get(partition):
            return left[0].offsets[0]
        if (bad := self._bad.get(partition)) is not None:
            return bad.offset
        return self._fetcher.position(partition) if self._is_fetched(partition) else -1

    def wake(self) -> None:
        """Has all who wait for records look again."""
        self._fetcher.wake()

    # ----------------------------------------------------------------------------------------------- in transactions
    def bind(self) -> None:
        """From now on what is handed out is in work until a transaction has committed it, whatever is asked or done."""
        self._is_bound = self._manual_done = True

    def transaction_ended(self) -> None:
        """Nothing is in work any more but what is not committed, and it does not matter what was taken away."""
        self._left_behind.clear()
        self.taken_away.clear()
        self._block = None
        self._fetcher.wake()

    def block(self, error: ClientError) -> None:
        """Until the transaction has ended, hands nothing out, not even of what the program walks, and raises this error
        instead."""
        self._block = error
        self._cut_hand()
        for partition in list(self._walks):
            self._cut(partition)
        self._fetcher.wake()

    def unplace(self) -> dict[TopicPartition, Start]:
        """Drops all that was fetched and handed out. What was being read waits for `place`, as if it was assigned anew.

        Returns where the first record was that was in work, or else the next one, as far as that is known.
        """
        starts: dict[TopicPartition, Start] = {}
        for partition in self._assigned.keys() - self._unplaced:
            committable = self.committable_of(partition)
            self._assigned[partition] = object()
            self._forget(partition)
            self._fetcher.release(partition)
            self._unplaced.add(partition)
            self.done.assigned(partition)
            if committable is not None:
                starts[partition] = Start.at_offset(*committable)
        self._failure = None
        self._fetcher.wake()
        return starts

    # -------------------------------------------------------------------------------------------------- handing out
    def take(self, count_max: int, partition: TopicPartition | None = None) -> PartitionRecords | None:
        """The next records of one partition, of this one if it is given; None: they have to be waited for.

        Raises the ClientError that ends a partition, once, and what `PositionMissing` and DeserializationError say.
        """
        if self._block is not None:
            raise self._block.fresh()
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure
        self._taken_count += 1
        found = self._take_left(partition)
        if found is None:
            found = self._take_fetched(partition)
        if found is not None and len(found) > count_max:
            found, rest = found.split(count_max)
            self._put_back(rest)
        return found

    def gather(self, count_max: int) -> list[PartitionRecords]:
        """What is there of all partitions, up to so many records. Raises as `take`, if there is nothing before it."""
        parts: list[PartitionRecords] = []
        left = count_max
        while left:
            try:
                part = self.take(left)
            except ClientError as error:
                if not parts:
                    raise
                self._failure = error
                break
            if part is None:
                break
            parts.append(part)
            left -= len(part)
        return parts

    def hand_batch(self, parts: list[PartitionRecords]) -> None:
        """The program gets all of these."""
        self._hand = _Hand(parts)
        self.has_handed_out = self.has_handed_out or bool(parts)

    def hand_records(self, part: PartitionRecords) -> Iterator[ConsumerRecord]:
        """The program gets these one by one."""
        iterator = iter(part.records())
        self._hand = _Hand([part], iterator)
        self.has_handed_out = True
        return iterator

    def walk_records(self, part: PartitionRecords) -> Iterator[ConsumerRecord]:
        """The same, of one partition beside others: these are done one by one."""
        iterator = iter(part.records())
        self._walks[part.partition] = _Hand([part], iterator)
        self.has_handed_out = True
        return iterator

    def settle(self) -> None:
        """The program asks for more, so it is done with what it has."""
        self._cut_hand()
        if not self._is_bound:
            self.taken_away.clear()
        hand, self._hand = self._hand, None
        if hand is None or self._manual_done:
            return
        for part in hand.parts:
            self.done.done_below(part.partition, part.next_offset)

    def committable(self) -> dict[TopicPartition, Committable]:
        """What may be committed now, of every partition whose beginning is known."""
        hand = self._hand
        if hand is not None and hand.iterator is not None:
            self._count_walked(hand)
        found = {partition: self.committable_of(partition) for partition in self._assigned}
        return {partition: offset for partition, offset in found.items() if offset is not None}

    def committable_of(self, partition: TopicPartition) -> Committable | None:
        """The same of one partition, without what is being walked; None: it is not known where that begins."""
        if self._is_fetched(partition):
            self.done.passed(partition, self._fetcher.position(partition))  # all below has been decoded
        return self.done.committable(partition)

    def handed_out(self) -> dict[TopicPartition, Committable]:
        """Where the program goes on, of every partition whose position is known: what it has got so far is before."""
        epochs = {} if self._hand is None else {part.partition: part.leader_epoch for part in self._hand.parts}
        found: dict[TopicPartition, Committable] = {}
        for partition in self._assigned:
            offset = self.position(partition)
            done = self.done.committable(partition)
            epoch = done.leader_epoch if done is not None and done.offset == offset else -1
            if offset >= 0:
                found[partition] = Committable(offset, epochs.get(partition, epoch))
        return found

    def close(self) -> None:
        """Hands nothing more out."""
        self._cut_hand()
        for partition in list(self._walks):
            self._cut(partition)
        self._left.clear()

    # ------------------------------------------------------------------------------------------------------- within
    def _require(self, partition: TopicPartition) -> None:
        if partition not in self._assigned:
            raise NotAssigned(partition)

    def _is_fetched(self, partition: TopicPartition) -> bool:
        return partition not in self._placeless and partition not in self._unplaced and partition not in self._bad

    def _is_in_hand(self, partition: TopicPartition) -> bool:
        if self._is_bound:
            self._cut(partition)
            return self.in_work_count(partition) > 0
        return self._hand is not None and any(part.partition == partition for part in self._hand.parts)

    def _is_withheld(self, partition: TopicPartition) -> bool:
        return partition in self._paused or partition in self._held

    def _withhold(self, partition: TopicPartition) -> None:
        self._cut(partition)
        if self._is_fetched(partition):
            self._fetcher.pause(partition)

    def _give_free(self, partition: TopicPartition) -> None:
        if not self._is_withheld(partition) and self._is_fetched(partition):
            self._fetcher.resume(partition)
        self._fetcher.wake()

    def _place(self, partition: TopicPartition, start: Start | None) -> None:
        self._forget(partition)
        if start is None:
            policy = self._fetcher.settings.auto_offset_reset
            if policy == "none":
                self._placeless.add(partition)
                self._fetcher.release(partition)
                self.done.assigned(partition)
                return
            start = Start.earliest() if policy == "earliest" else Start.latest()
        self._fetcher.assign(partition, start)
        if self._is_withheld(partition):
            self._fetcher.pause(partition)
        self.done.assigned(partition, -1 if start.offset is None else start.offset, start.leader_epoch)

    def _forget(self, partition: TopicPartition) -> None:
        """Drops what is in hand or decoded of it."""
        self._cut(partition)
        if self._hand is not None:
            self._hand.parts = [part for part in self._hand.parts if part.partition != partition]
        self._left.pop(partition, None)
        self._bad.pop(partition, None)
        self._placeless.discard(partition)
        self._unplaced.discard(partition)

    def _cut(self, partition: TopicPartition) -> None:
        """Takes back what the program has not got yet of the records of a partition that it walks."""
        if (walk := self._walks.pop(partition, None)) is not None:
            self._take_back(walk)
        if self._hand is not None and self._hand.parts and self._hand.parts[0].partition == partition:
            self._cut_hand()

    def _cut_hand(self) -> None:
        hand = self._hand
        if hand is not None and hand.iterator is not None:
            self._count_walked(hand)
            self._take_back(hand)

    def _take_back(self, walk: _Hand) -> None:
        assert walk.iterator is not None
        (part,) = walk.parts
        given = walk.given_count
        self._walked_count += given
        if given < len(part):
            deque(walk.iterator, maxlen=0)  # the walk ends here
            part, rest = part.split(given)
            self._put_back(rest)
        walk.parts, walk.iterator = [part], None

    def _count_walked(self, hand: _Hand) -> None:
        """Of what the program walks, all is done but the record that it has got last."""
        (part,) = hand.parts
        if not self._manual_done and (given := hand.given_count):
            self.done.done_below(part.partition, part.offsets[given - 1])

    def _put_back(self, rest: PartitionRecords) -> None:
        self._left.setdefault(rest.partition, deque()).appendleft(rest)

    def _take_left(self, partition: TopicPartition | None) -> PartitionRecords | None:
        for each, left in self._left.items():
            if partition in (None, each) and not self._is_withheld(each):
                found = left.popleft()
                if not left:
                    del self._left[each]
                return found
        return None

    def _take_fetched(self, partition: TopicPartition | None) -> PartitionRecords | None:
        while True:
            self._check_places(partition)
            if self._fetcher.is_packed(partition):
                return None
            taken = self._fetcher.take_columns(partition, RUN_RECORDS)
            if taken is None:
                return None
            found, bad = self._deserialization.read(taken)
            if bad is not None:
                self._bad[taken.partition] = bad
                self._fetcher.release(taken.partition)
            elif found is None:
                self.done.passed(taken.partition, taken.next_offset)
            if found is not None:
                self.done.handed_out(found.partition, found.offsets, found.next_offset, found.leader_epoch)
                return found

    def _check_places(self, partition: TopicPartition | None) -> None:
        """Raises what keeps partitions from being read until the program seeks."""
        for each in self._placeless:
            if partition in (None, each) and not self._is_withheld(each):
                raise PositionMissing(each)
        for each, bad in self._bad.items():
            if partition in (None, each) and not self._is_withheld(each):
                raise bad.fresh()
