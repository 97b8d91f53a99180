// Lets the Java client send each request that Odradek serves, with its own settings; run by capture.py through jshell.
// What is set aside from addresses: a linger, so that records share a batch, and the codecs.
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.*;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.ElectionType;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.serialization.*;

String topic = System.getProperty("golden.topic");
String bootstrap = System.getProperty("golden.bootstrap");
Map<String, Object> settings(Object... more) {
    Map<String, Object> all = new HashMap<>(Map.of("bootstrap.servers", bootstrap));
    for (int i = 0; i < more.length; i += 2) all.put((String) more[i], more[i + 1]);
    return all;
}
byte[] bytes(String text) { return text == null ? null : text.getBytes(StandardCharsets.UTF_8); }

TopicPartition partition = new TopicPartition(topic, 0);
ConfigResource config = new ConfigResource(ConfigResource.Type.TOPIC, topic);
Admin admin = Admin.create(settings());
admin.createTopics(List.of(new NewTopic(topic, 1, (short) 1).configs(Map.of("retention.ms", "86400000")))).all().get();
admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(2))).all().get();
admin.describeTopics(List.of(topic)).allTopicNames().get();
admin.describeCluster().nodes().get();
admin.describeConfigs(List.of(config)).all().get();
AlterConfigOp change = new AlterConfigOp(new ConfigEntry("retention.ms", "90000000"), AlterConfigOp.OpType.SET);
admin.incrementalAlterConfigs(Map.of(config, List.of(change))).all().get();
try {
    // Removed in 4.0.
    var alterConfigs = Admin.class.getMethod("alterConfigs", Map.class);
    Config whole = new Config(List.of(new ConfigEntry("retention.ms", "90000000")));
    ((AlterConfigsResult) alterConfigs.invoke(admin, Map.of(config, whole))).all().get();
} catch (NoSuchMethodException expected) { }
admin.describeLogDirs(List.of(1)).allDescriptions().get();
admin.electLeaders(ElectionType.PREFERRED, Set.of(partition)).partitions().get();
admin.alterPartitionReassignments(
    Map.of(partition, Optional.of(new NewPartitionReassignment(List.of(1))))).all().get();
admin.listPartitionReassignments(Set.of(partition)).reassignments().get();
admin.describeMetadataQuorum().quorumInfo().get();
try { admin.unregisterBroker(99).all().get(); } catch (java.util.concurrent.ExecutionException notRegistered) { }

// The same records as RECORDS in files.py: offset n has the timestamp 1700000000000 + 10 n.
void send(Producer<byte[], byte[]> producer, String to, int n, String key, String value, Header... headers) {
    producer.send(new ProducerRecord<>(to, 0, 1700000000000L + 10 * n, bytes(key), bytes(value), List.of(headers)));
}
void sendAll(Producer<byte[], byte[]> producer, String to) {
    send(producer, to, 0, "key-0", "the first value");
    send(producer, to, 1, null, "a value without a key");
    send(producer, to, 2, "tombstone", null);
    send(producer, to, 3, "", "");
    send(producer, to, 4, "key-4", "with headers", new RecordHeader("a", bytes("1")), new RecordHeader("é", bytes("")));
    for (int n = 5; n < 40; n++) send(producer, to, n, "key-" + n, "value number " + n + ", ".repeat(n));
    producer.flush();
}
Producer<byte[], byte[]> producer(Object... more) {
    return new KafkaProducer<>(settings(more), new ByteArraySerializer(), new ByteArraySerializer());
}
try (var p = producer()) { send(p, topic, 0, "key-0", "the first value"); }
for (String codec : List.of("none", "gzip", "snappy", "lz4", "zstd")) {
    try (var p = producer("linger.ms", "500", "compression.type", codec)) { sendAll(p, topic + "-" + codec); }
}

KafkaConsumer<byte[], byte[]> consumer(Object... more) {
    return new KafkaConsumer<>(settings(more), new ByteArrayDeserializer(), new ByteArrayDeserializer());
}
try (var c = consumer("auto.offset.reset", "earliest")) {
    c.assign(List.of(partition));
    for (int n = 0; n < 20 && c.poll(Duration.ofMillis(500)).isEmpty(); n++) { }
    c.offsetsForTimes(Map.of(partition, 1700000000000L));
    // A position with a leader epoch is validated by OffsetForLeaderEpoch.
    c.seek(partition, new OffsetAndMetadata(0, Optional.of(0), ""));
    for (int n = 0; n < 20 && c.poll(Duration.ofMillis(500)).isEmpty(); n++) { }
}
String group = "golden";
void member(String protocol) throws Exception {
    // A client refuses settings of the other protocol.
    Map<String, Object> all = protocol.equals("classic")
        ? settings("heartbeat.interval.ms", "100") : settings("group.protocol", protocol);
    all.putAll(Map.of("group.id", group, "auto.offset.reset", "earliest"));
    try (var c = new KafkaConsumer<>(all, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
        c.subscribe(List.of(topic));
        for (int n = 0; n < 40 && c.poll(Duration.ofMillis(500)).isEmpty(); n++) { }
        c.poll(Duration.ofMillis(500));
        c.commitSync();
        c.committed(Set.of(partition));
        admin.listConsumerGroups().all().get();
        admin.describeConsumerGroups(List.of(group)).all().get();
        admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get();
    }
    admin.deleteConsumerGroupOffsets(group, Set.of(partition)).all().get();
    admin.deleteConsumerGroups(List.of(group)).all().get();
}
member("classic");
member("consumer");
admin.listClientMetricsResources().all().get();
FeatureUpdate update = new FeatureUpdate((short) 1, FeatureUpdate.UpgradeType.UPGRADE);
admin.updateFeatures(Map.of("group.version", update), new UpdateFeaturesOptions().validateOnly(true)).all().get();

admin.deleteRecords(Map.of(partition, RecordsToDelete.beforeOffset(1))).all().get();
admin.deleteTopics(List.of(topic)).all().get();
admin.close();
System.out.println("every request was sent");
/exit
