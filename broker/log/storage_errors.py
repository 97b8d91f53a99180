"""What a disk raises, as the protocol says it: KAFKA_STORAGE_ERROR.

Below the log an error of the disk is an OSError; whoever calls the log gets a KafkaError, which a handler can answer.
Whoever owns the log is told of the error itself: the device may be gone. A volume that is full, or a limit of the
process, says nothing about the device (`means_no_room`): the append is refused, and the directory stays in use.
"""

import errno
from collections.abc import Callable
from functools import wraps
from typing import Concatenate, Final, ParamSpec, Protocol, TypeVar, cast

from odradek.protocol.errors import ErrorCode, KafkaError

NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.ENOMEM})

P = ParamSpec("P")
R = TypeVar("R")


class OnDisk(Protocol):
    """A thing that is on a disk."""

    @property
    def on_disk_error(self) -> Callable[[OSError], None]:
        """Whom to tell what the disk raises."""
        ...


S = TypeVar("S")


def watched(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """As `guarded`, for methods of what is `OnDisk`, and tells."""

    @wraps(method)
    def watching(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return method(self, *args, **kwargs)
        except OSError as error:
            cast(OnDisk, self).on_disk_error(error)
            raise storage_error(error) from error

    return watching


def guarded(method: Callable[P, R]) -> Callable[P, R]:
    """Turns what a disk raises into KAFKA_STORAGE_ERROR."""

    @wraps(method)
    def guarding(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return method(*args, **kwargs)
        except OSError as error:
            raise storage_error(error) from error

    return guarding


def storage_error(error: OSError) -> KafkaError:
    return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error))


def means_no_room(error: OSError) -> bool:
    """Whether the volume is full, or this process at a limit of its own: nothing is wrong with the device then."""
    return error.errno in NO_ROOM
