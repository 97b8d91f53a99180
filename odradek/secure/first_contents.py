"""Writes the first users and ACLs into the store of a cluster that does not run.

The broker reads them at its start, so that the first client that comes can authenticate, and no right is missing.
"""

from collections.abc import Mapping, Sequence

from odradek.broker.access.acl import AclCodes, binding_of
from odradek.broker.cluster.acls import add_acls
from odradek.broker.cluster.scram_store import write_first_user
from odradek.broker.cluster.store import MetadataStore
from odradek.broker.disk.disk import Disk
from odradek.broker.offline.rescue.stores import opened
from odradek.client.admin.acls import AclBinding

__all__ = ["StoreRefused", "write_contents", "write_user"]


class StoreRefused(Exception):
    """The store is not one that this may be written to; one sentence says why. Nothing was changed."""


async def write_contents(
    disk: Disk,
    address: str,
    options: Mapping[str, str],
    passwords: Mapping[str, str],
    mechanism: str,
    iterations: int,
    acls: Sequence[AclBinding],
) -> None:
    """Into an empty store. `passwords`: by user. Raises StoreRefused, DirectoryRefused, OSError."""
    async with opened(address, disk, options) as store:
        snapshot = await store.read("/")
        if snapshot.entries:
            raise StoreRefused(
                f"{address} holds the metadata of a cluster already: make users and ACLs there by `odradek users add` "
                "and `odradek acls add`"
            )
        await _add_acls(store, acls)
        for user, password in passwords.items():
            await write_first_user(store, mechanism, user, password, iterations)


async def write_user(
    disk: Disk, address: str, user: str, mechanisms: Sequence[str], password: str, iterations: int
) -> None:
    """Into the store of a cluster that does not run, or that never ran. Raises DirectoryRefused, OSError, ValueError
    for what Kafka refuses."""
    async with opened(address, disk) as store:
        for mechanism in mechanisms:
            await write_first_user(store, mechanism, user, password, iterations)


async def _add_acls(store: MetadataStore, acls: Sequence[AclBinding]) -> None:
    bindings = [
        binding_of(
            AclCodes(
                int(acl.resource_type),
                acl.resource_name,
                int(acl.pattern_type),
                acl.principal,
                acl.host,
                int(acl.operation),
                int(acl.permission),
            )
        )
        for acl in acls
    ]
    await add_acls(store, bindings, {}, _nothing)


def _nothing(bindings: object) -> None: ...
