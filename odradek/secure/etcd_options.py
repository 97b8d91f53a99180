"""Whether a store on etcd is kept from others. Pure.

Whoever writes to it is super user: users, passwords and ACLs lie there.
"""

from collections.abc import Mapping

__all__ = ["STORE_OPTION", "etcd_problem"]

STORE_OPTION = "metadata.store"
CA = "metadata.etcd.ca.location"
CERTIFICATE = "metadata.etcd.certificate.location"
KEY = "metadata.etcd.key.location"
USER = "metadata.etcd.username"
PASSWORD = "metadata.etcd.password"  # noqa: S105  (the name of an option)


def etcd_problem(options: Mapping[str, str]) -> str | None:
    """What is missing in the options of a broker whose store is on etcd; None for nothing, or another store."""
    if not options.get(STORE_OPTION, "").startswith("etcd:"):
        return None
    if not options.get(CA):
        return (
            f"etcd without TLS: whoever is on the way to it reads and changes passwords and rights; set {CA}, and "
            f"{USER} with {PASSWORD}, or {CERTIFICATE} with {KEY}"
        )
    has_password = bool(options.get(USER)) and bool(options.get(PASSWORD))
    has_certificate = bool(options.get(CERTIFICATE)) and bool(options.get(KEY))
    if not has_password and not has_certificate:
        return (
            f"etcd without credentials: whoever reaches it reads and changes passwords and rights; set {USER} with "
            f"{PASSWORD}, or {CERTIFICATE} with {KEY}"
        )
    return None
