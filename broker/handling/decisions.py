"""What an authorizer has said to the questions of one request, and when. Pure.

A request asks each question once, however many partitions it concerns, so that a refusal stands once in the log, as in
Apache Kafka. Rights may change while it waits: what was granted before a change is asked again before the answer leaves
(reauthorization.py).

It is a plain dict, for each request makes one: from a question to the generation of rights (`Access.generation`) in
which it was granted, or to `refused_in` of that. What was granted once stays so: the answer may rest upon it, although
it was refused later.
"""

from collections.abc import Iterable

from odradek.broker.access.operations import Operation
from odradek.broker.access.resource import Resource, ResourceType

Question = tuple[Operation, Resource | ResourceType]
"""May the operation be done with the resource; or with any resource of the type?"""

Decisions = dict[Question, int]


def refused_in(generation: int) -> int:
    """A number that stands for no generation: these are not negative."""
    return ~generation


def known(decisions: Decisions, question: Question, generation: int) -> bool | None:
    """What was said in this generation; None: nothing."""
    said = decisions.get(question)
    if said == generation:
        return True
    return False if said == ~generation else None


def note(decisions: Decisions, question: Question, generation: int, *, is_granted: bool) -> None:
    if is_granted:
        decisions[question] = generation
    elif decisions.get(question, -1) < 0:
        decisions[question] = ~generation


def granted_before(decisions: Decisions, generation: int) -> list[Question]:
    """What was granted, and not in this generation."""
    return [question for question, said in decisions.items() if 0 <= said != generation]


def forget(decisions: Decisions, questions: Iterable[Question]) -> None:
    """The answer does not rest upon these any more."""
    for question in questions:
        decisions.pop(question, None)


def forget_before(decisions: Decisions, generation: int) -> None:
    """The request begins again with what it reads: only what was said in this generation counts."""
    forget(decisions, granted_before(decisions, generation))
