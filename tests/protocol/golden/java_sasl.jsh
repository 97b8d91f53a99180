// Lets the Java client authenticate by SASL, with its own settings; run by capture.py through jshell.
import java.util.*;
import org.apache.kafka.clients.admin.*;

Map<String, Object> settings = Map.of(
    "bootstrap.servers", System.getProperty("golden.bootstrap"),
    "security.protocol", "SASL_PLAINTEXT",
    "sasl.mechanism", "PLAIN",
    "sasl.jaas.config", "org.apache.kafka.common.security.plain.PlainLoginModule required username=\""
        + System.getProperty("golden.user") + "\" password=\"" + System.getProperty("golden.password") + "\";");
try (Admin admin = Admin.create(settings)) { admin.describeCluster().nodes().get(); }
System.out.println("every request was sent");
/exit
