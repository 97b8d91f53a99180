"""The settings of the clients: one typed, frozen dataclass for each, made of rows (`settings.py`).

    ClientConfig        what every client has: brokers, connections, timeouts; with SecuritySettings
      ProducerConfig    in client/producer/config.py
      AdminConfig       in client/admin/config.py
      FetchConfig       in client/fetching/config.py

Names are Kafka's with underscores, defaults those of Kafka 4.3 (a test compares them); times are whole milliseconds.
A value of the wrong type, out of bounds, or in contradiction to another one is a ConfigError that names all settings
involved. A config that exists is consistent, and its values are resolved: `acks` is a number, `is_idempotent` a fact.

    ProducerConfig("localhost:9092", linger_ms=20)
    ProducerConfig.from_dict({"bootstrap.servers": "localhost:9092", "linger.ms": "20"})

docs/client-configuration.md is made from the rows (client/configuration_page.py).
"""
