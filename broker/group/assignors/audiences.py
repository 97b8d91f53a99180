"""Who has subscribed to each topic. Pure.

Members mostly share a few subscriptions, and topics a few audiences: what is worked out once for each of these is cheap
for 500 members of 1,000 topics. Equal audiences are one object.
"""

from collections.abc import Sequence
from itertools import chain


def audiences(subscriptions: Sequence[frozenset[bytes]]) -> dict[bytes, tuple[int, ...]]:
    """The places of the members that have subscribed to each topic, in order. `subscriptions`: by place."""
    sharers: dict[frozenset[bytes], list[int]] = {}
    for place, topics in enumerate(subscriptions):
        sharers.setdefault(topics, []).append(place)
    places = list(sharers.values())
    numbers: dict[bytes, list[int]] = {}
    for number, topics in enumerate(sharers):
        for topic_id in topics:
            numbers.setdefault(topic_id, []).append(number)
    known: dict[tuple[int, ...], tuple[int, ...]] = {}
    found: dict[bytes, tuple[int, ...]] = {}
    for topic_id, some in numbers.items():
        key = tuple(some)
        if key not in known:
            known[key] = tuple(sorted(chain.from_iterable(places[number] for number in key)))
        found[topic_id] = known[key]
    return found
