"""What a pattern matches: whole names of topics that there are, and no internal ones."""

import re

from odradek.client.consumer.group.subscription import Subscription
from odradek.protocol.messages.metadata import MetadataResponse, MetadataResponseTopic


def test_a_pattern_matches_whole_names_and_leaves_out_internal_topics() -> None:
    names = ("orders", "orders-2", "my-orders", "__consumer_offsets", "orders-internal", "orders-gone")
    topics = [
        MetadataResponseTopic(
            name=name, is_internal=name.endswith("internal"), error_code=3 * name.endswith("gone"), partitions=[]
        )
        for name in names
    ]
    response = MetadataResponse(brokers=[], topics=topics)
    subscription = Subscription(pattern=re.compile("orders.*|__.*"))
    assert subscription.matching(response, excludes_internal=True) == {"orders", "orders-2"}
    every = {"orders", "orders-2", "orders-internal", "__consumer_offsets"}
    assert subscription.matching(response, excludes_internal=False) == every
    assert not subscription.is_empty
    assert Subscription().is_empty
    assert Subscription.to_names(["a", "a"]).names == {"a"}
