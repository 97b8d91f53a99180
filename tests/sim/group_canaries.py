"""Mistakes of coordinators of groups, put in on purpose (canaries.py)."""

from collections.abc import Callable
from typing import Any

from odradek.broker.coordinator.commits import Commits
from odradek.broker.coordinator.shard import Shard
from odradek.broker.coordinator.turn import Part, Reply
from odradek.broker.disk.disk import Disk
from odradek.broker.group.consumer.commit_checks import ALL_GOOD, CommitCheck
from odradek.broker.membership.registration import Registration
from odradek.broker.replica.append_ticket import AppendTicket

Function = Callable[..., Any]


def replied_at_once(appended: Function) -> Function:
    """What is in the leader's log alone is told as committed."""

    def early(commits: Commits, ticket: AppendTicket, part: Part) -> None:
        for reply in part.replies:
            commits._answer(reply.waiting, reply.answer)  # pyright: ignore
        appended(commits, ticket, part._replace(replies=[]))

    return early


def read_at_once(reply: Function) -> Function:
    """What the machine holds is told, whether or not it is committed."""
    del reply

    def early(commits: Commits, entity_id: str, each: Reply) -> None:
        del entity_id
        commits._answer_by_lease(each)  # pyright: ignore

    return early


def not_loaded(load: Function) -> Function:
    """The coordinator begins with nothing."""
    del load

    async def begin(shard: Shard[Any], disk: Disk) -> None:
        del disk
        shard.loaded()

    return begin


def any_generation(validate: Function) -> Function:
    """Whoever commits for a classic group is heard, in whatever generation."""
    del validate

    def accept(*_: Any, **__: Any) -> None: ...

    return accept


def lease_alone(require: Function) -> Function:
    """A broker counts on its lease, though a controller that hears nothing of it has given its partitions to others."""
    del require

    def require_unfenced(registration: Registration) -> None:
        registration.require_lease()

    return require_unfenced


def any_epoch(check: Function) -> Function:
    """Whoever commits for a group of KIP-848 is heard, in whatever epoch."""
    del check

    def accept(*_: Any, **__: Any) -> CommitCheck:
        return ALL_GOOD

    return accept
