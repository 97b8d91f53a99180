"""What ends a broker with one sentence, and exit code 1: what that is, and how other errors come to be it."""

import errno
import os
from collections.abc import Generator
from contextlib import contextmanager

from odradek.broker.cluster.keys import MalformedMetadata
from odradek.broker.cluster.store import StoreDamaged, StoreWentBack, Superseded
from odradek.broker.config.listeners import Listener
from odradek.broker.config.option import ConfigError
from odradek.broker.directories.meta_properties import ForeignDirectory
from odradek.broker.membership.registration import RegistrationRefused


class BrokerFailed(Exception):
    """The broker had to stop; one sentence says why."""


class StartRefused(Exception):
    """The broker cannot start as it was told to; one sentence says why, and what to do."""


REFUSALS = (
    BrokerFailed,
    ConfigError,
    ForeignDirectory,
    MalformedMetadata,
    StartRefused,
    StoreDamaged,
    StoreWentBack,
    Superseded,
)


@contextmanager
def refusing_id() -> Generator[None]:
    """Another broker with our id, as the sentence that the user reads. Raises StartRefused."""
    try:
        yield
    except RegistrationRefused as error:
        raise StartRefused(str(error)) from error


@contextmanager
def refusing_address(address: Listener, what: str) -> Generator[None]:
    """An address that is taken, not ours, or unknown, as the sentence that the user reads. Raises StartRefused."""
    try:
        yield
    except OSError as error:
        # asyncio words its own text around an errno; a name that cannot be resolved has a number of another kind.
        number = error.errno or 0
        reason = os.strerror(number) if number in errno.errorcode else error.strerror or str(error)
        raise StartRefused(f"cannot {what} on {address.address}: {reason}") from error


def explained(error: BaseException) -> str | None:
    """Why no broker can go on with this, in one sentence; None for anything else."""
    match error:
        case StoreWentBack():
            return (
                f"{error}. What it does not know any more may be in the data directories: stop all brokers, and bring "
                "the newest backup of the metadata back (odradek cluster restore), or rebuild it from the directories "
                "(odradek cluster rebuild)"
            )
        case Superseded():
            return f"{error}: does it run on a copy of this one's data directory? Start one of the two only"
        case MalformedMetadata():
            return f"the metadata cannot be followed: {error}"
        case _:
            return None
