from typing import Any

# What kafka-python infers about a broker from its ApiVersions answer.
def __getattr__(name: str) -> Any: ...
