"""A consumer group under test: its members, each a client in a thread of its own, what they read and what is committed.

    with Group(bootstrap, "billing", partitions=6, replicas=1) as group:
        one, two = group.join(aiokafka), group.join(kafka_python)  # clients of group_clients.py
        group.until_balanced()                                     # each partition has one owner
        group.write(60)
        group.until_committed()                                    # all is read, and the ends are committed
        group.leave(one)

Waits are bounded, and fail with what the members own and have read.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from contextlib import closing
from types import TracebackType
from typing import Final, Self

from kafka import KafkaProducer
from kafka.admin import KafkaAdminClient

from tests.compat.groups_at import committed, described

PATIENCE_S: Final = 90.0
PAUSE_S: Final = 0.02
STOP_S: Final = 20.0


class Member:
    """Takes part until `stop`: then a dynamic member leaves the group, and a static one only ends."""

    def __init__(self, client: "Client", bootstrap: str, group_id: str, instance_id: str | None) -> None:
        """The topic has the group's name."""
        self.bootstrap, self.group_id, self.instance_id = bootstrap, group_id, instance_id
        self.values: list[bytes] = []
        self.owned: set[int] = set()
        self.revocations = 0
        """How often it gave partitions up."""
        self.is_stopping = threading.Event()
        self._client = client
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=client.__name__, daemon=True)
        self._thread.start()

    def __repr__(self) -> str:
        return f"{self._client.__name__} with {sorted(self.owned)}"

    def stop(self) -> None:
        """Waits until it has ended. Raises what it failed with."""
        self.is_stopping.set()
        self._thread.join(STOP_S)
        assert not self._thread.is_alive(), f"{self} did not stop within {STOP_S} s"
        self.look()

    def look(self) -> None:
        """Raises what it failed with."""
        if self._failure is not None:
            raise AssertionError(f"{self} failed: {self._failure!r}") from self._failure

    # -- what its client tells ----------------------------------------------------------------------------------------

    def assigned(self, partitions: Iterable[int]) -> None:
        self.owned |= {*partitions}

    def revoked(self, partitions: Iterable[int]) -> None:
        given_up = {*partitions}
        self.owned -= given_up
        self.revocations += bool(given_up)

    def _run(self) -> None:
        try:
            self._client(self)
        except BaseException as failure:  # noqa: BLE001 - it is raised in the test's thread
            self._failure = failure


Client = Callable[[Member], None]


class Group:
    """All members, also those that have left, and the records that were written for them."""

    def __init__(self, bootstrap: str, group_id: str, partitions: int, replicas: int) -> None:
        """Creates the topic, which has the group's name."""
        self._bootstrap, self._group_id = bootstrap, group_id
        self._present: list[Member] = []
        self._gone: list[Member] = []
        self._ends = dict.fromkeys(range(partitions), 0)
        self._written: set[bytes] = set()
        with closing(KafkaAdminClient(bootstrap_servers=bootstrap)) as admin:
            admin.create_topics({group_id: {"num_partitions": partitions, "replication_factor": replicas}})

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """All members stop. One that fails then is told of unless something else went wrong already."""
        for member in self._present:
            member.is_stopping.set()
        for member in self._present:
            if kind is None:
                member.stop()

    def join(self, client: Client, instance_id: str | None = None) -> Member:
        """Returns before it has joined."""
        member = Member(client, self._bootstrap, self._group_id, instance_id)
        self._present.append(member)
        return member

    def leave(self, member: Member) -> None:
        self._present.remove(member)
        self._gone.append(member)
        member.stop()

    def write(self, count: int) -> None:
        """Values that nobody has written before, to the partitions in turn."""
        with closing(KafkaProducer(bootstrap_servers=self._bootstrap, acks="all")) as producer:
            for _ in range(count):
                number = len(self._written)
                value, partition = b"%d" % number, number % len(self._ends)
                producer.send(self._group_id, value, partition=partition)
                self._written.add(value)
                self._ends[partition] += 1
            producer.flush()

    def read(self) -> Counter[bytes]:
        """How often each value was read, by any member."""
        return Counter(value for member in (*self._present, *self._gone) for value in member.values)

    # -- until --------------------------------------------------------------------------------------------------------

    def until_balanced(self) -> None:
        """Each partition has one owner, and each member has partitions."""
        self._until(self._is_balanced, "balance")

    def until_committed(self) -> None:
        """Every record is read, and what is committed are the ends."""
        self._until(lambda: self.read().keys() == self._written, "end of reading")
        self.until_committed_in(self._ends)

    def until_committed_in(self, partitions: Collection[int]) -> None:
        """What is committed are the ends, in these partitions."""
        self._until(lambda: self._lag().isdisjoint(partitions), f"end of committing in {sorted(partitions)}")

    def _lag(self) -> set[int]:
        """The partitions where it is not so."""
        offsets = committed(self._bootstrap, self._group_id)
        return {partition for partition, end in self._ends.items() if offsets.get(partition, 0) != end}

    def _is_balanced(self) -> bool:
        owned = sorted(partition for member in self._present for partition in member.owned)
        return owned == sorted(self._ends) and all(member.owned for member in self._present)

    def _until(self, is_so: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not is_so():
            for member in self._present:
                member.look()
            assert time.monotonic() < deadline, (
                f"no {what} of {self._group_id} in {PATIENCE_S} s: {self._present}, read "
                f"{len(self.read())} of {len(self._written)}, ends {self._ends}; the broker has "
                f"{described(self._bootstrap, self._group_id)}"
            )
            time.sleep(PAUSE_S)  # between two looks
