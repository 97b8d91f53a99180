"""In whatever order answers come, the newest truth wins, nothing in use is lost, and waits are told what they should.

A cluster whose topics are created, deleted, extended, closed to the client and led by others answers questions from any
of its past states, as a broker does that lags behind: in any order, late, in part, or never. A model of a few lines,
which keeps every answer ever given, says what the client must make of it. In the end the broker catches up, and after
a bounded number of questions the client knows the truth and asks no more.
"""

from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from odradek.client.cluster.metadata import Metadata, Question
from odradek.client.errors.client_errors import AuthorizationError
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.metadata import MetadataResponse, MetadataResponseTopic
from tests.client.metadata_answers import answer, failing, topic

NAMES = ("a", "b", "c")
MAX_IDLE_MS = 20_000
MAX_AGE_MS = 100_000
BACKOFF_MAX_MS = 1000
NODES = (1, 2, 3)

names = st.sampled_from(NAMES)


@dataclass(frozen=True)
class Topic:
    """A topic in the cluster: which creation of its name this is, leader and epoch by partition."""

    creation: int
    leaders: tuple[tuple[int, int], ...]

    @property
    def topic_id(self) -> bytes:
        return self.creation.to_bytes(16, "big")

    def led_by(self, nodes: frozenset[int]) -> "Topic":
        """The same without leaders that are none of these."""
        return Topic(self.creation, tuple((leader if leader in nodes else -1, epoch) for leader, epoch in self.leaders))


@dataclass(frozen=True)
class State:
    """What a broker may know: the topics by name, those closed to the client, and the brokers that are up."""

    topics: dict[str, Topic] = field(default_factory=dict[str, Topic])
    closed: frozenset[str] = frozenset()
    nodes: frozenset[int] = frozenset(NODES)

    def about(self, name: str) -> MetadataResponseTopic:
        if name in self.closed:
            return failing(name, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        if name not in self.topics:
            return failing(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        found = self.topics[name].led_by(self.nodes)
        return topic(name, *found.leaders, topic_id=found.topic_id)

    def answer_to(self, question: Question) -> MetadataResponse:
        nodes = sorted(self.nodes)
        return answer(*map(self.about, question.topics), brokers=nodes, controller_id=nodes[0] if nodes else -1)


@dataclass
class Use:
    """The model of a topic in use: when it began and was used last, and the answers about it, by version."""

    began: int
    used_at_ms: float
    wanted: int
    answers: dict[int, State] = field(default_factory=dict[int, State])
    known: Topic | None = None
    """What the answers add up to, with the newest epoch of each partition; kept while the topic seems to be gone."""

    def take(self, name: str, version: int, state: State) -> bool:
        """Whether the answer counts."""
        if version < max(self.answers, default=self.began):
            return False
        self.answers[version] = state
        if name in state.topics and name not in state.closed:
            self.known = _newest(self.known, state.topics[name].led_by(state.nodes))
        return True

    def lose_leaders(self, nodes: frozenset[int]) -> None:
        self.known = self.known and self.known.led_by(nodes)


def _newest(known: Topic | None, told: Topic) -> Topic:
    """Partition by partition, as long as it is the same topic."""
    if known is None or known.creation != told.creation:
        return told
    leaders = list(told.leaders)
    for index, before in enumerate(known.leaders):
        if index == len(leaders):
            leaders.append(before)
        elif before[1] > leaders[index][1]:
            leaders[index] = before
    return Topic(told.creation, tuple(leaders))


class MetadataModel(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.now_ms = 1000.0
        self.metadata = Metadata(
            max_age_ms=MAX_AGE_MS, max_idle_ms=MAX_IDLE_MS, retry_backoff_max_ms=BACKOFF_MAX_MS, random=lambda: 0.5
        )
        self.states = [State()]
        self.creations = 0
        self.questions: list[Question] = []
        # The model.
        self.uses: dict[str, Use] = {}
        self.closed_at_ms: dict[str, float] = {}
        self.nodes: tuple[int, frozenset[int]] = (0, frozenset())

    # ------------------------------------------------------------------------------------------ the cluster changes
    @property
    def state(self) -> State:
        return self.states[-1]

    def change(self, name: str, changed: Topic | None) -> None:
        topics = {each: found for each, found in self.state.topics.items() if each != name}
        if changed is not None:
            topics[name] = changed
        self.states.append(State(topics, self.state.closed, self.state.nodes))

    @initialize(
        counts=st.lists(st.integers(0, 2), min_size=len(NAMES), max_size=len(NAMES)),
        known=st.lists(names, max_size=3, unique=True),
    )
    def some_topics_are_there_and_known(self, counts: list[int], known: list[str]) -> None:
        for name, count in zip(NAMES, counts, strict=True):
            if count:
                self.create(name, count)
        if known:
            for name in known:
                self.use(name)
            self.take(self.metadata.next_question(self.now_ms), self.state)

    @rule(name=names, count=st.integers(1, 3))
    def create(self, name: str, count: int) -> None:
        """Or delete it and create it anew."""
        self.creations += 1
        self.change(name, Topic(self.creations, tuple((NODES[index % len(NODES)], 0) for index in range(count))))

    @rule(name=names)
    def delete(self, name: str) -> None:
        self.change(name, None)

    @rule(name=names)
    def add_partition(self, name: str) -> None:
        found = self.state.topics.get(name)
        if found is not None:
            self.change(name, Topic(found.creation, (*found.leaders, (1, 0))))

    @rule(name=names, leader=st.sampled_from((-1, *NODES)), index=st.integers(0, 2))
    def elect(self, name: str, leader: int, index: int) -> None:
        found = self.state.topics.get(name)
        if found is not None and index < len(found.leaders):
            leaders = list(found.leaders)
            leaders[index] = (leader, leaders[index][1] + 1)
            self.change(name, Topic(found.creation, tuple(leaders)))

    @rule(name=names)
    def close_or_open(self, name: str) -> None:
        self.states.append(State(self.state.topics, self.state.closed ^ {name}, self.state.nodes))

    @rule(node=st.sampled_from(NODES))
    def stop_or_start(self, node: int) -> None:
        self.states.append(State(self.state.topics, self.state.closed, self.state.nodes ^ {node}))

    # -------------------------------------------------------------------------------------------- the client works
    @rule(ms=st.sampled_from((1, 90, 500, 1500, 15_000)))
    def time_passes(self, ms: int) -> None:
        self.now_ms += ms

    @rule(name=names)
    def use(self, name: str) -> None:
        version = self.metadata.request_version
        self.metadata.use(name, self.now_ms)
        if name in self.uses:
            self.uses[name].used_at_ms = self.now_ms
        elif self.now_ms - self.closed_at_ms.get(name, -1e9) >= BACKOFF_MAX_MS:
            self.closed_at_ms.pop(name, None)
            self.uses[name] = Use(version + 1, self.now_ms, version + 1)
        found, error = self.metadata.topic(name), self.metadata.error_of(name)
        assert found is None or error is None, "a wait is told one thing"
        assert (error is not None) == (name in self.closed_at_ms)

    @rule(name=st.one_of(st.none(), names))
    def request_update(self, name: str | None) -> None:
        self.metadata.request_update(name)
        for each in NAMES if name is None or name not in self.uses else (name,):
            if each in self.uses and self.uses[each].answers:
                self.uses[each].wanted = self.metadata.request_version

    @precondition(lambda self: len(self.questions) < 4)
    @rule(is_early=st.booleans())
    def ask(self, is_early: bool) -> None:
        if not is_early:
            self.now_ms = max(self.now_ms, self.metadata.next_refresh_ms(self.now_ms))
        question = self.metadata.next_question(self.now_ms)
        self.questions.append(question)
        assert set(question.topics) <= self.uses.keys()
        if not question.is_partial:
            assert question.topics == tuple(self.uses), "nothing in use is lost"
        for name, use in self.uses.items():
            assert name in question.topics or use.wanted <= max(use.answers, default=0), "what is wanted is asked"

    @precondition(lambda self: self.questions)
    @rule(which=st.integers(0, 3), lag=st.integers(0, 4))
    def be_answered(self, which: int, lag: int) -> None:
        question = self.questions.pop(which % len(self.questions))
        self.take(question, self.states[max(len(self.states) - 1 - lag, 0)])

    @precondition(lambda self: self.questions)
    @rule(which=st.integers(0, 3))
    def get_no_answer(self, which: int) -> None:
        self.questions.pop(which % len(self.questions))
        self.metadata.fail(self.now_ms)

    @rule(name=names, lag=st.integers(0, 3), index=st.integers(0, 2))
    def hear_of_a_leader(self, name: str, lag: int, index: int) -> None:
        """From a broker, beside an error."""
        state = self.states[max(len(self.states) - 1 - lag, 0)]
        told, use = state.topics.get(name), self.uses.get(name)
        known = use.known if use is not None and self.is_usable(name) else None
        # A hint has no topic id: a broker that leads the partition tells it, of the topic by its present id.
        if told is None or known is None or told.creation != known.creation or index >= len(told.leaders):
            return
        leader, epoch = told.leaders[index]
        is_newer = index < len(known.leaders) and epoch > known.leaders[index][1]
        taken = self.metadata.update_leader(name, index, leader, epoch)
        assert taken == (is_newer and leader in self.nodes[1])
        if taken:
            leaders = list(known.leaders)
            leaders[index] = (leader, epoch)
            assert use is not None
            use.known = Topic(known.creation, tuple(leaders))

    # ----------------------------------------------------------------------------------------------------- the model
    def take(self, question: Question, state: State) -> None:
        taken = self.metadata.apply(
            state.answer_to(question), question.version, self.now_ms, is_partial=question.is_partial
        )
        assert taken == bool(state.nodes)
        if not taken:
            return
        if question.version >= self.nodes[0]:
            self.nodes = (question.version, state.nodes)
        for name in question.topics:
            if name in self.uses and self.uses[name].take(name, question.version, state) and name in state.closed:
                del self.uses[name]
                self.closed_at_ms[name] = self.now_ms
        for name, use in list(self.uses.items()):
            use.lose_leaders(self.nodes[1])
            was_asked = bool(use.answers) or use.began <= self.nodes[0]
            if was_asked and use.used_at_ms <= self.now_ms - MAX_IDLE_MS:
                del self.uses[name]
        for name, at_ms in list(self.closed_at_ms.items()):
            if at_ms <= self.now_ms - BACKOFF_MAX_MS:
                del self.closed_at_ms[name]

    def is_usable(self, name: str) -> bool:
        use = self.uses.get(name)
        return use is not None and bool(use.answers) and name in use.answers[max(use.answers)].topics

    @invariant()
    def the_newest_truth_is_known(self) -> None:
        assert self.metadata.topics_in_use == self.uses.keys()
        assert {each.node_id for each in self.metadata.nodes()} == self.nodes[1]
        for name in NAMES:
            found = self.metadata.topic(name)
            assert (found is not None) == self.is_usable(name), name
            if found is not None:
                known = self.uses[name].known
                assert known is not None
                assert found.topic_id == known.topic_id
                assert found.leaders == known.leaders
                assert found.available == tuple(index for index, (leader, _) in enumerate(known.leaders) if leader >= 0)
            error = self.metadata.error_of(name)
            assert (error is not None) == (name in self.closed_at_ms)
            assert error is None or isinstance(error, AuthorizationError)

    @invariant()
    def what_is_wanted_is_due_in_time(self) -> None:
        due_in_ms = self.metadata.next_refresh_ms(self.now_ms) - self.now_ms
        assert 0 <= due_in_ms <= MAX_AGE_MS
        if any(use.wanted > max(use.answers, default=0) for use in self.uses.values()):
            assert due_in_ms <= BACKOFF_MAX_MS

    def teardown(self) -> None:
        """The broker catches up: the truth is known after one more answer, and soon nothing is asked any more."""
        self.states.append(State(self.state.topics, self.state.closed, frozenset(NODES)))
        self.questions.clear()
        self.metadata.request_update()
        is_settled = False
        for _ in range(3):
            self.now_ms += self.metadata.next_refresh_ms(self.now_ms) - self.now_ms
            for name in list(self.uses):
                self.use(name)
            self.take(self.metadata.next_question(self.now_ms), self.state)
            self.the_newest_truth_is_known()
            for name in self.uses:
                found = self.metadata.topic(name)
                truth = self.state.topics.get(name)
                assert (found is None) == (truth is None)
                if found is not None and truth is not None:
                    assert found.leaders == truth.leaders
            is_settled = self.metadata.next_refresh_ms(self.now_ms) - self.now_ms > BACKOFF_MAX_MS
        is_lacking = any(
            name not in self.state.topics or any(leader < 0 for leader, _ in self.state.topics[name].leaders)
            for name in self.uses
        )
        assert is_settled != is_lacking, "it asks on as long as something lacks, and no longer"


TestMetadataModel = MetadataModel.TestCase
TestMetadataModel.settings = settings(max_examples=200, stateful_step_count=40)
