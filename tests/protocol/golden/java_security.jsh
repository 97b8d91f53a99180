// Lets the Java client change ACLs, quotas and credentials; run by security.py through jshell.
import java.util.*;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.common.acl.*;
import org.apache.kafka.common.quota.*;
import org.apache.kafka.common.resource.*;

Admin admin = Admin.create(Map.of("bootstrap.servers", System.getProperty("golden.bootstrap")));
String topic = System.getProperty("golden.topic");
String user = System.getProperty("golden.user");

AclBinding binding = new AclBinding(new ResourcePattern(ResourceType.TOPIC, topic, PatternType.LITERAL), new AccessControlEntry("User:" + user, "*", AclOperation.READ, AclPermissionType.ALLOW));
admin.createAcls(List.of(binding)).all().get();
while (admin.describeAcls(binding.toFilter()).values().get().isEmpty()) { Thread.sleep(50); }
admin.deleteAcls(List.of(binding.toFilter())).all().get();

ClientQuotaEntity entity = new ClientQuotaEntity(Map.of("user", user));
admin.alterClientQuotas(List.of(new ClientQuotaAlteration(entity, List.of(new ClientQuotaAlteration.Op("producer_byte_rate", 1000.0))))).all().get();
ClientQuotaFilter filter = ClientQuotaFilter.contains(List.of(ClientQuotaFilterComponent.ofEntity("user", user)));
while (admin.describeClientQuotas(filter).entities().get().isEmpty()) { Thread.sleep(50); }
admin.alterClientQuotas(List.of(new ClientQuotaAlteration(entity, List.of(new ClientQuotaAlteration.Op("producer_byte_rate", null))))).all().get();

admin.alterUserScramCredentials(List.of(new UserScramCredentialUpsertion(user, new ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096), System.getProperty("golden.password")))).all().get();
while (admin.describeUserScramCredentials().all().get().isEmpty()) { Thread.sleep(50); }
admin.alterUserScramCredentials(List.of(new UserScramCredentialDeletion(user, ScramMechanism.SCRAM_SHA_256))).all().get();
admin.close();
System.out.println("every request was sent");
/exit
