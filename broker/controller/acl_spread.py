"""When a change of ACLs counts everywhere: the controller answers it then, and not before.

A client that was told that somebody's rights are gone must not find them still there on some other broker. So the
controller waits until every registered broker has applied the change (applied_revisions.py), or answers nobody by what
it knew before. One that is there and says nothing is waited for until the request's time is up: REQUEST_TIMED_OUT
says that the change is stored, and who has not confirmed it.
"""

from contextlib import suppress

from odradek.broker.cluster.image import ClusterImage, Delta
from odradek.broker.controller.applied_revisions import AppliedRevisions
from odradek.broker.controller.controller import Controller
from odradek.broker.membership.image_follower import ImageFollower
from odradek.broker.membership.registration import Registration
from odradek.broker.membership.standing import TERM_MS
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.runtime.environment import Environment
from odradek.runtime.signal import Signal


class AclSpread:
    """Of one broker, which may be the controller."""

    def __init__(
        self, controller: Controller, metadata: ImageFollower, registration: Registration, environment: Environment
    ) -> None:
        self._controller = controller
        self._metadata = metadata
        self._registration = registration
        self._environment = environment
        self._applied = AppliedRevisions(registration.node_id, TERM_MS, environment.monotonic_ms())
        self._news = Signal()
        metadata.subscribe(self._follow)

    def _follow(self, image: ClusterImage, delta: Delta) -> None:
        self._applied.follow(image, delta, self._environment.monotonic_ms())
        if delta.brokers or delta.is_controller_changed:
            self._news.give()

    def heard(self, broker_id: int, broker_epoch: int, revision: int) -> None:
        """A heartbeat came: the broker has applied everything up to `revision`."""
        self._applied.heard(broker_id, broker_epoch, revision)
        self._news.give()

    async def everywhere(self, timeout_ms: float) -> None:
        """Returns once all changes of ACLs that this broker knows of count everywhere.

        Those of former controllers, too, which may have been answered by nobody: who repeats one must not be told that
        it is done before that. Raises KafkaError: REQUEST_TIMED_OUT, NOT_CONTROLLER.
        """
        deadline_ms = self._environment.monotonic_ms() + timeout_ms
        revision = self._metadata.image.revision
        while True:
            self._controller.require_active()
            seen, now_ms = self._news.count, self._environment.monotonic_ms()
            lease = self._registration.lease
            behind = self._applied.behind(revision, self._metadata.image, may_be_others=lease is None or lease.lapses)
            if not behind.brokers and behind.until_ms <= now_ms:
                return
            if now_ms >= deadline_ms:
                raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, _told(behind.brokers))
            look_again_ms = deadline_ms if behind.brokers else min(deadline_ms, behind.until_ms)
            with suppress(TimeoutError):
                await self._news.after(seen, look_again_ms - now_ms)


def _told(brokers: tuple[int, ...]) -> str:
    if not brokers:
        return "the change is stored; a broker that is gone may go by the old rights for a moment"
    names = ", ".join(map(str, brokers))
    return f"the change is stored, but broker(s) {names} have not confirmed it, and may go by the old one"
