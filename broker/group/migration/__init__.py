"""Groups whose members speak both protocols: a classic group of consumers becomes a consumer group when the first
member of KIP-848 joins, serves its classic members meanwhile, and becomes a classic group again when the last member of
KIP-848 goes (KIP-848, `group.consumer.migration.policy`; Kafka's GroupMetadataManager, `convertTo…`). Pure.
"""
