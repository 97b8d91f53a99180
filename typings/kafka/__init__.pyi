# kafka-python 3.0.12, as far as our tests, demo and benchmarks use it.
from kafka.admin import KafkaAdminClient as KafkaAdminClient
from kafka.consumer import KafkaConsumer as KafkaConsumer
from kafka.consumer.subscription_state import ConsumerRebalanceListener as ConsumerRebalanceListener
from kafka.producer import KafkaProducer as KafkaProducer
from kafka.protocol.consumer import IsolationLevel as IsolationLevel
from kafka.protocol.consumer import OffsetSpec as OffsetSpec
from kafka.structs import OffsetAndMetadata as OffsetAndMetadata
from kafka.structs import TopicPartition as TopicPartition

__version__: str
