"""Long histories of clients that come, go, are silent and are refused, over a log that refuses and is loaded again.

one generation at a time; it never goes back while one broker leads, and never in the log
at most one leader's assignments are told in a generation
nobody waits for ever: once all deadlines have passed, every request has been answered, and the group is empty
a stable group is what a load of its record makes
"""

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from odradek.broker.group.classic.description import GroupDescription
from odradek.broker.group.classic.group import ClassicGroup
from odradek.broker.group.classic.requests import Joined, Synced
from odradek.broker.group.classic.states import ClassicState
from odradek.protocol.errors import ErrorCode
from tests.broker.group.classic.groups import Asked, Stage, offers, value_of

PROTOCOLS = [offers("range"), offers("range", "sticky"), offers("sticky", "range", metadata=b"\0"), offers("sticky")]
clients = st.integers(0, 5)
ENDS = st.sampled_from(["commit", "refuse", "refuse older"])
ACTIONS = ["sync", "sync", "start again", "join", "leave", "heartbeat"]


class Client:
    """What one of the members knows."""

    def __init__(self, instance_id: str | None) -> None:
        self.instance_id = instance_id
        self.member_id = ""
        self.join: Asked[Joined] | None = None

    def learn(self) -> None:
        """Its member id, or that it has none any more."""
        if self.joined is not None:
            self.member_id = self.joined.member_id
        elif self.join is not None and self.join.is_answered:
            self.member_id = ""

    def has_to_join(self, group: ClassicGroup) -> bool:
        """It is not told the current generation, and does not wait for the next one."""
        if self.join is not None and not self.join.is_answered:
            return False
        is_preparing = group.state is ClassicState.PREPARING_REBALANCE
        return is_preparing or self.joined is None or self.joined.generation != group.generation

    @property
    def joined(self) -> Joined | None:
        """The last answer; None: there is none, or it was an error."""
        return self.join.answer if self.join is not None and self.join.error is ErrorCode.NONE else None


class GroupHistory(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.stage = Stage(group_initial_rebalance_delay_ms=1_000)
        self.clients = [Client(None if number < 3 else f"static-{number}") for number in range(6)]
        self.asked: list[Asked[Any]] = []
        self.syncs: list[tuple[int, Asked[Synced]]] = []
        self.joins: list[Asked[Joined]] = []
        self.generation = 0
        self.stored_generation = self.stored_count = 0
        self.assignment_count = 0

    # -- clients ----------------------------------------------------------------------------------------------------

    @rule(number=clients, protocols=st.sampled_from(PROTOCOLS), requires_id=st.booleans(), skips=st.booleans())
    def join(self, number: int, protocols: Any, requires_id: bool, skips: bool) -> None:
        client = self.clients[number]
        client.learn()
        client.join = self.stage.join(
            client.member_id,
            client.instance_id,
            protocols=protocols,
            requires_known_member_id=requires_id,
            supports_skip_assignment=skips,
            rebalance_timeout_ms=20_000 + number,
            session_timeout_ms=30_000,
        )
        self.asked.append(client.join)
        self.joins.append(client.join)

    @rule(number=clients)
    def forget_its_id(self, number: int) -> None:
        """The client starts again."""
        self.clients[number] = Client(self.clients[number].instance_id)

    @rule(number=clients)
    def sync(self, number: int) -> None:
        joined = self.clients[number].joined
        if joined is not None:
            self.assignment_count += 1
            mark = f"{self.assignment_count}".encode()
            assignments = {each.member_id: mark for each in joined.members}
            synced = self.stage.sync(joined.member_id, joined.generation, assignments)
            self.asked.append(synced)
            self.syncs.append((joined.generation, synced))

    @rule(number=clients)
    def heartbeat(self, number: int) -> None:
        joined = self.clients[number].joined
        if joined is not None:
            self.asked.append(self.stage.ask_heartbeat(joined.member_id, joined.generation))

    @rule(number=clients)
    def leave(self, number: int) -> None:
        joined = self.clients[number].joined
        if joined is not None:
            self.asked.append(self.stage.leave(joined.member_id))

    @rule(numbers=st.sets(clients, min_size=1), protocols=st.sampled_from(PROTOCOLS[:3]), knows=st.booleans())
    def join_together(self, numbers: set[int], protocols: Any, knows: bool) -> None:
        """They and those who have joined before join until they are told the same generation."""
        numbers = numbers | {number for number, client in enumerate(self.clients) if client.joined is not None}
        for _ in range(4):
            for number in sorted(numbers):
                if self.clients[number].has_to_join(self.stage.group):
                    self.join(number, protocols, knows, knows)
            self.stage.wait(1_000)

    @rule(numbers=st.sets(clients, min_size=1), protocols=st.sampled_from(PROTOCOLS[:3]), is_refused=st.booleans())
    def become_stable(self, numbers: set[int], protocols: Any, is_refused: bool) -> None:
        self.join_together(numbers, protocols, True)
        self.stage.hold()
        self.sync_together()
        if is_refused:
            self.stage.refuse()
        else:
            self.stage.commit()

    @rule()
    def sync_together(self) -> None:
        for number in reversed(range(6)):
            self.sync(number)

    @rule(number=clients)
    def start_again_and_join(self, number: int) -> None:
        self.forget_its_id(number)
        self.join(number, PROTOCOLS[1], True, number % 2 == 0)

    @rule(
        steps=st.lists(st.tuples(st.sampled_from(ACTIONS), clients), min_size=1, max_size=4),
        duration_ms=st.sampled_from([0, 0, 10_000]),
        end=ENDS,
    )
    def do_in_one_batch(self, steps: list[tuple[str, int]], duration_ms: int, end: str) -> None:
        self.stage.hold()
        for action, number in steps:
            match action:
                case "sync":
                    self.sync_together()
                case "start again":
                    self.start_again_and_join(number)
                case "join":
                    self.join(number, PROTOCOLS[number % 3], False, False)
                case "leave":
                    self.leave(number)
                case _:
                    self.heartbeat(number)
        self.stage.wait(duration_ms)
        self._end_batch(end)

    @precondition(lambda self: self.stage.group.state is ClassicState.STABLE)
    @rule(number=st.integers(3, 5), count=st.integers(1, 2), end=ENDS)
    def come_back(self, number: int, count: int, end: str) -> None:
        """A static client starts again, once or twice."""
        self.stage.hold()
        for _ in range(count):
            self.start_again_and_join(number)
        self._end_batch(end)

    def _end_batch(self, end: str) -> None:
        match end:
            case "commit":
                self.stage.commit()
            case "refuse":
                self.stage.refuse()
            case _:
                self.stage.refuse_older()

    # -- time, the log, other brokers -------------------------------------------------------------------------------

    @rule(duration_ms=st.sampled_from([0, 999, 1_000, 5_000, 20_005, 30_000]))
    def wait(self, duration_ms: int) -> None:
        self.stage.wait(duration_ms)

    @rule(count=st.sampled_from([4, 100, 100]))
    def allow_members(self, count: int) -> None:
        self.stage.options.group_max_size = count

    @rule(is_time=st.sampled_from([True, False, False]))
    def load_again(self, is_time: bool) -> None:
        if not is_time:
            return
        self.stage.reload()
        for client in self.clients:
            client.join = client.join if client.join is not None and client.join.is_answered else None
        for requests in (self.asked, self.joins):
            requests.clear()
        self.syncs = [pair for pair in self.syncs if pair[1].is_answered]
        self.generation = 0

    # -- what must hold ---------------------------------------------------------------------------------------------

    @invariant()
    def the_generation_never_goes_back(self) -> None:
        assert self.stage.group.generation >= self.generation
        self.generation = self.stage.group.generation
        for record in self.stage.outbox.log[self.stored_count :]:
            value = value_of(record)
            assert value is not None
            assert value.generation >= self.stored_generation
            self.stored_generation = value.generation
        self.stored_count = len(self.stage.outbox.log)

    @invariant()
    def a_generation_has_one_protocol(self) -> None:
        protocols: dict[int, str | None] = {}
        for asked in self.joins:
            if asked.error is ErrorCode.NONE and asked.answer.error_code is ErrorCode.NONE:
                joined = asked.answer
                assert protocols.setdefault(joined.generation, joined.protocol_name) == joined.protocol_name

    @invariant()
    def a_generation_has_one_assignment(self) -> None:
        marks: dict[int, bytes] = {}
        for generation, asked in self.syncs:
            if asked.error is ErrorCode.NONE and asked.answer.assignment:
                mark = asked.answer.assignment
                assert marks.setdefault(generation, mark) == mark

    @invariant()
    def a_stable_group_is_what_its_record_says(self) -> None:
        if self.stage.group.state is not ClassicState.STABLE:
            return
        loaded = self.stage.new_group()
        loaded.replay(self.stage.stored())
        assert comparable(loaded.describe()) == comparable(self.stage.group.describe())
        assert loaded.subscribed_topics == self.stage.group.subscribed_topics

    @invariant()
    def there_is_a_leader_where_there_are_members(self) -> None:
        description = self.stage.group.describe()
        ids = [each.member_id for each in description.members]
        assert description.leader_id in (ids or [""])
        instances = [each.instance_id for each in description.members if each.instance_id is not None]
        assert len(set(instances)) == len(instances)
        if self.stage.group.is_empty:
            assert ids == []

    def teardown(self) -> None:
        self.stage.wait(1_000_000)
        assert [each for each in self.asked if not each.is_answered] == []
        assert self.stage.group.is_empty
        assert len(self.stage.timers) == 0


def comparable(description: GroupDescription) -> GroupDescription:
    """Without what is in no record."""
    members = tuple(each._replace(last_heard_ms=None) for each in description.members)
    return description._replace(members=members, rebalances=())


TestGroupHistory = GroupHistory.TestCase
TestGroupHistory.settings = settings(max_examples=120, stateful_step_count=30, deadline=None)
