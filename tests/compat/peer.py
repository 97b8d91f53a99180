"""A blocking connection to any broker, ours or Apache Kafka, that speaks raw frames: for asking both the same."""

from benchmarks.load.wire import LATEST, Wire
from odradek.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from odradek.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic

TIMEOUT_S = 20.0


class Peer(Wire):
    """One connection. Raises ConnectionError where the broker closes it."""

    def __init__(self, host: str, port: int) -> None:
        super().__init__(host, port, timeout_s=TIMEOUT_S)

    def send_raw(self, payload: bytes) -> None:
        """Sends a frame of these bytes, whatever they are."""
        self.send(len(payload).to_bytes(4, "big") + payload)

    def create_topic(self, name: str, partitions: int = 1, **configs: str) -> None:
        """Creates a topic and waits until its partitions have leaders that know it: Kafka answers before that."""
        entries = [CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()]
        topic = CreatableTopic(
            name=name, num_partitions=partitions, replication_factor=1, assignments=[], configs=entries
        )
        created = self.ask(CreateTopicsRequest(topics=[topic], timeout_ms=10_000, validate_only=False), 5)
        assert created.topics[0].error_code == 0, created.topics[0].error_message
        while not (self.has_leaders(name, partitions) and self.are_leading(name, partitions)):
            pass

    def has_leaders(self, name: str, partitions: int) -> bool:
        """Whether metadata names a leader for each partition."""
        asked = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False)
        [topic] = self.ask(asked, 9).topics
        return len(topic.partitions) == partitions and all(each.error_code == 0 for each in topic.partitions)

    def are_leading(self, name: str, partitions: int) -> bool:
        """Whether the broker, who is in metadata already, has heard of it himself."""
        each = [ListOffsetsPartition(partition_index=index, timestamp=LATEST) for index in range(partitions)]
        request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=name, partitions=each)])
        [topic] = self.ask(request, 5).topics
        return all(answer.error_code == 0 for answer in topic.partitions)
