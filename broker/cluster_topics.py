"""The topics of the cluster as consumer groups see them (`TopicsView`), made from the image when they are asked for."""

from collections.abc import Iterable

from odradek.broker.cluster.image import ClusterImage, Delta
from odradek.broker.cluster.topic_image import TopicImage
from odradek.broker.group.topics_view import ViewedTopic


class ClusterTopics:
    """Of the newest image. A topic is the same object for as long as nothing of it changes that matters to groups."""

    __slots__ = ("_image", "_racks", "_viewed")

    def __init__(self, image: ClusterImage) -> None:
        self._image = image
        self._racks = _racks(image)
        self._viewed: dict[str, ViewedTopic] = {}

    def by_name(self, name: str) -> ViewedTopic | None:
        viewed = self._viewed.get(name)
        if viewed is None and (topic := self._image.topics.get(name)) is not None:
            viewed = self._viewed[name] = self._view(topic)
        return viewed

    def by_id(self, topic_id: bytes) -> ViewedTopic | None:
        name = self._image.names.get(topic_id)
        return None if name is None else self.by_name(name)

    def names(self) -> Iterable[str]:
        return self._image.topics

    def follow(self, image: ClusterImage, delta: Delta) -> frozenset[str]:
        """The image is this one now. Returns the names of topics that groups may have to look at: those that are new or
        gone, have more partitions, or replicas in other racks."""
        before, self._image = self._image, image
        racks_before, self._racks = self._racks, _racks(image)
        touched = {topic.name for topic in (*delta.created, *delta.deleted, *delta.vanished, *delta.changed)}
        if racks_before != self._racks:
            touched |= image.topics.keys()
        changed: set[str] = set()
        for name in touched:
            viewed = self._viewed.pop(name, None)
            if name in before.topics and name in image.topics:
                if viewed is None or self.by_name(name) != viewed:
                    changed.add(name)
                else:
                    self._viewed[name] = viewed
            else:
                changed.add(name)
        return frozenset(changed)

    def _view(self, topic: TopicImage) -> ViewedTopic:
        racks: tuple[frozenset[str], ...] = ()
        if self._racks:
            racks = tuple(
                frozenset(rack for each in state.replicas if (rack := self._racks.get(each)) is not None)
                for state in topic.partitions
            )
        return ViewedTopic(topic.name, topic.topic_id, len(topic.partitions), racks)


def _racks(image: ClusterImage) -> dict[int, str]:
    """Of the brokers that say theirs."""
    return {broker_id: rack for broker_id in image.registered if (rack := image.rack(broker_id)) is not None}
