"""A broker's place in the cluster: who it is, that it is there, and until when it may rely on that.

    /nodes/<id>      its data directories and rack; stays
    /brokers/<id>    its addresses; under its lease, and never changed. The revision is the broker's epoch
    /stopping/<id>   it gives up what it leads, and joins no in-sync set; under its lease

**One broker an id.** A registration from the same data directory replaces the old one at once: its process is gone, for
a directory is locked. While one from another directory is there it is refused (`RegistrationRefused`); one whose
process died vanishes with its lease, for which is waited. That is so before anything else of this id is touched, too: a
second broker with an id by mistake must not take the first one's in-sync places (`startup_losses.py`).

**A lease that was lost** takes the registration with it. The broker registers anew, with a new epoch; what it led the
controller has given to others meanwhile, or gives back to it at new epochs. Until the image has come as far as the new
registration the broker may not know what others lead by now: `require_lease` waits for that, however fresh the lease.
So it does after a pause of this process until the store was asked (pause_detector.py).

**Who was fenced though it lives** registers anew at once if the controller had answered it since it registered.
Otherwise it is cut off from the controller, though not from the store: registered anew it would be given partitions to
lead, and lose them again for its silence, over and over. It waits until a controller answers, `UNHEARD_LEASES` at most.

**Who stops** is not registered anew. That it is gone a little earlier than it thought harms nobody; were it there again
it would be given partitions to lead.
"""

import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from odradek.broker.cluster.features import SUPPORTED
from odradek.broker.cluster.image import ClusterImage
from odradek.broker.cluster.keys import (
    BrokerState,
    NodeState,
    broker_key,
    decode_broker,
    decode_node,
    encode_stopping,
    node_key,
    stopping_key,
)
from odradek.broker.cluster.store import Conflict, Lease, LeaseLost, MetadataStore, StoreClosed, Txn
from odradek.broker.membership.lease_term import LeaseTerm
from odradek.broker.membership.pause_detector import PauseDetector
from odradek.protocol.codec.schema import uuid_text
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.runtime.environment import Environment
from odradek.runtime.signal import Signal

logger = logging.getLogger(__name__)

RENEWALS_PER_TERM: Final = 3
UNHEARD_LEASES: Final = 5
RETRY_MS: Final = 100.0
BEAT_MS: Final = 250.0


class RegistrationRefused(Exception):
    """Another broker has this id; the text says what to do."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Who registers: `endpoints` by listener, and the ids of its data directories, the first of which is its own."""

    node_id: int
    endpoints: dict[str, tuple[str, int]]
    directory_ids: tuple[bytes, ...]
    rack: str | None = None
    features: Mapping[str, int] = field(default_factory=lambda: SUPPORTED)
    """What its release can do (cluster/features.py)."""

    def check_former(self, found: BrokerState) -> None:
        """That who is registered with our id is a former life of ours. Raises RegistrationRefused."""
        if found.directory_id not in self.directory_ids:
            raise RegistrationRefused(
                f"broker {self.node_id} is registered already, from another data directory "
                f"({uuid_text(found.directory_id)}): stop that one, or give this one another --node-id"
            )


class Registration:
    """The registration of one broker."""

    def __init__(self, store: MetadataStore, environment: Environment, identity: Identity, lease_ms: int) -> None:
        self._store = store
        self._environment = environment
        self._lease_ms = lease_ms
        self.identity = identity
        self.epoch = 0
        """The revision of the present registration; 0 before the first."""
        self.lease: Lease | None = None
        self.term = LeaseTerm()
        self._unfenced = LeaseTerm()
        """Until when no controller can have fenced this broker for its silence."""
        self._is_controller = False
        self.pause_detector = PauseDetector()
        self.on_renewed: Callable[[], None] = _nothing
        """Called after it was registered anew."""
        self.is_silent = False
        """Whether the store has left the last renewal without an answer."""
        self._known_epoch = 0  # of our registration, as the image had it when it changed last; 0 for none
        self._known_revision = 0  # of that image
        self._fenced_ms: float | None = None
        self._is_heard = False  # the controller has answered since we registered
        self._said_of_epoch = 0  # that it waits for a controller
        self._is_leaving = False
        self._wakes = Signal()

    @property
    def node_id(self) -> int:
        return self.identity.node_id

    @property
    def is_known(self) -> bool:
        """Whether the image here has our registration: nobody has fenced this life of ours, as far as is known."""
        return self.epoch != 0 and self._known_epoch == self.epoch

    def require_lease(self) -> None:
        """For what epochs cannot protect. Raises KafkaError NOT_LEADER_OR_FOLLOWER."""
        now_ms = self._environment.lease_clock_ms()
        if self.pause_detector.check(now_ms) or not self.is_known or self.term.is_over(now_ms):
            raise KafkaError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
                f"broker {self.node_id} is cut off from the metadata store, and others may have taken over",
            )

    def require_unfenced(self) -> None:
        """As `require_lease`, and that no controller can have fenced this broker, which happens before its lease ends:
        one has answered a heartbeat that was sent within the session. Raises KafkaError NOT_LEADER_OR_FOLLOWER."""
        self.require_lease()
        if self._unfenced.is_over(self._environment.lease_clock_ms()):
            raise KafkaError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
                f"broker {self.node_id} hears nothing of the controller, and others may have taken over",
            )

    def note_controller(self, is_here: bool) -> None:
        """Whether this broker is the controller: nobody fences that one while its lease is certain."""
        if is_here:
            self._unfenced.never_ends()
        elif self._is_controller:
            self._unfenced.end()
        self._is_controller = is_here

    def heard_by_controller(self, sent_ms: float, session_ms: float) -> None:
        """It has answered a heartbeat that was sent then, by the lease's clock: it fences this broker a session later
        at the earliest, and so does whoever is elected next."""
        self._unfenced.renewed(sent_ms, session_ms)

    # -- coming -------------------------------------------------------------------------------------------------

    async def register(self) -> None:
        """Returns once the broker is there. Raises RegistrationRefused, OSError, and what the store raises."""
        while True:
            lease, former_epoch = await self.wait_until_free()
            try:
                await self._put(lease, former_epoch)
                self._fenced_ms, self._is_heard = None, False
                self._look_at_image()  # which may have come further than the store's answer
                return
            except Conflict:
                continue  # somebody was faster: look again
            except LeaseLost:
                self.lease = None

    async def wait_until_free(self) -> tuple[Lease, int]:
        """Returns, with our lease, once nobody has this id but a former life of ours, and that one's epoch, 0 without
        one. Of a process that is gone the lease ends within its time; nothing of it is touched. Raises
        RegistrationRefused, OSError, and what the store raises."""
        key = broker_key(self.node_id)
        deadline_ms: float | None = None
        while True:
            lease = await self._taken_lease()
            found = (await self._store.read(key)).entries.get(key)
            try:
                if found is None:
                    return lease, 0
                self.identity.check_former(decode_broker(found.value, self.node_id, found.revision))
                return lease, found.revision
            except RegistrationRefused:
                now_ms = self._environment.monotonic_ms()
                deadline_ms = deadline_ms or now_ms + 1.5 * lease.ttl_ms
                if now_ms >= deadline_ms or not lease.lapses:
                    raise
            await self._environment.sleep(RETRY_MS)
            await self._renew(lease)

    async def _taken_lease(self) -> Lease:
        if self.lease is None:
            sent_ms = self._environment.lease_clock_ms()
            self.lease = await self._store.lease(self._lease_ms)
            if self.lease.lapses:
                self.term.renewed(sent_ms, self.lease.ttl_ms)
            else:
                self.term.never_ends()
        return self.lease

    async def _put(self, lease: Lease, former_epoch: int) -> None:
        """Raises Conflict, LeaseLost, OSError."""
        identity, node_id = self.identity, self.node_id
        key, stays_key = broker_key(node_id), node_key(node_id)
        node = (await self._store.read(stays_key)).entries.get(stays_key)
        state = BrokerState(node_id, identity.endpoints, identity.rack, identity.directory_ids[0])
        lasting = NodeState(identity.directory_ids, identity.rack, identity.endpoints, identity.features)
        expect = {key: former_epoch, stays_key: 0 if node is None else node.revision}
        if node is None or decode_node(node.value, node_id) != lasting:
            # Under no lease, so in a commit of its own.
            expect[stays_key] = await self._store.commit(Txn(expect=expect, put={stays_key: lasting.encode()}))
        self.epoch = await self._store.commit(
            Txn(expect=expect, put={key: state.encode()}, delete=(stopping_key(node_id),), lease=lease)
        )
        logger.info("registered as broker %d with epoch %d", node_id, self.epoch)

    # -- staying ------------------------------------------------------------------------------------------------

    def follow(self, image: ClusterImage) -> None:
        """Who is there has changed: our registration is known here now, or somebody has fenced us though we live."""
        found = image.brokers.get(self.node_id)
        self._known_epoch, self._known_revision = 0 if found is None else found.epoch, image.revision
        self._look_at_image()

    def _look_at_image(self) -> None:
        if self._known_revision >= self.epoch and self._known_epoch != self.epoch:
            self._fenced()

    def controller_answered(self) -> None:
        """To a heartbeat, whatever it said; or this broker itself is the controller, or there is none."""
        self._is_heard = True
        if self._fenced_ms is not None:
            self._wake()

    def _fenced(self) -> None:
        if self._fenced_ms is None:
            self._fenced_ms = self._environment.monotonic_ms()
        self._wake()

    async def keep(self) -> None:
        """Renews the lease, and registers anew when it was lost or taken away; for as long as the broker runs."""
        delay_ms = 0.0
        try:
            while True:
                seen = self._wakes.count
                if not self._is_to_register or delay_ms:
                    self._say_whom_it_waits_for()
                    with suppress(TimeoutError):
                        await self._wakes.after(seen, delay_ms or self._until_renewal_ms())
                delay_ms = 0.0 if await self._renewed() else RETRY_MS
        except StoreClosed:
            return

    @property
    def _is_to_register(self) -> bool:
        if self._is_leaving:
            return False
        if self.lease is None or self._fenced_ms is None:
            return self.lease is None
        waited_ms = self._environment.monotonic_ms() - self._fenced_ms
        return self._is_heard or waited_ms >= UNHEARD_LEASES * self._lease_ms

    def _say_whom_it_waits_for(self) -> None:
        if self._fenced_ms is None or self._is_heard or self._is_leaving or self._said_of_epoch == self.epoch:
            return
        self._said_of_epoch = self.epoch
        logger.warning(
            "broker %d was fenced by a controller that it does not reach; it registers anew when a controller answers, "
            "or in %d ms",
            self.node_id,
            UNHEARD_LEASES * self._lease_ms,
        )

    def _until_renewal_ms(self) -> float | None:
        if self.lease is None:
            return None
        if self.lease.lapses or self._fenced_ms is not None:
            return self.lease.ttl_ms / RENEWALS_PER_TERM
        return None

    async def _renewed(self) -> bool:
        try:
            if self.lease is not None and not self._is_to_register:
                await self._renew(self.lease)
            if self._is_to_register:
                if self._known_epoch > self.epoch:
                    logger.warning(
                        "broker %d is registered with an epoch that is not this process's: another one may run on a "
                        "copy of its data directory",
                        self.node_id,
                    )
                    await self._environment.sleep(RETRY_MS)  # two of them must not keep the whole cluster busy
                await self.register()
                self.on_renewed()
        except RegistrationRefused as error:
            logger.error("%s", error)
        except OSError as error:
            if not self.is_silent:
                logger.warning("the metadata store does not answer; this broker's lease may end: %s", error)
            self.is_silent = True
        else:
            self.is_silent = False
            return True
        return False

    async def _renew(self, lease: Lease) -> None:
        sent_ms = self._environment.lease_clock_ms()
        try:
            await lease.renew()
        except LeaseLost:
            logger.warning("broker %d was not heard of in time, and its registration is gone", self.node_id)
            self.lease = None
            self.term.end()
        else:
            if lease.lapses:
                self.term.renewed(sent_ms, lease.ttl_ms)

    async def watch_pauses(self) -> None:
        """Notices that this process has stood still, and asks the store what has become of it; for as long as the
        broker runs. A lease that ends with this process can have ended for nobody else."""
        try:
            while True:
                await self._environment.sleep(BEAT_MS)
                if self.pause_detector.check(self._environment.lease_clock_ms()):
                    try:
                        await self._ask_who_we_are()
                    except OSError as error:
                        logger.debug("whether broker %d is still registered is not known: %s", self.node_id, error)
        except StoreClosed:
            return

    async def _ask_who_we_are(self) -> None:
        """Raises StoreClosed, OSError."""
        asked_ms, epoch, key = self._environment.lease_clock_ms(), self.epoch, broker_key(self.node_id)
        found = (await self._store.read(key)).entries.get(key)
        if found is not None and found.revision == epoch:
            self.pause_detector.confirmed(asked_ms)
        elif self.epoch == epoch:
            self._fenced()  # our image does not say so yet

    def _wake(self) -> None:
        self._wakes.give()

    # -- going --------------------------------------------------------------------------------------------------

    async def announce_stop(self) -> None:
        """From now on this broker joins no in-sync set, and the controller gives what it leads to others.

        Raises Conflict when it was fenced, LeaseLost, OSError.
        """
        self._is_leaving = True
        await self._store.commit(
            Txn(
                expect={broker_key(self.node_id): self.epoch},
                put={stopping_key(self.node_id): encode_stopping(self.epoch)},
                lease=self.lease,
            )
        )

    async def leave(self) -> None:
        """Gives the lease back, and everything under it with it. What fails is said; the lease ends by itself. A store
        that left the last renewal without an answer is not waited for."""
        lease, self.lease = self.lease, None
        self._is_leaving = True
        self.term.end()
        if lease is None:
            return
        if self.is_silent:
            logger.warning("the registration is not taken back, for the store is silent, and ends by itself")
            return
        try:
            await lease.revoke()
        except (OSError, StoreClosed) as error:
            logger.warning("the registration could not be taken back, and ends by itself: %s", error)


def _nothing() -> None: ...
