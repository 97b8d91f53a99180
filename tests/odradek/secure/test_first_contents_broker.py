"""What is written into the store is what the broker's own rooms read from it."""

from pathlib import Path

from odradek.broker.cluster import acls
from odradek.broker.cluster import scram_credentials as scram
from odradek.broker.disk.file_disk import FileDisk
from odradek.broker.offline.rescue.stores import opened
from odradek.client.admin.acls import AclBinding, AclOperation, AclPatternType, AclResourceType
from odradek.secure.first_contents import write_contents
from odradek.secure.plan import rights_of


async def test_the_broker_reads_users_and_acls(tmp_path: Path) -> None:
    address = f"embedded:{tmp_path}/data"
    wanted = [
        *rights_of("billing"),
        AclBinding(AclResourceType.TOPIC, "p.", "User:*", AclOperation.ALL, pattern_type=AclPatternType.PREFIXED),
    ]
    await write_contents(FileDisk(), address, {}, {"alice": "pencil"}, "SCRAM-SHA-512", 4096, wanted)
    async with opened(address, FileDisk()) as store:
        stored = (await store.read("/acls/")).entries
        users = (await store.read("/scram/users/")).entries
    read = {acls.decode_acl(entry.value, key.removeprefix("/acls/")) for key, entry in stored.items()}
    assert {(int(acl.kind), acl.name, int(acl.pattern), acl.principal, int(acl.operation)) for acl in read} == {
        (int(acl.resource_type), acl.resource_name, int(acl.pattern_type), acl.principal, int(acl.operation))
        for acl in wanted
    }
    (credential,) = [scram.decode_credential(entry.value) for entry in users.values()]
    assert credential.iterations == 4096
