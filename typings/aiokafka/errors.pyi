class KafkaError(Exception):
    retriable: bool

class BrokerResponseError(KafkaError):
    errno: int

class KafkaTimeoutError(KafkaError): ...
class KafkaConnectionError(KafkaError): ...

# Every error of the protocol is a class here.
def __getattr__(name: str) -> type[BrokerResponseError]: ...
