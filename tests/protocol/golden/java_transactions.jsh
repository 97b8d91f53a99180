// Lets the Java client commit and abort transactions, with its own settings; run by transactions.py through jshell.
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.*;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.*;

String topic = System.getProperty("golden.topic");
String bootstrap = System.getProperty("golden.bootstrap");
String transactionalId = "golden";
String group = "golden";
Map<String, Object> settings(Object... more) {
    Map<String, Object> all = new HashMap<>(Map.of("bootstrap.servers", bootstrap));
    for (int i = 0; i < more.length; i += 2) all.put((String) more[i], more[i + 1]);
    return all;
}
byte[] value = "the first value".getBytes(StandardCharsets.UTF_8);
TopicPartition partition = new TopicPartition(topic, 0);
Admin admin = Admin.create(settings());
admin.createTopics(List.of(new NewTopic(topic, 1, (short) 1))).all().get();
Producer<byte[], byte[]> producer = new KafkaProducer<>(
    settings("transactional.id", transactionalId), new ByteArraySerializer(), new ByteArraySerializer());
producer.initTransactions();

// A transaction with one record.
void begin() throws Exception {
    producer.beginTransaction();
    producer.send(new ProducerRecord<>(topic, 0, null, value)).get();
}
begin();
producer.commitTransaction();
Map<String, Object> ofMember = settings(
    "group.id", group, "auto.offset.reset", "earliest", "enable.auto.commit", "false");
try (var c = new KafkaConsumer<>(ofMember, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
    c.subscribe(List.of(topic));
    for (int n = 0; n < 40 && c.poll(Duration.ofMillis(500)).isEmpty(); n++) { }
    begin();
    OffsetAndMetadata consumed = new OffsetAndMetadata(1, Optional.of(0), "");
    producer.sendOffsetsToTransaction(Map.of(partition, consumed), c.groupMetadata());
    admin.listTransactions(new ListTransactionsOptions().filterStates(Set.of(TransactionState.ONGOING))).all().get();
    admin.describeTransactions(List.of(transactionalId)).all().get();
    producer.commitTransaction();
}
begin();
for (ProducerState known : admin.describeProducers(List.of(partition)).partitionResult(partition).get().activeProducers())
    if (known.currentTransactionStartOffset().isPresent())
        admin.abortTransaction(new AbortTransactionSpec(
            partition, known.producerId(), (short) known.producerEpoch(), known.coordinatorEpoch().orElse(0))).all().get();
producer.abortTransaction();
producer.close();
admin.deleteConsumerGroups(List.of(group)).all().get();
admin.deleteTopics(List.of(topic)).all().get();
admin.close();
System.out.println("every request was sent");
/exit
