"""What is asked in the matrix of rights: a row for each API at its lowest and highest version, and at those where the
shape of a refusal changes, or what a resource is named by.

The rows are in `rights_questions_of_data.py`, `rights_questions_of_groups.py` and `rights_questions_of_admin.py`;
importing them fills `QUESTIONS`. A request that would change what is there is only checked (`validate_only`), names
something that is not there, or what it changes is made as it was by `renew`.
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from tests.compat.rights_world import World

Make = Callable[[World], Any]
Renew = Callable[[World, Any], None]
"""Makes everything as it was: before a request (None), and after its answer."""


class Question(NamedTuple):
    """One row."""

    name: str
    """The API, the version, and what is special."""
    api: str
    version: int
    make: Make
    """A request."""
    renew: Renew


QUESTIONS: Final[dict[str, Question]] = {}


def nothing(world: World, answer: Any) -> None:
    """Nothing has changed."""
    del world, answer


def asks(api: str, versions: tuple[int, ...], make: Make, *, what: str = "", renew: Renew = nothing) -> None:
    """Adds a row for each version."""
    for version in versions:
        name = " ".join(filter(None, (api, str(version), what)))
        assert name not in QUESTIONS, name
        QUESTIONS[name] = Question(name, api, version, make, renew)
