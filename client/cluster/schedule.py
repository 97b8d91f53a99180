"""When metadata is asked for, and about which topics. It knows wishes, versions and times, and no metadata.

Questions. A *full* one is about all topics in use, and due by age or on request; a *partial* one is about the wanted
topics alone. Every question, and every wish for one, has a version from one rising count. So an answer satisfies those
wishes alone that came before its question. (Java has one `requestVersion` for new topics, and forgets a requested
update when an answer comes whose question was older.)

Pace. Between two questions lies `retry_backoff_ms`, doubled up to `retry_backoff_max_ms` with each failure, and with
each answer that brought nothing new (KIP-580). A new topic need not wait for that, but for the backoff of a failure.

(Source: Metadata.java: timeToNextUpdate, newMetadataRequestAndVersion, requestUpdate, failedUpdate.)
"""

from collections.abc import Collection
from math import inf
from typing import NamedTuple

from odradek.client.network.backoff import Backoff

__all__ = ["Question", "Schedule"]


class Question(NamedTuple):
    """What to ask a broker next. Its answer is applied with the same `version`."""

    topics: tuple[str, ...]
    is_partial: bool
    version: int


class Schedule:
    """See the module. All times are milliseconds of one clock that never goes back."""

    __slots__ = (
        "_answered",
        "_answers_without_news",
        "_backoff",
        "_failures",
        "_full_answered",
        "_full_wanted",
        "_max_age_ms",
        "_may_ask_at_ms",
        "_refreshed_at_ms",
        "_trying_since_ms",
        "version",
        "wanted",
    )

    def __init__(self, max_age_ms: float, backoff: Backoff) -> None:
        self.version = 0
        """Of the last question or wish for one."""
        self.wanted: dict[str, int] = {}
        """The topics that something must be learned of, with the version of the wish."""
        self._max_age_ms = max_age_ms
        self._backoff = backoff
        self._full_wanted = self.next_version()
        self._full_answered = 0
        self._answered = 0
        self._refreshed_at_ms = -inf  # by a full answer
        self._may_ask_at_ms = -inf
        self._failures = 0
        self._answers_without_news = 0
        self._trying_since_ms: float | None = None

    # ------------------------------------------------------------------------------------------------- wishes
    def next_version(self) -> int:
        self.version += 1
        return self.version

    def want_all(self) -> None:
        self._full_wanted = self.next_version()

    def want(self, topic: str) -> None:
        """Something is out of date: only the answer to a question from now on will do."""
        self.wanted[topic] = self.next_version()

    def want_new(self, topic: str) -> None:
        """The topic is new: the question is due at once, unless the last one failed."""
        self.want(topic)
        self._answers_without_news = 0
        if self._failures == 0:
            self._may_ask_at_ms = -inf

    def want_after(self, topic: str, version: int) -> None:
        """The answer of this version was not enough: that of any later question will do."""
        self.wanted.setdefault(topic, version + 1)

    def satisfy(self, topic: str, version: int) -> None:
        """There is an answer about the topic to the question of this version."""
        if self.wanted.get(topic, inf) <= version:
            del self.wanted[topic]

    # ---------------------------------------------------------------------------------------------- questions
    def due_ms(self, now_ms: float) -> float:
        """When the next question is due; at once if that is not after `now_ms`."""
        if self.wanted or self._is_full_wanted:
            return max(now_ms, self._may_ask_at_ms)
        return max(now_ms, self._may_ask_at_ms, self._refreshed_at_ms + self._max_age_ms)

    def question(self, now_ms: float, topics_in_use: Collection[str]) -> Question:
        """What to ask now. `answered` or `failed` follows."""
        is_old = self._refreshed_at_ms + self._max_age_ms <= now_ms
        if is_old:
            self._answers_without_news = 0
        is_partial = bool(self.wanted) and not self._is_full_wanted and not is_old
        return Question(tuple(self.wanted if is_partial else topics_in_use), is_partial, self.next_version())

    def is_late(self, version: int) -> bool:
        """Whether a later question than that of this version has been answered already."""
        return version < self._answered

    def answered(self, version: int, now_ms: float, *, is_partial: bool, has_news: bool) -> None:
        self._answered = max(self._answered, version)
        if not is_partial:
            self._full_answered = max(self._full_answered, version)
            self._refreshed_at_ms = now_ms
        self._failures = 0
        self._trying_since_ms = None
        self._answers_without_news = 0 if has_news else self._answers_without_news + 1
        self._may_ask_at_ms = now_ms + self._backoff.after_ms(max(self._answers_without_news - 1, 0))

    def failed(self, now_ms: float) -> None:
        """A question was not answered, or could not be asked."""
        self._may_ask_at_ms = now_ms + self._backoff.after_ms(self._failures)
        self._failures += 1
        self._answers_without_news = 0

    def was_asked_for(self, topic: str) -> bool:
        """Whether a wanted topic was in a question that has been answered."""
        return self.wanted[topic] <= self._answered

    # ------------------------------------------------------------------------------------ how long in vain
    def begin_try(self, now_ms: float) -> None:
        """A broker is looked for, to ask it. The time runs until there is an answer (KIP-1102)."""
        if self._trying_since_ms is None:
            self._trying_since_ms = now_ms

    def begin_anew(self, now_ms: float) -> None:
        self._trying_since_ms = now_ms
        self.want_all()

    def overdue_at_ms(self, trigger_ms: float) -> float:
        """When it has been tried for so long without success."""
        return inf if self._trying_since_ms is None else self._trying_since_ms + trigger_ms

    @property
    def _is_full_wanted(self) -> bool:
        return self._full_wanted > self._full_answered
