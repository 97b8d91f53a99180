"""The users of SCRAM as a part of the image. What they are made of (scram_credentials.py) is imported where there are
any: a cluster without them needs none of it.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from odradek.broker.cluster.keys import KeyKind
from odradek.broker.cluster.store import Event

if TYPE_CHECKING:
    from odradek.broker.cluster.scram_credentials import ScramCredentials

OF_SCRAM: Final = frozenset({KeyKind.SCRAM_SECRET, KeyKind.SCRAM_USER})


def changed_scram(
    scram: "ScramCredentials | None", events: Iterable[tuple[KeyKind, str, Event]]
) -> "ScramCredentials | None":
    """With what these events say of them. Raises MalformedMetadata."""
    for kind, name, event in events:
        if kind in OF_SCRAM:
            if scram is None:
                from odradek.broker.cluster.scram_credentials import ScramCredentials

                scram = ScramCredentials()
            scram = scram.apply(kind, name, event.value)
    return scram
