"""What the client knows of the cluster: brokers, controller, and the topics in use with their leaders. No clock inside.

Topics. `use` marks a topic as in use, once a batch; one that is not used for `max_idle_ms` is forgotten. Only topics in
use are asked for and kept. A topic is *wanted* when something about it must be learned: it is new, the broker reported
an error for it, a partition has no leader, or somebody asks (`request_update`). When that is asked for, and what else,
stands in `schedule`.

Answers. Of two about a topic, the one to the later question counts, whichever comes first; of a partition, the one with
the newer leader epoch (`topic_metadata`). The brokers are those that the answer to the latest question names.

Errors. What a wait cannot cure, INVALID_TOPIC_EXCEPTION and TOPIC_AUTHORIZATION_FAILED, ends the topic's use and stands
in `error_of` for all who ask. The first use after `retry_backoff_max_ms`, a second at least, forgets it and asks the
broker again: so nobody is told for ever what was true once, and a program that goes on trying asks once a second. Any
other error makes the topic unusable, and wanted.

(Source: Metadata.java, ProducerMetadata.java, MetadataSnapshot.java; KIP-899, KIP-951, KIP-1102.)
"""

import logging
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from typing import Final

from odradek.client.cluster.schedule import Question, Schedule
from odradek.client.cluster.topic_metadata import (
    NO_LEADER,
    Endpoint,
    Leader,
    Node,
    TopicMetadata,
    merged,
    nodes_of,
)
from odradek.client.errors.base import printable
from odradek.client.errors.client_errors import ClientError, broker_error
from odradek.client.network.backoff import Backoff
from odradek.protocol.errors import ErrorCode, code_of
from odradek.protocol.messages.metadata import MetadataResponse, MetadataResponseTopic

__all__ = ["Heard", "Metadata", "Node", "Question", "TopicMetadata"]

logger = logging.getLogger(__name__)

NOBODY: Final = -1
INCURABLE: Final = frozenset((ErrorCode.INVALID_TOPIC_EXCEPTION, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
"""What only other settings, names or rights can change, and no wait."""
ERROR_LIFETIME_MS_MIN: Final = 1_000.0
"""However short the backoffs are, there is time for all who wait to be told."""
PACE_MS_MIN: Final = 10.0
"""And a topic that does not exist is not asked for at the speed of the network."""
STRING_BYTES_MAX: Final = 32767
NEWEST_API_VERSION: Final = MetadataResponse.max_version


@dataclass(frozen=True, slots=True)
class Heard:
    """The last answer about a topic: its error code, the version of the question, and when it came."""

    code: ErrorCode
    version: int
    at_ms: float


class Metadata:
    """See the module. All times are milliseconds of one clock that never goes back."""

    def __init__(
        self,
        *,
        max_age_ms: float = 300_000,
        max_idle_ms: float = 300_000,
        retry_backoff_ms: float = 100,
        retry_backoff_max_ms: float = 1000,
        random: Callable[[], float],
    ) -> None:
        self.version = 0
        """Grows with every change: an answer, a leader's hint, a rebootstrap."""
        self.cluster_id: str | None = None
        self.controller_id = NOBODY
        """A broker that takes requests for the controller; -1 where none is known."""
        self.on_request: Callable[[], None] = _ignore
        """Called when a question has become due, maybe earlier than `next_refresh_ms` said before."""
        self._max_idle_ms = max_idle_ms
        self._error_lifetime_ms = max(retry_backoff_max_ms, ERROR_LIFETIME_MS_MIN)
        backoff = Backoff(max(retry_backoff_ms, PACE_MS_MIN), max(retry_backoff_max_ms, PACE_MS_MIN), random)
        self._schedule = Schedule(max_age_ms, backoff)
        self._nodes: dict[int, Node] = {}
        self._topics: dict[str, TopicMetadata] = {}
        self._last_known: dict[str, TopicMetadata] = {}  # also of topics that are not usable now: for ids and epochs
        self._used_at_ms: dict[str, float] = {}
        self._heard: dict[str, Heard] = {}

    # --------------------------------------------------------------------------------------------- send path
    def topic(self, name: str) -> TopicMetadata | None:
        """What is known of a topic, if that can be used."""
        return self._topics.get(name)

    def use(self, topic: str, now_ms: float) -> None:
        """Marks a topic as in use. A new one is asked for."""
        if topic in self._used_at_ms:
            self._used_at_ms[topic] = now_ms
        else:
            self._begin(topic, now_ms)

    def leader_of(self, topic: str, partition: int) -> tuple[int, int]:
        """Node and leader epoch of a partition; node -1: there is no leader, or nothing is known."""
        found = self._topics.get(topic)
        return found.leaders[partition] if found is not None and 0 <= partition < len(found.leaders) else NO_LEADER

    def error_of(self, topic: str) -> ClientError | None:
        """Why the topic cannot be used, if a wait will not cure it. Call `use` before: it forgets an old error."""
        heard = self._heard.get(topic)
        if heard is None or heard.code not in INCURABLE:
            return None
        return broker_error(heard.code, "", f"Metadata of {printable(topic)}")

    # ------------------------------------------------------------------------------------------------- reading
    @property
    def topics(self) -> Collection[TopicMetadata]:
        """All topics in use that can be used."""
        return self._topics.values()

    @property
    def topics_in_use(self) -> Collection[str]:
        """All topics in use, known or not."""
        return self._used_at_ms.keys()

    def nodes(self) -> Collection[Node]:
        """The brokers that the newest answer names."""
        return self._nodes.values()

    def node(self, node_id: int) -> Node | None:
        return self._nodes.get(node_id)

    def heard(self, topic: str) -> Heard | None:
        """The last answer about a topic; None when there was none in its use."""
        return self._heard.get(topic)

    # ------------------------------------------------------------------------------------------------- asking
    @property
    def request_version(self) -> int:
        """Of the last question or wish for one."""
        return self._schedule.version

    def request_update(self, topic: str | None = None) -> None:
        """Asks for a topic in use, or else for everything, as soon as the backoff allows."""
        if topic is None or topic not in self._used_at_ms:
            self._schedule.want_all()
        elif topic in self._heard:  # else any answer will be news
            self._schedule.want(topic)
        self.on_request()

    def next_refresh_ms(self, now_ms: float) -> float:
        """When the next question is due; at once if that is not after `now_ms`."""
        return self._schedule.due_ms(now_ms)

    def next_question(self, now_ms: float) -> Question:
        """What to ask now. After it, call `apply` or `fail`."""
        return self._schedule.question(now_ms, self._used_at_ms)

    def begin_try(self, now_ms: float) -> None:
        """A broker is looked for, to ask it."""
        self._schedule.begin_try(now_ms)

    def overdue_at_ms(self, trigger_ms: float) -> float:
        """When metadata has been tried to get for so long without success (KIP-1102)."""
        return self._schedule.overdue_at_ms(trigger_ms)

    def fail(self, now_ms: float) -> None:
        """A question was not answered, or could not be asked."""
        self._schedule.failed(now_ms)

    # ------------------------------------------------------------------------------------------------ learning
    def apply(
        self,
        response: MetadataResponse,
        request_version: int,
        now_ms: float,
        *,
        is_partial: bool = False,
        api_version: int = NEWEST_API_VERSION,
    ) -> bool:
        """Takes over an answer to the question of `request_version`.

        False: it names no broker, as one does that is starting up, and counts as a failure.
        """
        nodes = nodes_of(response.brokers)
        if not nodes:
            self.fail(now_ms)
            return False
        are_gone = not nodes.keys() >= self._nodes.keys()
        has_news = not self._schedule.is_late(request_version) and self._apply_nodes(nodes, response)
        for answer in response.topics:
            has_news |= self._apply_topic(answer, request_version, now_ms, api_version)
        if are_gone:
            self._drop_lost_leaders(request_version)
        self._schedule.answered(request_version, now_ms, is_partial=is_partial, has_news=has_news)
        self._forget_idle(now_ms)
        self.version += 1
        return True

    def update_leader(
        self, topic: str, partition: int, leader: int, leader_epoch: int, endpoints: Iterable[Endpoint] = ()
    ) -> bool:
        """Takes over a leader that a broker named beside an error (KIP-951). False: it is not newer, or not usable."""
        known = self._topics.get(topic)
        if known is None or not 0 <= partition < known.partition_count or leader < 0 or leader_epoch < 0:
            return False
        nodes = self._nodes | nodes_of(endpoints)
        if leader_epoch <= known.leaders[partition].epoch or leader not in nodes:
            return False
        leaders = list(known.leaders)
        leaders[partition] = Leader(leader, leader_epoch)
        self._nodes = nodes
        self._keep(replace(known, leaders=tuple(leaders)))
        self.version += 1
        return True

    def rebootstrap(self, now_ms: float) -> None:
        """Forgets brokers and leaders, for the bootstrap servers are asked anew (KIP-899, KIP-1102).

        Topics stay, with their numbers of partitions, so that records can still be accepted. Epochs do not count any
        more: what the bootstrap servers say is the truth, even if the cluster was set up anew.
        """
        self._nodes = {}
        self.controller_id = NOBODY
        self._last_known.clear()
        for topic in list(self._topics.values()):
            self._keep(topic.without_leaders_outside(()).without_epochs())
        self._schedule.begin_anew(now_ms)
        self.version += 1
        self.on_request()

    # ------------------------------------------------------------------------------------------------- within
    def _begin(self, topic: str, now_ms: float) -> None:
        heard = self._heard.get(topic)
        if heard is not None and heard.code in INCURABLE and now_ms - heard.at_ms < self._error_lifetime_ms:
            return
        if not _is_sendable(topic):
            self._heard[topic] = Heard(ErrorCode.INVALID_TOPIC_EXCEPTION, self.request_version, now_ms)
            return
        self._heard.pop(topic, None)
        self._used_at_ms[topic] = now_ms
        self._schedule.want_new(topic)
        self.on_request()

    def _keep(self, topic: TopicMetadata) -> None:
        self._topics[topic.name] = self._last_known[topic.name] = topic

    def _apply_nodes(self, nodes: dict[int, Node], response: MetadataResponse) -> bool:
        """Whether anything is new."""
        controller_id = response.controller_id if response.controller_id in nodes else NOBODY
        if self.cluster_id != response.cluster_id and response.cluster_id is not None:
            logger.info("the cluster id is %s", response.cluster_id)
        is_new = nodes != self._nodes or controller_id != self.controller_id
        self._nodes, self.controller_id, self.cluster_id = nodes, controller_id, response.cluster_id
        return is_new

    def _drop_lost_leaders(self, request_version: int) -> None:
        """A leader that is gone from the brokers is no leader any more: who is it now?"""
        for topic in list(self._topics.values()):
            rest = topic.without_leaders_outside(self._nodes)
            if rest is not topic:
                self._keep(rest)
                self._schedule.want_after(topic.name, request_version)

    def _apply_topic(
        self, answer: MetadataResponseTopic, request_version: int, now_ms: float, api_version: int
    ) -> bool:
        """Whether anything is new about the topic."""
        name = answer.name
        if name is None or name not in self._used_at_ms:
            return False
        before = self._heard.get(name)
        if request_version < (before.version if before is not None else self._schedule.wanted[name]):
            return False  # a later question has been answered, or its use began after this one
        self._schedule.satisfy(name, request_version)
        code = code_of(answer.error_code)
        topic = None
        if code is ErrorCode.NONE:
            topic = merged(name, answer, self._last_known.get(name), self._nodes, api_version)
            code = ErrorCode.NONE if topic is not None else ErrorCode.LEADER_NOT_AVAILABLE
        self._heard[name] = Heard(code, request_version, now_ms)
        known = self._topics.get(name)
        if topic is not None:
            self._keep(topic)
        elif known is not None:
            del self._topics[name]
        if code in INCURABLE:
            self._end_use(name)
        elif topic is None or not topic.is_complete:
            self._schedule.want_after(name, request_version)
        if before is None or before.code is not code:
            _log_answer(name, code)
        return topic != known

    def _end_use(self, name: str) -> None:
        for by_name in (self._used_at_ms, self._last_known, self._schedule.wanted):
            by_name.pop(name, None)

    def _forget_idle(self, now_ms: float) -> None:
        """Forgets topics out of use; not one that has not been asked for yet (ProducerMetadata.java)."""
        limit_ms = now_ms - self._max_idle_ms
        for name in [each for each, used_at_ms in self._used_at_ms.items() if used_at_ms <= limit_ms]:
            if name in self._heard or self._schedule.was_asked_for(name):
                logger.debug("topic %s has not been used for %.0f ms and is forgotten", name, self._max_idle_ms)
                self._end_use(name)
                self._topics.pop(name, None)
                self._heard.pop(name, None)
        limit_ms = now_ms - self._error_lifetime_ms
        for name, heard in list(self._heard.items()):
            if heard.code in INCURABLE and heard.at_ms <= limit_ms:
                del self._heard[name]


def _is_sendable(topic: str) -> bool:
    """Whether a request can carry this name. What else makes a name of a topic is for the broker to say."""
    try:
        return len(topic.encode()) <= STRING_BYTES_MAX
    except UnicodeEncodeError:
        return False


def _log_answer(topic: str, code: ErrorCode) -> None:
    if code is not ErrorCode.NONE:
        level = logging.WARNING if code in INCURABLE else logging.INFO
        logger.log(level, "metadata of topic %s: %s: %s", printable(topic), code.name, code.text)


def _ignore() -> None:
    pass
