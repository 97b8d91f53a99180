"""`uniform`, where members have different subscriptions. Pure. Rules: Kafka's UniformHeterogeneousAssignmentBuilder.

Three steps: members keep what they have and still subscribe to; what is unassigned goes to the subscriber with the
fewest partitions; then partitions move, topic by topic, from the subscriber with the most partitions to the one with
the fewest, for as long as these differ by more than one. Afterwards no single move improves the balance, unless the
rounds ended first. Where two topics share only some of their subscribers, a chain of moves might; Kafka accepts that,
too.
"""

import heapq

from odradek.broker.group.assignors.audiences import audiences
from odradek.broker.group.assignors.spec import GroupSpec, Partitions

ROUNDS_MAX = 16
"""Over all topics. Each round about halves what is out of balance; nearly always the second one finds nothing."""
NOBODY = -1


def assign_heterogeneous(spec: GroupSpec) -> dict[str, Partitions]:
    return _Balance(spec).assign()


class _Balance:
    """An assignment in the making. Members are named by their place in the group."""

    __slots__ = ("_audiences", "_counts", "_even", "_members", "_owners", "_sizes", "_topics")

    def __init__(self, spec: GroupSpec) -> None:
        self._members = list(spec.members.items())
        self._counts = spec.partition_counts
        self._sizes = [0] * len(self._members)
        self._audiences = audiences([member.topics for _, member in self._members])
        self._owners = {topic_id: [NOBODY] * self._counts[topic_id] for topic_id in self._audiences}
        self._topics = sorted(self._audiences, key=self._rank)
        self._even: set[int] = set()
        """The `id` of audiences that no move can make more even, as long as nothing moves elsewhere."""

    def _rank(self, topic_id: bytes) -> tuple[float, int, bytes]:
        """Topics with many partitions for each subscriber come first: those with few can still even things out."""
        subscribers = len(self._audiences[topic_id])
        return (-self._counts[topic_id] / subscribers, subscribers, topic_id)

    def assign(self) -> dict[str, Partitions]:
        self._keep_assigned()
        self._assign_free()
        contested = [topic_id for topic_id in self._topics if len(self._audiences[topic_id]) > 1]
        for _ in range(ROUNDS_MAX):
            moved = [self._balance(topic_id) for topic_id in contested]
            if not any(moved):
                break
        return self._assignment()

    def _keep_assigned(self) -> None:
        for place, (_, member) in enumerate(self._members):
            for topic_id, partitions in member.assigned.items():
                if topic_id not in member.topics:
                    continue
                owners = self._owners[topic_id]
                for partition in partitions:
                    if partition < len(owners) and owners[partition] == NOBODY:
                        owners[partition] = place
                        self._sizes[place] += 1

    def _assign_free(self) -> None:
        """Topics with one audience mostly stand together, and share a heap."""
        heap: list[tuple[int, int]] = []
        of: tuple[int, ...] | None = None
        for topic_id in self._topics:
            owners = self._owners[topic_id]
            free = [partition for partition, owner in enumerate(owners) if owner == NOBODY]
            if free and of is not self._audiences[topic_id]:
                of = self._audiences[topic_id]
                heap = [(self._sizes[place], place) for place in of]
                heapq.heapify(heap)
            for partition in free:
                size, place = heap[0]
                heapq.heapreplace(heap, (size + 1, place))
                owners[partition] = place
                self._sizes[place] += 1

    def _balance(self, topic_id: bytes) -> bool:
        """Says whether a partition has moved.

        A heap may understate a member that has received, and overstate one that has given. Neither matters: who
        receives has the fewest and who gives has the most, so both stay between the two ends.
        """
        audience = self._audiences[topic_id]
        if id(audience) in self._even:
            return False
        sizes = [self._sizes[place] for place in audience]
        if max(sizes) - min(sizes) <= 1:
            self._even.add(id(audience))
            return False
        owned: dict[int, list[int]] = {}
        for partition, owner in enumerate(self._owners[topic_id]):
            owned.setdefault(owner, []).append(partition)
        givers = [(-self._sizes[place], place) for place in owned]
        receivers = list(zip(sizes, audience, strict=True))
        heapq.heapify(givers)
        heapq.heapify(receivers)
        moved = False
        while givers and -givers[0][0] - receivers[0][0] > 1:
            giver, receiver = givers[0][1], receivers[0][1]
            self._owners[topic_id][owned[giver].pop()] = receiver
            self._sizes[giver] -= 1
            self._sizes[receiver] += 1
            heapq.heapreplace(receivers, (self._sizes[receiver], receiver))
            if owned[giver]:
                heapq.heapreplace(givers, (-self._sizes[giver], giver))
            else:
                heapq.heappop(givers)
            moved = True
        if moved:
            self._even.clear()
        return moved

    def _assignment(self) -> dict[str, Partitions]:
        lists: list[dict[bytes, list[int]]] = [{} for _ in self._members]
        for topic_id, owners in self._owners.items():
            for partition, owner in enumerate(owners):
                lists[owner].setdefault(topic_id, []).append(partition)
        return {
            member_id: {topic_id: frozenset(partitions) for topic_id, partitions in lists[place].items()}
            for place, (member_id, _) in enumerate(self._members)
        }
