"""ACLs in the store: one key each, written and removed in portions that never allow more than before and after, and
followed by the image; on stores in memory, in a file, behind a socket, and on etcd."""

from collections.abc import AsyncGenerator, Sequence

import pytest

from odradek.broker.access.acl import AclBinding, PatternType, Permission
from odradek.broker.access.operations import Operation
from odradek.broker.access.resource import ResourceType
from odradek.broker.cluster.acls import acl_hash, acl_key, add_acls, changed, decode_acl, encode_acl, remove_acls
from odradek.broker.cluster.embedded import EmbeddedStore
from odradek.broker.cluster.image import ClusterImage, compare
from odradek.broker.cluster.keys import ACLS_PREFIX, KeyKind, MalformedMetadata, parse_key
from odradek.broker.cluster.store import OPERATIONS_MAX, Change, Conflict, Event, MetadataStore, Txn
from odradek.broker.disk.memory_disk import MemoryDisk
from tests.broker.access.rules import acl, deny
from tests.contract.test_store import STORES, etcd

GUARD = "/guard"
STRANGE = acl(name='*"\\/\n\u00e9', principal="User:CN=x, OU=\u2028", host="\0")
"""A host is whatever a client said."""


def nobody(bindings: Sequence[AclBinding]) -> None:
    """Is told nothing."""


@pytest.fixture(params=["memory", "embedded", "memory, socket", "etcd"])
async def store(request: pytest.FixtureRequest) -> AsyncGenerator[MetadataStore]:
    opening = etcd(request.getfixturevalue("etcd_server")) if request.param == "etcd" else STORES[request.param]()
    async with opening as opened:
        yield opened


async def image_of(store: MetadataStore) -> ClusterImage:
    return ClusterImage.from_snapshot(await store.read("/"))


@pytest.mark.parametrize("binding", [acl(), deny(Operation.ALL, pattern=PatternType.PREFIXED), STRANGE])
def test_what_is_written_is_read(binding: AclBinding) -> None:
    kind, name = parse_key(acl_key(binding))
    assert (kind, name) == (KeyKind.ACL, acl_hash(binding))
    assert decode_acl(encode_acl(binding), name) == binding


def test_each_field_makes_it_another_one() -> None:
    others = [
        acl(Operation.WRITE),
        acl(name="order"),
        acl(kind=ResourceType.GROUP),
        acl(pattern=PatternType.PREFIXED),
        acl(principal="User:alic"),
        acl(host="10.0.0.1"),
        acl(permission=Permission.DENY),
        acl(name='orders",3,"'),
    ]
    assert len({acl_hash(each) for each in (acl(), *others)}) == 1 + len(others)


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"{}",
        encode_acl(acl()).replace(b'"operation":3', b'"operation":99'),
        encode_acl(acl()).replace(b'"resource_type":2', b'"resource_type":8'),
        encode_acl(acl()).replace(b'"permission_type":3', b'"permission_type":1'),
        encode_acl(acl()).replace(b'"v":1', b'"v":2'),
        encode_acl(acl(name="other")),
    ],
)
def test_what_is_not_understood_is_not_passed_over(value: bytes) -> None:
    """An ACL that denies would be."""
    with pytest.raises(MalformedMetadata):
        decode_acl(value, acl_hash(acl()))
    with pytest.raises(MalformedMetadata):
        ClusterImage().apply(Change(1, (Event(acl_key(acl()), value),)))


async def test_they_are_added_and_removed(store: MetadataStore) -> None:
    await add_acls(store, [acl(), deny(), acl()], {}, nobody)
    assert set((await image_of(store)).acls.values()) == {acl(), deny()}
    revision = await remove_acls(store, [acl(), acl(Operation.WRITE)], {}, nobody)
    image = await image_of(store)
    assert set(image.acls.values()) == {deny()}
    assert image.revision == revision
    assert len((await store.read(ACLS_PREFIX)).entries) == 1


async def test_many_go_in_portions_and_those_that_deny_are_always_there(store: MetadataStore) -> None:
    allowing = [acl(name=f"t{number}") for number in range(150)]
    denying = [deny(name=f"t{number}") for number in range(150)]
    told: list[AclBinding] = []
    before = (await store.read("/")).revision
    await add_acls(store, [*allowing, *denying], {}, told.extend)
    assert sorted(told) == sorted([*allowing, *denying]), "each is told once"
    await remove_acls(store, [*denying, *allowing], {}, nobody)
    there = set[AclBinding]()
    changes = [change async for change in _history(store, before)]
    assert len(changes) >= 6
    image = ClusterImage()
    for change in changes:
        assert len(change.events) <= OPERATIONS_MAX
        image, delta = image.apply(change)
        there = there.union(delta.acls_added).difference(delta.acls_removed)
        assert set(image.acls.values()) == there
        allowed = {each.name for each in there if each.permission is Permission.ALLOW}
        assert allowed <= {each.name for each in there if each.permission is Permission.DENY}
    assert not there


async def _history(store: MetadataStore, after: int) -> AsyncGenerator[Change]:
    last = (await store.read("/")).revision
    async for change in store.watch("/", after):
        yield change
        if change.revision == last:
            return


async def test_large_ones_fit_into_commits(store: MetadataStore) -> None:
    await add_acls(store, [acl(name=f"{number}" + "é" * 32_000) for number in range(30)], {}, nobody)
    assert len((await image_of(store)).acls) == 30


async def test_a_commit_is_guarded(store: MetadataStore) -> None:
    revision = await store.commit(Txn(put={GUARD: b"1"}))
    await add_acls(store, [acl()], {GUARD: revision}, nobody)
    await store.commit(Txn(put={GUARD: b"2"}))
    for change in (add_acls, remove_acls):
        told: list[AclBinding] = []
        with pytest.raises(Conflict):
            await change(store, [acl(), deny()], {GUARD: revision}, told.extend)
        assert told == []
    assert set((await image_of(store)).acls.values()) == {acl()}


async def test_they_outlive_the_process() -> None:
    disk = MemoryDisk()
    store = EmbeddedStore.open(disk, "")
    await add_acls(store, [STRANGE, deny()], {}, nobody)
    await store.close()
    again = EmbeddedStore.open(disk, "")
    assert set((await image_of(again)).acls.values()) == {STRANGE, deny()}
    await again.close()


def test_the_image_tells_what_is_different() -> None:
    added = Change(1, tuple(Event(acl_key(each), encode_acl(each)) for each in (acl(), deny())))
    image, delta = ClusterImage().apply(added)
    assert (set(delta.acls_added), delta.acls_removed) == ({acl(), deny()}, ())
    again, delta = image.apply(Change(2, added.events[:1]))
    assert (delta.acls_added, delta.acls_removed) == ((), ()), "the same once more"
    assert again.acls == image.acls
    other, delta = again.apply(Change(3, (Event(acl_key(deny()), None), Event(acl_key(acl(name="x")), None))))
    assert (delta.acls_added, delta.acls_removed) == ((), (deny(),))
    found = compare(other, image)
    assert (found.acls_added, found.acls_removed) == ((deny(),), ())
    found = compare(image, other)
    assert (found.acls_added, found.acls_removed) == ((), (deny(),))
    assert set(image.acls.values()) == {acl(), deny()}, "an image never changes"


def test_a_change_of_something_else_leaves_them_as_they_are() -> None:
    change = changed({}, [(acl_hash(acl()), Event(acl_key(acl()), encode_acl(acl())))])
    image = ClusterImage(1, acls=change.acls)
    after, delta = image.apply(Change(2, (Event("/somebody/elses", b""),)))
    assert after.acls is image.acls
    assert (delta.acls_added, delta.acls_removed) == ((), ())


def test_a_principal_that_is_none_is_not_passed_over() -> None:
    binding = acl(principal="alice")
    with pytest.raises(MalformedMetadata, match="has no usable field 'principal'"):
        decode_acl(encode_acl(binding), acl_hash(binding))
