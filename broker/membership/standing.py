"""Whether a broker may answer by the ACLs that it knows: it has asked the store lately whether it is still registered.

A change of ACLs is answered once every registered broker has said that it has it (controller/acl_spread.py). A broker
that cannot say so is waited for until it is registered no more, and `TERM_MS` longer. So a broker must not
answer by what it knows for longer than that after it lost its registration, and it may not have noticed: its watch of
the store may hang, or the whole process may have stood still.

Several times within that time it reads its own registration from the store. Where that is there, at the epoch that the
image here shows, too, then every change that was answered before the question was *sent* is known here. What it knows
counts from that moment on, for nine tenths of the time on a clock that runs on while the machine sleeps, as a lease
itself does (lease_term.py). A lease that is renewed would not do for that: a registration can be taken away under it.

A broker that is alone, in a store of this process, has nobody who could change anything behind its back.
"""

import logging
from typing import Final

from odradek.broker.cluster.keys import broker_key
from odradek.broker.cluster.store import StoreClosed, StoreWentBack
from odradek.broker.membership.image_follower import ImageFollower
from odradek.broker.membership.lease_term import SAFE_PART
from odradek.broker.membership.registration import Registration
from odradek.runtime.environment import Environment

logger = logging.getLogger(__name__)

TERM_MS: Final = 2000
"""For so long, less a tenth, what a broker knows counts. The same on all brokers, whatever they are set to: the
controller waits by its own number for brokers that go by theirs."""
QUESTIONS_PER_TERM: Final = 5


class Standing:
    """The standing of one broker."""

    def __init__(self, metadata: ImageFollower, registration: Registration, environment: Environment) -> None:
        self._metadata = metadata
        self._registration = registration
        self._environment = environment
        self._ends_ms = 0.0
        self._clock_ms = environment.lease_clock_ms
        self._is_said = False

    def is_sure(self) -> bool:
        """Whether no change of ACLs can have been answered that is not known here. Asked twice for each request."""
        return self._clock_ms() < self._ends_ms or self._is_alone()

    def _is_alone(self) -> bool:
        lease = self._registration.lease
        if lease is None or lease.lapses:
            return False
        return all(broker_id == self._node_id for broker_id in self._metadata.image.registered)

    @property
    def _node_id(self) -> int:
        return self._registration.node_id

    async def confirm(self) -> None:
        """Asks the store. Raises StoreClosed, StoreWentBack, OSError."""
        registration, key = self._registration, broker_key(self._node_id)
        sent_ms, epoch = self._clock_ms(), registration.epoch
        found = (await self._metadata.store.read(key)).entries.get(key)
        if found is not None and found.revision == epoch == registration.epoch and registration.is_known:
            self._ends_ms = max(self._ends_ms, sent_ms + SAFE_PART * TERM_MS)

    async def keep(self) -> None:
        """Asks again and again, for as long as the broker runs."""
        try:
            while True:
                try:
                    await self.confirm()
                except (OSError, StoreWentBack) as error:
                    logger.debug("whether broker %d is still registered is not known: %s", self._node_id, error)
                self._say()
                await self._environment.sleep(TERM_MS / QUESTIONS_PER_TERM)
        except StoreClosed:
            return

    def _say(self) -> None:
        """That clients are turned away now, or are not any more."""
        is_sure = self.is_sure()
        if is_sure is not self._is_said:
            return
        self._is_said = not is_sure
        if is_sure:
            logger.info("broker %d knows again that it has the newest ACLs", self._node_id)
        else:
            logger.warning(
                "broker %d does not know whether it has the newest ACLs, for the metadata store does not confirm its "
                "registration: it closes the connections of clients that ask for anything, but for super users",
                self._node_id,
            )
