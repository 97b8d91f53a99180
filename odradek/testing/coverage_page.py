"""docs/testing-coverage.md, made from the table of APIs and the declarations of their requests, which faults go by:
`python -m odradek.testing.coverage_page` prints it.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from odradek.broker.handling.context import Api
from odradek.broker.handling.releases import LAST, acting_as
from odradek.broker.served import SERVED
from odradek.protocol.codec.layout import Array, Kind, Layout, Nested, Text, layout_of_message
from odradek.protocol.codec.schema import Struct
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest
from odradek.protocol.primitives import Fixed
from odradek.testing.faults.fault import Kind as FaultKind
from odradek.testing.faults.partial_failures import changed
from odradek.testing.faults.request_fields import groups_in, topics_in, transactional_ids_in

__all__ = ["documentation", "named_by"]

NAME: Final = "a"
RELEASES: Final = tuple(LAST)
OF_ANY_ANSWER: Final = [kind for kind in FaultKind if kind is not FaultKind.STALL_FOLLOWER]


def documentation() -> str:
    """The text of docs/testing-coverage.md."""
    apis = {api.key: api for api in SERVED}
    told = {release: acting_as(apis, release) for release in RELEASES}
    return "\n".join(
        [
            "# What the test kit covers",
            "",
            "<!-- Made by `python -m odradek.testing.coverage_page > docs/testing-coverage.md`. -->",
            "",
            f"The brokers are those of `odradek serve`, so all of their {len(apis)} APIs are there, with the answers",
            "of a real broker ([protocol-support.md](protocol-support.md)). Behind a slash stands the last version",
            f"that a broker with `act_as` {', '.join(RELEASES)} tells of, where it differs; the first one stays.",
            "",
            "Each of them can have each fault on the wire ([testing.md](testing.md#faults)):",
            f"{', '.join(f'`{kind}`' for kind in OF_ANY_ANSWER)};",
            "for all its requests, or for those at a broker, of a client id, and of what the last column names. Where",
            "the answer tells of each topic or partition, an error fails those that are meant, and the rest is done.",
            "",
            "| key | API | versions | faults and recorded requests by |",
            "|---:|---|---|---|",
            *(
                f"| {key} | {apis[key].name} | {_versions(apis[key], told)} | {_named(apis[key])} |"
                for key in sorted(apis)
            ),
            "",
            "`kafka.faults.stall_follower` holds back a partition's records from its followers, as a slow broker does.",
            "`kafka.faults.corrupt` damages records in answers to Fetch, and the whole answer of another API.",
            "",
        ]
    )


def named_by(api: Api) -> Sequence[str]:
    """What its requests name, in some version, by which faults and recorded requests can be chosen."""
    requests = list(_samples(api))
    places = [place for each in requests for place in topics_in(each, lambda topic_id: NAME)]
    found = {
        "topic": any(topic for topic, _ in places),
        "partition": any(topic and partition is not None for topic, partition in places),
        "group": any(group for each in requests for group in groups_in(each)),
        "transactional id": any(name for each in requests for name in transactional_ids_in(each)),
    }
    return [name for name, is_named in found.items() if is_named]


def _named(api: Api) -> str:
    return ", ".join(named_by(api)) or "–"


def _versions(api: Api, told: Mapping[str, Mapping[int, Api]]) -> str:
    first, last = api.advertised
    ends = [f"{first}–{last}" if first < last else f"{last}"]
    shown = last
    for release, apis in told.items():
        acting = apis[api.key]
        if not acting.is_advertised and api.is_advertised:
            ends.append(f"not in {release}")
            break
        if acting.advertised[1] != shown:
            shown = acting.advertised[1]
            ends.append(f"{shown} in {release}")
    return " / ".join(ends)


def _samples(api: Api) -> Iterator[Struct]:
    """A request of each version in which each list has one element, and each text is a name."""
    first, last = api.served
    for version in range(first, last + 1):
        request: Any = _filled(layout_of_message(api.request, version))
        yield request
        if isinstance(request, FindCoordinatorRequest):  # its keys are of groups, or of transactions
            yield changed(request, key_type=1)


def _filled(layout: Layout) -> Struct:
    return layout.cls(**{slot.name: _value(slot.kind) for slot in layout.slots if slot.is_carried})


def _value(kind: Kind) -> object:
    match kind:
        case Fixed("?"):
            return False
        case Fixed("16s"):
            return b"\x01" * 16
        case Fixed():
            return 0
        case Text():
            return NAME
        case Array():
            return [_value(kind.element)]
        case Nested():
            return _filled(kind.layout)
        case _:
            return b""


if __name__ == "__main__":
    sys.stdout.write(documentation())
