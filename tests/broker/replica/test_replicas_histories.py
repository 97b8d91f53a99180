"""Any history of log starts: whoever is elected later has deleted what a DeleteRecords was acknowledged with.

Leaders are real `Replicas`; what they know of the others are the starts that fetches said, of which some come late. The
disks, the store and the elections are a model: brokers go and come back with the starts on their disks, leave the
in-sync set and stay eligible, join it by way of a write whose answer may be long in coming, replicas are added, and
whoever is in sync or eligible is elected. Retention moves starts, and waits for nobody.
"""

from collections.abc import Mapping

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from odradek.broker.replica.replicas import Replicas

BROKERS = range(4)
END = 4
"""Where all logs end: all have caught up, so that starts alone decide."""


class History(RuleBasedStateMachine):
    """See the module."""

    def __init__(self) -> None:
        super().__init__()
        self.on_disk: dict[int, int] = dict.fromkeys(BROKERS, 0)
        self.live = set(BROKERS)
        self.assigned: tuple[int, ...] = (0, 1, 2)
        self.isr: set[int] = {0, 1, 2}
        self.elr: set[int] = set()
        self.proposed: set[int] | None = None
        self.start = 0
        """The leader's, in memory: what its followers are told."""
        self.acknowledged = 0
        self.waiting: list[int] = []
        self.replicas: Replicas

    @initialize()
    def first_leader(self) -> None:
        self.lead(0)

    def lead(self, broker_id: int) -> None:
        self.start = self.on_disk[broker_id]
        assert self.start >= self.acknowledged, "deleted records are back"
        self.isr.add(broker_id)
        self.elr.discard(broker_id)
        self.replicas = Replicas(broker_id, self.assigned, sorted(self.isr), sorted(self.elr))
        self.replicas.promised_log_start = self.start
        for follower in self.replicas.followers.values():
            follower.log_end_offset = END
        self.proposed, self.waiting = None, []

    def store(self) -> None:
        self.replicas.update(self.assigned, sorted(self.isr), sorted(self.elr), 0.0)
        for follower in self.replicas.followers.values():
            follower.log_end_offset = END

    def answer(self) -> None:
        """Those whose low watermark is reached, as `Deletions.held_by_all` does it."""
        low_watermark = self.replicas.low_watermark(self.start, self.live)
        for offset in [offset for offset in self.waiting if offset <= low_watermark]:
            self.waiting.remove(offset)
            self.acknowledged = max(self.acknowledged, offset)
            self.replicas.promised_log_start = max(self.replicas.promised_log_start, offset)
            counting = (self.live & set(self.assigned)) | self.isr | self.elr
            assert all(self.on_disk[broker_id] >= offset for broker_id in counting)

    # -- what is asked of the leader ------------------------------------------------------------------------------

    @rule(offset=st.integers(1, END))
    def delete_records(self, offset: int) -> None:
        leader = self.replicas.leader_id
        self.on_disk[leader] = max(self.on_disk[leader], offset)
        self.start = max(self.start, offset)
        self.waiting.append(offset)
        self.answer()

    @rule(offset=st.integers(0, END))
    def retention(self, offset: int) -> None:
        """In memory: a start of retention's is on no disk, unless a follower hears of it."""
        self.start = max(self.start, offset)

    # -- followers ------------------------------------------------------------------------------------------------

    @rule(broker_id=st.sampled_from(BROKERS))
    def a_follower_hears(self, broker_id: int) -> None:
        if broker_id in self.live and broker_id in self.replicas.followers:
            self.on_disk[broker_id] = max(self.on_disk[broker_id], self.start)

    @rule(broker_id=st.sampled_from(BROKERS))
    def a_follower_fetches(self, broker_id: int) -> None:
        if broker_id in self.live and broker_id in self.replicas.followers:
            self.replicas.followers[broker_id].log_start_offset = self.on_disk[broker_id]
            self.answer()

    @rule()
    def all_followers_hear_and_fetch(self) -> None:
        for _ in range(2):
            for broker_id in BROKERS:
                self.a_follower_fetches(broker_id)
                self.a_follower_hears(broker_id)

    @rule()
    def followers_join(self) -> None:
        for broker_id in BROKERS:
            self.a_follower_joins(broker_id)
            if self.proposed is not None:
                self.the_write_is_answered(is_stored=True, is_known=True)

    @rule(broker_id=st.sampled_from(BROKERS))
    def a_follower_joins(self, broker_id: int) -> None:
        """The write is under way."""
        if self.proposed is None and broker_id in self.live and self.replicas.may_join(broker_id, END, END):
            self.proposed = {broker_id}
            self.replicas.pending_isr = (broker_id,)

    @precondition(lambda self: self.proposed is not None)
    @rule(is_stored=st.booleans(), is_known=st.booleans())
    def the_write_is_answered(self, is_stored: bool, is_known: bool) -> None:
        """What is stored may not be known yet: then it counts as proposed still."""
        assert self.proposed is not None
        if is_stored:
            self.isr |= self.proposed
            self.elr -= self.proposed
        if is_known:
            self.replicas.pending_isr = ()
            self.proposed = None
            self.store()
            self.answer()

    @rule(offset=st.integers(1, END), broker_id=st.sampled_from(BROKERS))
    def one_is_slow_to_delete(self, offset: int, broker_id: int) -> None:
        """Out of the in-sync set, or about to come into it: the others delete, and it is there."""
        if self.proposed is None and broker_id in self.isr and broker_id != self.replicas.leader_id:
            self.leaves_the_isr(broker_id, stays_eligible=False)
        self.a_follower_joins(broker_id)
        self.delete_records(offset)
        for other in BROKERS:
            if other != broker_id:
                self.a_follower_hears(other)
                self.a_follower_fetches(other)

    @rule(broker_id=st.sampled_from(BROKERS), stays_eligible=st.booleans())
    def leaves_the_isr(self, broker_id: int, stays_eligible: bool) -> None:
        if self.proposed is None and broker_id in self.isr and broker_id != self.replicas.leader_id:
            self.isr.discard(broker_id)
            if stays_eligible:
                self.elr.add(broker_id)
            self.store()
            self.answer()

    # -- brokers --------------------------------------------------------------------------------------------------

    @rule(broker_id=st.sampled_from(BROKERS), is_fenced=st.booleans(), stays_eligible=st.booleans())
    def goes(self, broker_id: int, is_fenced: bool, stays_eligible: bool) -> None:
        if broker_id != self.replicas.leader_id:
            self.live.discard(broker_id)
            self.answer()
            if is_fenced:
                self.leaves_the_isr(broker_id, stays_eligible)

    @rule(broker_id=st.sampled_from(BROKERS), fetches=st.booleans())
    def comes(self, broker_id: int, fetches: bool) -> None:
        self.live.add(broker_id)
        if fetches:
            self.a_follower_fetches(broker_id)

    @rule()
    def a_replica_is_added(self) -> None:
        if self.proposed is None:
            self.assigned = tuple(BROKERS)
            self.store()

    @rule(data=st.data())
    def is_replaced(self, data: st.DataObject) -> None:
        """Cleanly: by anybody who is in sync, or eligible."""
        others = sorted((self.isr | self.elr) & self.live)
        broker_id = data.draw(st.sampled_from(others))
        self.lead(broker_id)

    @rule(broker_id=st.sampled_from(BROKERS), data=st.data())
    def one_comes_back_after_an_election(self, broker_id: int, data: st.DataObject) -> None:
        """With the start that it had when it went."""
        self.goes(broker_id, is_fenced=self.proposed is None, stays_eligible=False)
        self.delete_records(END)
        self.all_followers_hear_and_fetch()
        self.is_replaced(data)
        self.comes(broker_id, fetches=True)
        self.a_follower_joins(broker_id)

    @invariant()
    def whoever_may_be_elected_has_deleted(self) -> None:
        may_lead: Mapping[int, int] = {broker_id: self.on_disk[broker_id] for broker_id in self.isr | self.elr}
        assert all(start >= self.acknowledged for start in may_lead.values()), (may_lead, self.acknowledged)


def test_whoever_is_elected_has_deleted_what_was_acknowledged() -> None:
    run_state_machine_as_test(History, settings=settings(max_examples=150, stateful_step_count=20))
