"""What may be done where an authorizer is set: the rules, what was decided by them, and the audit.

A decision is kept until the rules change: a Produce asks the same question as the one before it. What is kept is
bounded; where it is full all of it is forgotten, for a client that asks for ever new names must not fill the memory.

**Enforced** is what is decided only from a moment on that all brokers agree on (`enforce`); before that everything is
permitted (broker/handling/enforcement.py).

**Certain** are rights while this broker knows that it has the newest ACLs (membership/standing.py). Super users and
brokers, whom no ACL of the moment is likely to concern, are answered without that; anybody else is not.
"""

import logging
from collections.abc import Callable, Iterable
from typing import Final

from odradek.broker.access.access import Access, Asker, refusal
from odradek.broker.access.acl import AclBinding
from odradek.broker.access.audit import logger, tell
from odradek.broker.access.authorizer import Authorizer, Decision
from odradek.broker.access.operations import SUPPORTED, Operation, bit_field
from odradek.broker.access.principal import Principal
from odradek.broker.access.resource import CLUSTER, Resource, ResourceType

KEPT_MAX: Final = 10_000
"""Decisions, some 5 MB of them."""

_Question = tuple[Principal, str, Operation, Resource]


class RuledAccess(Access):
    """By the rules of an `Authorizer`, which change."""

    is_ruled = True

    def __init__(self, authorizer: Authorizer, is_current: Callable[[], bool]) -> None:
        """`is_current`: whether this broker knows that it has the newest ACLs."""
        self.authorizer = authorizer
        self._is_current = is_current
        self._decisions: dict[_Question, Decision] = {}
        self._of_kinds: dict[tuple[Principal, str, Operation, ResourceType], bool] = {}

    # -- changes --------------------------------------------------------------------------------------------------

    def change(self, added: Iterable[AclBinding], removed: Iterable[AclBinding]) -> None:
        """The ACLs have changed."""
        self.authorizer = self.authorizer.with_index(self.authorizer.index.changed(added, removed))
        self._begin_anew()

    def enforce(self, is_enforced: bool) -> None:
        """From now on the rules count, or do not."""
        if is_enforced != self.is_enforced:
            self.is_enforced = is_enforced
            self._begin_anew()

    def _begin_anew(self) -> None:
        self._decisions.clear()
        self._of_kinds.clear()
        self.generation += 1

    # -- questions ------------------------------------------------------------------------------------------------

    def permits(self, asker: Asker, operation: Operation, resource: Resource, *, logs_refusal: bool = True) -> bool:
        return not self.is_enforced or self._permits(asker, operation, resource, logs_refusal=logs_refusal)

    def _permits(self, asker: Asker, operation: Operation, resource: Resource, *, logs_refusal: bool) -> bool:
        question = asker.principal, asker.host, operation, resource
        decision = self._decisions.get(question)
        if decision is None:
            decision = self._decided(question)
        if decision.allows:
            if logger.isEnabledFor(logging.DEBUG):
                tell(str(asker.principal), asker.host, operation, resource, asker.request_name, decision)
            return True
        if logs_refusal:
            self.denied_count += 1
            if logger.isEnabledFor(logging.INFO):
                tell(str(asker.principal), asker.host, operation, resource, asker.request_name, decision)
        return False

    def _decided(self, question: _Question) -> Decision:
        """The decision, which is kept from now on."""
        if (decision := self._decisions.get(question)) is None:
            decision = self.authorizer.decide(*question)
            if len(self._decisions) >= KEPT_MAX:
                self._decisions.clear()
            self._decisions[question] = decision
        return decision

    @property
    def kept_count(self) -> int:
        """Decisions that are kept."""
        return len(self._decisions) + len(self._of_kinds)

    def permits_any(self, asker: Asker, operation: Operation, kind: ResourceType) -> bool:
        if not self.is_enforced:
            return True
        question = asker.principal, asker.host, operation, kind
        if (allows := self._of_kinds.get(question)) is None:
            if len(self._of_kinds) >= KEPT_MAX:
                self._of_kinds.clear()
            allows = self._of_kinds[question] = self.authorizer.decide_any(*question)
        return allows

    def require_by_rules(self, asker: Asker, operation: Operation, resource: Resource) -> None:
        if not self._permits(asker, operation, resource, logs_refusal=True):
            raise refusal(asker, operation, resource)

    def authorized_operations(self, asker: Asker, resource: Resource) -> int:
        """No audit: nothing is granted or refused by that."""
        supported = SUPPORTED[resource.kind]
        if not self.is_enforced:
            return bit_field(*supported)
        principal, host = asker.principal, asker.host
        return bit_field(*(each for each in supported if self._decided((principal, host, each, resource)).allows))

    # -- certainty ------------------------------------------------------------------------------------------------

    @property
    def is_current(self) -> bool:
        return self._is_current()

    def is_certain(self, asker: Asker) -> bool:
        return self._is_current() or self._is_broker(asker)

    def _is_broker(self, asker: Asker) -> bool:
        """Whether it is a super user, or may do what brokers alone do."""
        question = asker.principal, asker.host, Operation.CLUSTER_ACTION, CLUSTER
        return self._decided(question).allows
