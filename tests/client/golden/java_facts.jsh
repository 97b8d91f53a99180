// What Kafka's own clients say of themselves, as JSON: settings, the rules between them, what an error code means, and
// what serializers write. Run by java_facts.py through jshell.
import java.lang.reflect.Method;
import java.util.*;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.config.*;
import org.apache.kafka.common.errors.*;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.serialization.*;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.SerializationFeature;

Object plain(Object value) {
    return value == null || value instanceof Number || value instanceof Boolean || value instanceof List
        ? value : value instanceof Class<?> kind ? kind.getName() : value.toString();
}
Map<String, Object> describe(ConfigDef def) {
    Map<String, Object> all = new TreeMap<>();
    def.configKeys().forEach((name, key) -> {
        Map<String, Object> row = new TreeMap<>();
        row.put("type", key.type.name());
        row.put("required", key.defaultValue == ConfigDef.NO_DEFAULT_VALUE);
        row.put("default", key.defaultValue == ConfigDef.NO_DEFAULT_VALUE ? null : plain(key.defaultValue));
        row.put("valid", key.validator == null ? null : key.validator.toString());
        if (!key.internalConfig) all.put(name, row);
    });
    return all;
}

Map<String, Object> settings(Object... pairs) {
    Map<String, Object> all = new HashMap<>(Map.of("bootstrap.servers", "localhost:9092"));
    all.put("key.serializer", ByteArraySerializer.class);
    all.put("value.serializer", ByteArraySerializer.class);
    for (int i = 0; i < pairs.length; i += 2) if (!pairs[i + 1].equals("unset")) all.put((String) pairs[i], pairs[i + 1]);
    return all;
}
List<Map<String, Object>> idempotence() {
    List<Map<String, Object>> all = new ArrayList<>();
    for (String enabled : List.of("unset", "true", "false"))
        for (String acks : List.of("unset", "all", "-1", "0", "1"))
            for (String retries : List.of("unset", "0", "3"))
                for (String inFlight : List.of("unset", "1", "5", "6")) {
                    Map<String, Object> row = new TreeMap<>(Map.of("enable.idempotence", enabled, "acks", acks,
                        "retries", retries, "max.in.flight.requests.per.connection", inFlight));
                    try {
                        ProducerConfig config = new ProducerConfig(settings("enable.idempotence", enabled, "acks", acks,
                            "retries", retries, "max.in.flight.requests.per.connection", inFlight));
                        row.put("idempotent", config.getBoolean("enable.idempotence"));
                        row.put("resolved acks", Integer.parseInt(config.getString("acks")));
                    } catch (ConfigException refused) { row.put("idempotent", "refused"); }
                    all.add(row);
                }
    return all;
}
List<Map<String, Object>> deliveryTimeouts() throws Exception {
    Method configure = KafkaProducer.class.getDeclaredMethod("configureDeliveryTimeout", ProducerConfig.class, org.slf4j.Logger.class);
    configure.setAccessible(true);
    List<Map<String, Object>> all = new ArrayList<>();
    for (String delivery : List.of("unset", "0", "29999", "30000", "30005", "120000", "2147483647"))
        for (String linger : List.of("unset", "0", "90000", "2147483647"))
            for (String request : List.of("unset", "0", "120000")) {
                Map<String, Object> row = new TreeMap<>(Map.of("delivery.timeout.ms", delivery, "linger.ms", linger, "request.timeout.ms", request));
                try {
                    row.put("resolved", configure.invoke(null, new ProducerConfig(settings("delivery.timeout.ms", delivery,
                        "linger.ms", linger, "request.timeout.ms", request)), org.slf4j.LoggerFactory.getLogger("facts")));
                } catch (java.lang.reflect.InvocationTargetException refused) { row.put("resolved", "refused"); }
                all.add(row);
            }
    return all;
}
List<Map<String, Object>> reconnectBackoffs() {
    List<Map<String, Object>> all = new ArrayList<>();
    for (String first : List.of("unset", "20", "3000"))
        for (String most : List.of("unset", "500", "1000")) {
            ProducerConfig config = new ProducerConfig(settings("reconnect.backoff.ms", first, "reconnect.backoff.max.ms", most));
            all.add(new TreeMap<>(Map.of("reconnect.backoff.ms", first, "reconnect.backoff.max.ms", most,
                "resolved", config.getLong("reconnect.backoff.max.ms"))));
        }
    return all;
}
Map<String, Object> errors() {
    Map<String, Object> all = new TreeMap<>();
    for (Errors error : Errors.values()) {
        Object e = error.exception();
        List<String> kinds = new ArrayList<>();
        for (Class<?> kind = e == null ? Object.class : e.getClass(); kind != Object.class; kind = kind.getSuperclass())
            if (kind.getName().startsWith("org.apache.kafka")) kinds.add(kind.getSimpleName());
        all.put(error.name(), Map.of("code", (int) error.code(), "exceptions", kinds));
    }
    return all;
}
String hex(byte[] bytes) { return bytes == null ? null : HexFormat.of().formatHex(bytes); }
Map<String, Object> serializers() {
    Map<String, Object> all = new TreeMap<>();
    List<List<Object>> strings = new ArrayList<>(), ints = new ArrayList<>(), longs = new ArrayList<>(), doubles = new ArrayList<>();
    for (String text : Arrays.asList(null, "", "plain", "Grüße", "日本", "\uD83D\uDE00")) strings.add(Arrays.asList(text, hex(new StringSerializer().serialize("t", text))));
    for (Integer n : Arrays.asList(null, 0, 1, -1, 258, Integer.MAX_VALUE, Integer.MIN_VALUE)) ints.add(Arrays.asList(n, hex(new IntegerSerializer().serialize("t", n))));
    for (Long n : Arrays.asList(null, 0L, 1L, -1L, 258L, Long.MAX_VALUE, Long.MIN_VALUE)) longs.add(Arrays.asList(n, hex(new LongSerializer().serialize("t", n))));
    for (Double n : Arrays.asList(null, 0.0, -0.0, 1.5, -2.25e300)) doubles.add(Arrays.asList(n, hex(new DoubleSerializer().serialize("t", n))));
    all.put("serialize_str", strings); all.put("serialize_int", ints); all.put("serialize_long", longs); all.put("serialize_double", doubles);
    return all;
}

Map<String, Object> facts = new TreeMap<>();
facts.put("producer", describe(ProducerConfig.configDef()));
facts.put("admin", describe(AdminClientConfig.configDef()));
facts.put("consumer", describe(ConsumerConfig.configDef()));
facts.put("idempotence", idempotence());
facts.put("delivery timeout", deliveryTimeouts());
facts.put("reconnect backoff", reconnectBackoffs());
facts.put("errors", errors());
facts.put("serializers", serializers());
facts.put("version", List.of(org.apache.kafka.common.utils.AppInfoParser.getVersion()));
System.out.println("FACTS " + new ObjectMapper().writeValueAsString(facts));
/exit
