"""The acknowledgements of records that were sent in bulk.

Records are accepted in runs that lie in one batch each, so a run is what is kept, not a record. Where they were not
accepted in the order in which they were given (they are grouped by partition), the order is kept beside the runs and
reversed when somebody asks for a record by its index.
"""

from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import overload

from odradek.client.errors.client_errors import ClientError
from odradek.client.producer.results.produce_results import Ack, ProduceResult, all_ended


class BulkAcks(Sequence[Ack]):
    """The acknowledgements of a bulk, in the order in which its records were given; each is made when it is asked for.

    An index raises the error of a record that failed or was not accepted.
    """

    __slots__ = ("_accepted", "_accepted_count", "_ends", "_order", "_refused", "_runs", "given")

    def __init__(self) -> None:
        self.given = 0
        self._runs: list[tuple[ProduceResult, int]] = []  # runs of accepted records: their batch, where it begins there
        self._ends: list[int] = []  # how many were accepted with that run
        self._accepted_count = 0
        self._accepted: array[int] | None = None  # which record was accepted when, if not all in the given order
        self._order: array[int] | None = None  # the reverse of it
        self._refused: dict[int, ClientError] = {}

    def __len__(self) -> int:
        return self.given

    @overload
    def __getitem__(self, index: int) -> Ack: ...
    @overload
    def __getitem__(self, index: slice) -> list[Ack]: ...
    def __getitem__(self, index: int | slice) -> Ack | list[Ack]:
        if isinstance(index, slice):
            return [self[each] for each in range(*index.indices(self.given))]
        if not -self.given <= index < self.given:
            raise IndexError(f"record {index} of {self.given}")
        index %= self.given
        error = self._refused.get(index)
        if error is not None:
            raise error.fresh()
        place = index if self._accepted is None else self._place(index)
        assert place < self._accepted_count, f"record {index} was neither accepted nor refused"
        run = bisect_right(self._ends, place)
        result, start = self._runs[run]
        begin = self._ends[run - 1] if run else 0
        result, position = result.locate(start + place - begin)
        return result.ack(position)

    def __repr__(self) -> str:
        return f"<Acks of {self.given} records>"

    def add(self, result: ProduceResult, start: int, indexes: Sequence[int]) -> None:
        """The records with these indexes, which rise, were accepted in this batch, from `start` on."""
        is_next = indexes[0] == self._accepted_count and _is_run(indexes)
        if self._accepted is None and not is_next:
            self._accepted = array("Q", range(self._accepted_count))
        if self._accepted is not None:
            self._accepted.extend(indexes)
            self._order = None
        self._accepted_count += len(indexes)
        if self._runs and self._runs[-1][0] is result:
            first, begin = self._runs[-1][1], self._ends[-2] if len(self._ends) > 1 else 0
            if first + self._ends[-1] - begin == start:
                self._ends[-1] = self._accepted_count
                return
        self._runs.append((result, start))
        self._ends.append(self._accepted_count)

    def refuse(self, index: int, error: ClientError) -> None:
        """The record was not accepted."""
        self._refused[index] = error

    async def ended(self) -> None:
        """Returns when every accepted record has ended."""
        if self._runs:
            await all_ended(self._runs[0][0].owner, [(result, positions) for result, positions, _ in self._placed()])

    def errors(self) -> dict[int, ClientError]:
        """The error of each record that failed or was refused, by index. All of them count as looked at."""
        failed = dict(self._refused)
        for result, positions, begin in self._placed():
            if result.error is None and result.parts is None:
                continue  # a whole batch without errors, as most are
            for place, position in enumerate(positions, begin):
                part, part_position = result.locate(position)
                error = part.error_of(part_position)
                if error is not None:
                    failed[place if self._accepted is None else self._accepted[place]] = error
        return dict(sorted(failed.items()))

    def _placed(self) -> Iterator[tuple[ProduceResult, range, int]]:
        """Of each run: its batch, its positions there, and how many records were accepted before it."""
        begin = 0
        for (result, start), end in zip(self._runs, self._ends, strict=True):
            yield result, range(start, start + end - begin), begin
            begin = end

    def _place(self, index: int) -> int:
        assert self._accepted is not None
        if self._order is None:
            self._order = array("Q", (self._accepted_count,)) * self.given
            for place, accepted in enumerate(self._accepted):
                self._order[accepted] = place
        return self._order[index]


def _is_run(indexes: Sequence[int]) -> bool:
    """Whether rising indexes leave none out."""
    return indexes[-1] - indexes[0] == len(indexes) - 1
