"""How many files and connections the limit of open files allows this process."""

import resource
import sys

# Half of the descriptors allowed, for sockets need the other half; and no more than this where the limit is huge.
DESCRIPTORS_MAX = 32_768
RESERVED_DESCRIPTORS = 20


def raise_descriptor_limit() -> int:
    """Raises the soft limit of open files to the hard one, and returns it. For the process, so the server calls it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (OSError, ValueError):
        return soft  # macOS refuses an unlimited hard limit; what we have must do
    return hard


def descriptor_budget() -> int:
    """How many descriptors files may hold under the present limit."""
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return DESCRIPTORS_MAX if soft == resource.RLIM_INFINITY else max(4, min(soft // 2, DESCRIPTORS_MAX))


def socket_budget() -> int:
    """How many descriptors are left for connections, with some in hand for listening, locks and short-lived files."""
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return sys.maxsize if soft == resource.RLIM_INFINITY else max(4, soft - descriptor_budget() - RESERVED_DESCRIPTORS)
