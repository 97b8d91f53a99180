"""ACLs in the metadata store: one key each, named by the hash of what the ACL says.

So the same ACL twice is one key, whoever writes it, and a deletion needs no search. What takes several commits is done
in the order that never allows more than before and after: ACLs that deny are there before those that allow, and go
after them. Each commit is guarded by what the caller expects (that it is the controller).
"""

import hashlib
import json
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple, TypeVar

from odradek.broker.access.acl import AclBinding, PatternType, Permission
from odradek.broker.access.operations import Operation
from odradek.broker.access.resource import ResourceType
from odradek.broker.cluster.keys import ACLS_PREFIX, MalformedMetadata
from odradek.broker.cluster.store import CHUNK_SIZE, COMMIT_BYTES_MAX, Event, MetadataStore, Txn
from odradek.broker.cluster.values import Fields, encode

Acls = Mapping[str, AclBinding]
"""By the hash, which is what stands behind ACLS_PREFIX."""

Told = Callable[[Sequence[AclBinding]], None]
"""Is told of ACLs that were stored, or removed."""

_E = TypeVar("_E", bound=IntEnum)


class AclChange(NamedTuple):
    """All ACLs afterwards, and what is different."""

    acls: Acls
    added: tuple[AclBinding, ...]
    removed: tuple[AclBinding, ...]


# -- keys and values --------------------------------------------------------------------------------------------------


def acl_hash(binding: AclBinding) -> str:
    """43 characters: SHA-256 of all fields."""
    text = json.dumps(binding, ensure_ascii=True, separators=(",", ":"))
    return urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")


def acl_key(binding: AclBinding) -> str:
    return ACLS_PREFIX + acl_hash(binding)


def encode_acl(binding: AclBinding) -> bytes:
    return encode(
        {
            "resource_type": binding.kind.value,
            "resource_name": binding.name,
            "pattern_type": binding.pattern.value,
            "principal": binding.principal,
            "host": binding.host,
            "operation": binding.operation.value,
            "permission_type": binding.permission.value,
        }
    )


def decode_acl(value: bytes, name: str) -> AclBinding:
    """Raises MalformedMetadata: a broker that does not know what an ACL means must not serve as if it were not there.

    `name`: what stands behind ACLS_PREFIX.
    """
    fields = Fields(value, f"ACL {name}")
    binding = AclBinding(
        _member(fields, ResourceType, "resource_type"),
        fields.text("resource_name"),
        _member(fields, PatternType, "pattern_type"),
        fields.text("principal"),
        fields.text("host"),
        _member(fields, Operation, "operation"),
        _member(fields, Permission, "permission_type"),
    )
    if ":" not in binding.principal:
        raise fields.wrong("principal")
    if acl_hash(binding) != name:
        raise MalformedMetadata(f"ACL {name} stands under another key than its own: who wrote it?")
    return binding


def _member(fields: Fields, kind: type[_E], name: str) -> _E:
    try:
        return kind(fields.number(name))
    except ValueError:
        raise fields.wrong(name) from None


def changed(acls: Acls, events: Iterable[tuple[str, Event]]) -> AclChange:
    """`events`: of ACL keys, with what stands behind their prefix. Raises MalformedMetadata."""
    after = dict(acls)
    added: dict[str, AclBinding] = {}
    removed: dict[str, AclBinding] = {}
    for name, event in events:
        before = after.pop(name, None)
        if event.value is not None:
            after[name] = decode_acl(event.value, name)
            if before is None:
                added[name] = after[name]
        elif before is not None:
            removed[name] = before
    return AclChange(after, tuple(added.values()), tuple(removed.values()))


# -- changes ----------------------------------------------------------------------------------------------------------


async def add_acls(
    store: MetadataStore, bindings: Iterable[AclBinding], guard: Mapping[str, int], on_stored: Told
) -> int:
    """Returns the revision at which all of them are there. `on_stored` is called with those of each commit, when that
    is done. Raises what `MetadataStore.commit` raises."""
    revision = 0
    for chunk in _chunks(sorted(dict.fromkeys(bindings), key=_denies_first)):
        put = {acl_key(binding): encode_acl(binding) for binding in chunk}
        revision = await store.commit(Txn(expect=guard, put=put))
        on_stored(chunk)
    return revision


async def remove_acls(
    store: MetadataStore, bindings: Iterable[AclBinding], guard: Mapping[str, int], on_stored: Told
) -> int:
    """As `add_acls`; returns the revision at which none of them is there."""
    revision = 0
    for chunk in _chunks(sorted(dict.fromkeys(bindings), key=_denies_first, reverse=True)):
        revision = await store.commit(Txn(expect=guard, delete=tuple(map(acl_key, chunk))))
        on_stored(chunk)
    return revision


def _denies_first(binding: AclBinding) -> bool:
    return binding.permission is not Permission.DENY


def _chunks(bindings: Iterable[AclBinding]) -> Iterator[list[AclBinding]]:
    """In portions that one commit takes, in order."""
    chunk: list[AclBinding] = []
    size_bytes = 0
    for binding in bindings:
        its_bytes = len(encode_acl(binding))
        if chunk and (len(chunk) >= CHUNK_SIZE or size_bytes + its_bytes > COMMIT_BYTES_MAX // 2):
            yield chunk
            chunk, size_bytes = [], 0
        chunk.append(binding)
        size_bytes += its_bytes
    if chunk:
        yield chunk
