"""From when on an authorizer's rules count, and that somebody hears of it while they do not.

The rules are those of the newest image of the cluster: its ACLs, and whether all registered brokers can keep them
(`access.acls` of cluster/features.py). While one of them cannot, it would answer what others refuse; so nothing is
refused anywhere, and everybody may do everything. That an authorizer is set and refuses nothing is a WARNING, again and
again, which names the brokers, and a metric.
"""

import logging
from contextlib import suppress
from typing import Final

from odradek.broker.access.acl_index import AclIndex
from odradek.broker.access.authorizer import Authorizer
from odradek.broker.access.operations import Operation
from odradek.broker.access.principal import BROKER_ITSELF, Principal, parse_super_users
from odradek.broker.access.resource import CLUSTER
from odradek.broker.access.ruled_access import RuledAccess
from odradek.broker.cluster.features import ACLS, counts
from odradek.broker.cluster.image import ClusterImage, Delta
from odradek.broker.cluster_member import ClusterMember
from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.startup_errors import StartRefused
from odradek.runtime.tasks import Tasks

logger = logging.getLogger(__name__)

WARNING_INTERVAL_MS: Final = 60_000.0


class Enforcement:
    """The rules of one broker, which follow its image."""

    def __init__(self, config: BrokerConfig, member: ClusterMember) -> None:
        """There is an authorizer."""
        assert member.standing is not None
        self._standing = member.standing
        image = member.metadata.image
        self._member = member
        self.access = RuledAccess(authorizer_of(config, image), self._standing.is_sure)
        self.access.enforce(_counts(image))
        member.metadata.subscribe(self._follow)

    def _follow(self, image: ClusterImage, delta: Delta) -> None:
        if delta.acls_added or delta.acls_removed:
            self.access.change(delta.acls_added, delta.acls_removed)
        was_enforced = self.access.is_enforced
        self.access.enforce(_counts(image))
        if self.access.is_enforced and not was_enforced:
            logger.info("the authorizer's rules count from now on: who is allowed nothing may do nothing")

    def refuse_unable_brokers(self, principal: Principal | None) -> None:
        """`principal`: as whom this broker reaches the others, who would not let it replicate if it may not do what
        brokers do; None: that is not known before it logs in. Raises StartRefused."""
        if principal is None:
            return
        decision = self.access.authorizer.may_from_somewhere(principal, Operation.CLUSTER_ACTION, CLUSTER)
        if not decision.allows:
            raise StartRefused(
                f"brokers reach one another as {principal}, who may not do what brokers do (CLUSTER_ACTION), for "
                f"{decision.why}; replication would stop: add {principal} to super.users"
            )

    async def begin(self, tasks: Tasks) -> None:
        """Returns once clients may be answered, by the newest ACLs, from the first request on; where the store does not
        answer they are turned away until it does. Raises StoreClosed, StoreWentBack."""
        with suppress(OSError):
            await self._standing.confirm()
        tasks.start(self._warn(), "warn of rules that do not count")

    async def _warn(self) -> None:
        """Warns, for as long as the broker runs."""
        while True:
            if not self.access.is_enforced:
                image = self._member.metadata.image
                unable = [str(each) for each in sorted(image.registered) if not _can(image, each)]
                logger.warning(
                    "there is an authorizer, and it refuses nothing: EVERYBODY MAY DO EVERYTHING until broker(s) %s "
                    "are upgraded, or unregistered",
                    ", ".join(unable),
                )
            await self._member.environment.sleep(WARNING_INTERVAL_MS)


def authorizer_of(config: BrokerConfig, image: ClusterImage) -> Authorizer:
    """The rules as they are now."""
    return Authorizer(
        parse_super_users(config.super_users) | {BROKER_ITSELF},
        allows_without_acl=config.allow_everyone_if_no_acl_found,
        index=AclIndex.of(image.acls.values()),
    )


def _counts(image: ClusterImage) -> bool:
    return counts(ACLS, image.registered, image.nodes, image.features)


def _can(image: ClusterImage, broker_id: int) -> bool:
    node = image.nodes.get(broker_id)
    return node is not None and node.features.get(ACLS, 0) > 0
