// Has Java's own assignors divide partitions; run by java_assignors.py through jshell.
// A line of the input is "assignor|topics|members": "a=12,2;b=," are topics with the racks of each partition, a character
// each; "m0,i0,1,a b,a0 b1,7;…" are members: id, instance id, rack, topics, owned partitions, their generation.
// A line of the output is "m0=a0 b1;…", or "! error".
import java.nio.ByteBuffer;
import java.nio.file.*;
import java.util.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.*;
import org.apache.kafka.clients.consumer.internals.*;
import org.apache.kafka.common.*;

List<TopicPartition> partitionsOf(String text) {
    List<TopicPartition> found = new ArrayList<>();
    for (String word : text.split(" "))
        if (!word.isEmpty()) found.add(new TopicPartition(word.substring(0, 1), Integer.parseInt(word.substring(1))));
    return found;
}
AbstractPartitionAssignor assignorOf(String name) {
    return switch (name) {
        case "range" -> new RangeAssignor();
        case "roundrobin" -> new RoundRobinAssignor();
        case "sticky" -> new StickyAssignor();
        default -> new CooperativeStickyAssignor();
    };
}
Node[] replicas(String racks) {
    Node[] nodes = new Node[Math.max(1, racks.length())];
    for (int i = 0; i < nodes.length; i++)
        nodes[i] = new Node(i, "h", 1, racks.isEmpty() ? null : racks.substring(i, i + 1));
    return nodes;
}
String divided(String line) {
    try {
        String[] said = line.split("\\|", -1);
        AbstractPartitionAssignor assignor = assignorOf(said[0]);
        Map<String, Subscription> members = new HashMap<>();
        Set<String> subscribed = new HashSet<>();
        for (String each : said[2].split(";")) {
            String[] f = each.split(",", -1);
            List<String> topics = List.of(f[3].split(" "));
            subscribed.addAll(topics);
            List<TopicPartition> owned = partitionsOf(f[4]);
            ByteBuffer data = null;
            if (assignor instanceof AbstractStickyAssignor && !owned.isEmpty()) {
                AbstractPartitionAssignor of = assignorOf(said[0]);
                of.onAssignment(new Assignment(owned),
                    new ConsumerGroupMetadata("g", Integer.parseInt(f[5]), f[0], Optional.empty()));
                data = of.subscriptionUserData(Set.copyOf(topics));
            }
            boolean tells = said[0].equals("cooperative-sticky");
            Subscription subscription = new Subscription(topics, data, tells ? owned : List.of(),
                tells ? Integer.parseInt(f[5]) : -1, f[2].isEmpty() ? Optional.empty() : Optional.of(f[2]));
            subscription.setGroupInstanceId(f[1].isEmpty() ? Optional.empty() : Optional.of(f[1]));
            members.put(f[0], subscription);
        }
        Map<String, List<PartitionInfo>> topics = new HashMap<>();
        for (String each : said[1].split(";")) {
            String[] f = each.split("=", -1);
            if (f.length < 2 || !subscribed.contains(f[0])) continue;
            List<PartitionInfo> infos = new ArrayList<>();
            for (String racks : f[1].split(",", -1)) {
                Node[] nodes = replicas(racks);
                infos.add(new PartitionInfo(f[0], infos.size(), nodes[0], nodes, nodes));
            }
            topics.put(f[0], infos);
        }
        StringBuilder out = new StringBuilder();
        assignor.assignPartitions(topics, members).forEach((id, mine) -> {
            out.append(out.isEmpty() ? "" : ";").append(id).append("=");
            mine.forEach(p -> out.append(p.topic()).append(p.partition()).append(" "));
        });
        return out.toString();
    } catch (Exception error) { return "! " + error + " " + error.getCause(); }
}
List<String> answers = new ArrayList<>();
for (String line : Files.readAllLines(Path.of(System.getProperty("given")))) answers.add(divided(line));
Files.write(Path.of(System.getProperty("answered")), answers);
/exit
