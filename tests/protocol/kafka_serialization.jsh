// Has Kafka's own classes read bytes and write them again; run by kafka_serialization.py through jshell.
// A line of the input is "class version hex", one of the output "hex JSON", or "! error".
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.util.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.*;
import org.apache.kafka.clients.consumer.internals.ConsumerProtocol;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.protocol.*;

HexFormat hex = HexFormat.of();
String hexOf(ByteBuffer buffer) {
    byte[] bytes = new byte[buffer.remaining()];
    buffer.duplicate().get(bytes);
    return hex.formatHex(bytes);
}
String again(String line) {
    try {
        String[] parts = line.split(" ", -1);
        short version = Short.parseShort(parts[1]);
        Message message = (Message) Class.forName(parts[0]).getDeclaredConstructor().newInstance();
        message.read(new ByteBufferAccessor(ByteBuffer.wrap(hex.parseHex(parts[2]))), version);
        Object json = Class.forName(parts[0] + "JsonConverter").getMethod("write", message.getClass(), short.class)
            .invoke(null, message, version);
        return hexOf(MessageUtil.toVersionPrefixedByteBuffer(version, message)).substring(4) + " " + json;
    } catch (Exception error) { return "! " + error + " " + error.getCause(); }
}
List<String> members() {
    List<TopicPartition> had = List.of(
        new TopicPartition("b", 2), new TopicPartition("a", 1), new TopicPartition("b", 0));
    Subscription subscription = new Subscription(
        List.of("b", "a"), ByteBuffer.wrap(new byte[] {1, 2}), had, 7, Optional.of("rack"));
    List<String> all = new ArrayList<>();
    for (short version = 0; version <= 3; version++) {
        all.add(hexOf(ConsumerProtocol.serializeSubscription(subscription, version)));
        all.add(hexOf(ConsumerProtocol.serializeAssignment(new Assignment(had), version)));
    }
    StickyAssignor sticky = new StickyAssignor();
    sticky.onAssignment(new Assignment(had), new ConsumerGroupMetadata("g", 7, "m", Optional.empty()));
    all.add(hexOf(sticky.subscriptionUserData(Set.of("a"))));
    CooperativeStickyAssignor cooperative = new CooperativeStickyAssignor();
    cooperative.onAssignment(new Assignment(had), new ConsumerGroupMetadata("g", 7, "m", Optional.empty()));
    all.add(hexOf(cooperative.subscriptionUserData(Set.of("a"))));
    return all;
}
List<String> answers = new ArrayList<>();
for (String line : Files.readAllLines(Path.of(System.getProperty("given")))) answers.add(again(line));
answers.addAll(members());
Files.write(Path.of(System.getProperty("answered")), answers);
/exit
