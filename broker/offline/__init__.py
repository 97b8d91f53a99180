"""Commands that work on files of brokers that do not run: `dump` reads, `adopt` takes over from Kafka, `rescue` saves,
restores and rebuilds the metadata, `take` moves a broker into a cluster and back.
"""
