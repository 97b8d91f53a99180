"""What members of both protocols have in common: coordinator, partitions, poll interval, and what is to be said.

A member is *away* when nobody has polled for too long: it gives its place in the group to others, and comes back when
it is polled.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection
from math import inf
from typing import NamedTuple

from odradek.client.consumer.membership.actions import Action, Failed, Lost, Noted, Revoke, Send
from odradek.client.consumer.membership.coordinator_search import CoordinatorSearch
from odradek.client.consumer.membership.holdings import Holdings
from odradek.client.consumer.membership.membership import CLOSING, UNSUBSCRIBED
from odradek.client.consumer.membership.reactions import MemberReaction, reaction_to
from odradek.client.consumer.membership.requests import (
    Answer,
    CoordinatorFound,
    FindCoordinator,
    NoAnswer,
    Refused,
    Request,
)
from odradek.client.consumer.membership.settings import MembershipSettings
from odradek.client.network.backoff import Backoff
from odradek.client.topic_partition import TopicPartition
from odradek.protocol.errors import ErrorCode

__all__ = ["Ending", "GroupMember"]


class Ending(NamedTuple):
    """The member is on its way out of the group."""

    is_for_good: bool
    """False: it comes back when it subscribes to topics again."""
    leaves_group: bool | None
    """See `Membership.leave`."""
    reason: str


class GroupMember(ABC):
    """The base of both kinds of members."""

    def __init__(self, settings: MembershipSettings, backoff: Backoff) -> None:
        self.settings = settings
        self._backoff = backoff
        self._search = CoordinatorSearch(settings.group_id, backoff)
        self._holdings = Holdings()
        self._topics: frozenset[str] = frozenset()
        self._ending: Ending | None = None
        self._is_away = False
        self._polled_ms = -inf
        self._retry_ms = -inf
        """No request of the main line of this member before this time."""
        self._failures = 0
        self._said: list[Action] = []

    @property
    def coordinator(self) -> int | None:
        return self._search.node_id

    @property
    def owned(self) -> frozenset[TopicPartition]:
        return self._holdings.owned

    @property
    @abstractmethod
    def has_ended(self) -> bool: ...

    def take_actions(self) -> list[Action]:
        said, self._said = self._said, []
        return said

    # ------------------------------------------------------------------------------------------------- what is told it
    def subscribe(self, topics: Collection[str], now_ms: float) -> None:
        if self.has_ended or (self._ending is not None and self._ending.is_for_good):
            return
        if not self._topics:
            self._polled_ms = max(self._polled_ms, now_ms)
        self._topics = frozenset(topics)
        if not self._topics:
            self._begin_leaving(Ending(False, None, UNSUBSCRIBED), now_ms)
        else:
            self._ending = None
            self._topics_chosen()
        self.advance(now_ms)

    def polled(self, now_ms: float) -> None:
        self._polled_ms = max(self._polled_ms, now_ms)
        self._is_away = False
        self.advance(now_ms)

    def leave(self, now_ms: float, *, leaves_group: bool | None = None) -> None:
        if not self.has_ended:
            self._begin_leaving(Ending(True, leaves_group, CLOSING), now_ms)
        self.advance(now_ms)

    def coordinator_lost(self, node_id: int, now_ms: float) -> None:
        if node_id == self._search.node_id:
            self._search.lost(now_ms)
        self.advance(now_ms)

    @abstractmethod
    def advance(self, now_ms: float) -> None: ...
    @abstractmethod
    def _topics_chosen(self) -> None:
        """To topics: the member stays, or comes back."""

    @abstractmethod
    def _begin_leaving(self, ending: Ending, now_ms: float) -> None: ...

    # ---------------------------------------------------------------------------------------------------------- saying
    def _say(self, action: Action) -> None:
        self._said.append(action)

    def _send(self, request: Request) -> None:
        assert self._search.node_id is not None
        self._say(Send(request, self._search.node_id))

    def _say_revoke(self, partitions: Collection[TopicPartition], now_ms: float, reason: str) -> None:
        """The group may have begun to wait for this member as long ago as its last heartbeat."""
        if new := self._holdings.begin_giving_up(partitions):
            wait_ms = max(self.settings.max_poll_interval_ms - self.settings.heartbeat_interval_ms, 0)
            self._say(Revoke(new, now_ms + wait_ms, reason))

    def _say_lost(self, reason: str) -> None:
        if new := self._holdings.lose():
            self._say(Lost(new, reason))

    # -------------------------------------------------------------------------------------------------------- retrying
    def _back_off(self, now_ms: float) -> None:
        self._retry_ms = now_ms + self._backoff.after_ms(self._failures)
        self._failures += 1

    def _try_again_soon(self, now_ms: float) -> None:
        """At once, unless that has just failed: a coordinator that refuses everything is not asked in a loop."""
        if self._failures == 0:
            self._failures = 1
            self._retry_ms = now_ms
        else:
            self._back_off(now_ms)

    def _succeeded(self) -> None:
        self._failures = 0
        self._search.proved()

    # ----------------------------------------------------------------------------------------------------- coordinator
    def _find_if_due(self, now_ms: float) -> None:
        if self._search.due_ms <= now_ms:
            self._say(Send(self._search.ask(), None))

    def _coordinator_answered(self, request: FindCoordinator, answer: Answer, now_ms: float) -> Failed | None:
        """Returns the failure where the group has no coordinator for this member at all."""
        if not self._search.is_asked(request):
            return None
        match answer:
            case CoordinatorFound():
                self._search.found(answer.node_id)
                return None
            case Refused() if reaction_to(answer.code) is MemberReaction.FAIL:
                self._search.failed(now_ms)
                return self._failure(answer, "the coordinator was not told")
            case _:
                assert isinstance(answer, Refused | NoAnswer)
                self._search.failed(now_ms)
                return None

    def _failure(self, refused: Refused, what: str) -> Failed:
        text = refused.message or refused.code.text
        return Failed(refused.code, f"group {self.settings.group_id}: {what}: {text}")

    # --------------------------------------------------------------------------------------------------- poll interval
    @property
    def _poll_deadline_ms(self) -> float:
        if self._is_away or self._ending is not None or not self._topics:
            return inf
        return self._polled_ms + self.settings.max_poll_interval_ms

    def _note_away(self) -> None:
        self._is_away = True
        stays = "stops its heartbeats" if self.settings.is_static else "leaves"
        self._note(
            f"no records were asked for in max_poll_interval_ms ({self.settings.max_poll_interval_ms} ms), so the "
            f"member {stays} and its partitions go to others. It comes back when records are asked for. Raise "
            "max_poll_interval_ms, or handle fewer records at a time."
        )

    def _note(self, text: str, code: ErrorCode | None = None) -> None:
        self._say(Noted(f"group {self.settings.group_id}: {text}", code))

    def _leaves_group(self) -> bool:
        """Whether the group is told that this member goes."""
        wish = None if self._ending is None else self._ending.leaves_group
        return not self.settings.is_static if wish is None else wish
