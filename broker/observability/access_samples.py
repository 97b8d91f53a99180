"""What a broker tells of its authorizer; without one all of it is 0. Pure."""

from odradek.broker.access.access import Access
from odradek.broker.observability import metric_rows as rows
from odradek.broker.observability.sample import Sample


def access_samples(access: Access, acl_count: int) -> list[Sample]:
    """Of one broker, whose metadata has so many ACLs."""
    return [
        (rows.ACL_COUNT, (), acl_count),
        (rows.DENIALS, (), access.denied_count),
        (rows.AUTHORIZER_WITHOUT_EFFECT, (), access.is_ruled and not access.is_enforced),
        (rows.ACLS_UNCERTAIN, (), not access.is_current),
    ]
