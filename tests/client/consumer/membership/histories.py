"""Histories of a group, for Hypothesis: single steps of members and of what is between them and their coordinator."""

from collections.abc import Callable, Iterable

from hypothesis import strategies as st

from odradek.client.consumer.membership.membership import Membership
from tests.client.consumer.membership.member_world import Node, World

MEMBERS_MAX = 4
SETTLING_MS = 150_000
"""A few sessions and rebalance time-outs."""
NUMBERS = 20
SUBSCRIPTIONS = (("a",), ("a", "b"), ("a", "c"), ("b",))
Step = tuple[str, int, int]
"""What is done, to which member, and a number that chooses among more."""


class GroupWorld(World):
    """A world whose members come one after the other; `make(number)` makes the membership of the next one."""

    def fill(self, make: Callable[[int], Membership], expel: Callable[[str], None]) -> None:
        self._make = make
        self.expel = expel
        for _ in range(2):
            self.come()

    def come(self) -> None:
        if sum(not node.membership.has_ended for node in self.nodes) < MEMBERS_MAX:
            number = len(self.nodes)
            self.add(self._make(number), *SUBSCRIPTIONS[number % 2])

    def subscribe(self, node: Node, number: int) -> None:
        topics = SUBSCRIPTIONS[number % len(SUBSCRIPTIONS)] if number < NUMBERS - 2 else ()
        self.do(node, lambda member: member.subscribe(topics, self.now_ms))

    def exchange(self, node: Node, count: int) -> None:
        for _ in range(count):
            self.deliver(node)
            self.receive(node)

    def run(self, history: Iterable[Step]) -> None:
        for action, index, number in history:
            DEEDS[action](self, self.nodes[-1 - index % len(self.nodes)], number)
            self.check()

    def end(self) -> None:
        """Everybody reads something and is polled, and there are no more faults."""
        for node in self.nodes:
            node.is_polled = True
            self.do(node, lambda member: member.subscribe(member.watched_topics or ("a",), self.now_ms))
        self.settle(SETTLING_MS)
        self.check_settled()


DEEDS: dict[str, Callable[[GroupWorld, Node, int], object]] = {
    "nothing": lambda world, node, number: None,
    "deliver": lambda world, node, number: world.deliver(node),
    "receive": lambda world, node, number: world.receive(node, number),
    "exchange": lambda world, node, number: world.exchange(node, number % 4 + 1),
    "release": lambda world, node, number: world.release(node, None if number % 2 else 1),
    "pass": lambda world, node, number: world.pass_time((50, 500, 2_900, 4_000, 11_000)[number % 5]),
    "lose request": lambda world, node, number: world.lose_request(node),
    "lose answer": lambda world, node, number: world.lose_answer(node),
    "disconnect": lambda world, node, number: world.disconnect(node),
    "fail over": lambda world, node, number: world.fail_over(),
    "expel": lambda world, node, number: world.expel(node.membership.identity.member_id),
    "come": lambda world, node, number: world.come(),
    "leave": lambda world, node, number: world.do(node, lambda member: member.leave(world.now_ms)),
    "stall": lambda world, node, number: setattr(node, "is_polled", not node.is_polled),
    "subscribe": lambda world, node, number: world.subscribe(node, number),
}
USUAL = ["deliver", "receive", "exchange", "exchange", "release", "pass"]
RARE = [name for name in DEEDS if name not in (*USUAL, "nothing")]


def histories() -> st.SearchStrategy[list[Step]]:
    """In each history some of the rare steps are frequent, and the others do not happen."""

    def history(chosen: list[str]) -> st.SearchStrategy[list[Step]]:
        # Hypothesis shrinks to the first of each.
        actions = ["nothing", *USUAL, *USUAL, *chosen]

        def step(drawn: int) -> Step:
            """One number for all three: drawing is what takes the time here."""
            rest, number = divmod(drawn, NUMBERS)
            which, index = divmod(rest, MEMBERS_MAX)
            return actions[which], index, number

        return st.lists(st.integers(0, len(actions) * MEMBERS_MAX * NUMBERS - 1).map(step), min_size=20, max_size=80)

    return st.lists(st.sampled_from(RARE), max_size=4).flatmap(history)
