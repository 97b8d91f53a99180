from abc import ABC, abstractmethod
from collections.abc import Iterable

from kafka.structs import TopicPartition

class ConsumerRebalanceListener(ABC):
    @abstractmethod
    def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None: ...
    @abstractmethod
    def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None: ...
    def on_partitions_lost(self, lost: Iterable[TopicPartition]) -> None: ...
