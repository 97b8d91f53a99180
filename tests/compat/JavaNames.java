import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import javax.security.auth.x500.X500Principal;
import org.apache.kafka.common.security.ssl.SslPrincipalMapper;

/**
 * Says how Java writes names, and what Apache Kafka makes of them: a line of answer for each line of question.
 * Bytes and texts (UTF-8) are hex digits; an empty one is a dash.
 *
 *   certificate DER      the name of its subject
 *   name DER             a name by itself
 *   mapped RULES NAME    what the rules make of it; "none" if none fits, "refused" if the rules cannot be used
 */
public class JavaNames {
    public static void main(String[] args) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        PrintStream answers = new PrintStream(System.out, true, "UTF-8");
        String line = lines.readLine();
        while (line != null) {
            answers.println(answer(line.split(" ")));
            line = lines.readLine();
        }
    }

    private static String answer(String[] words) {
        try {
            if (words[0].equals("certificate")) {
                CertificateFactory factory = CertificateFactory.getInstance("X.509");
                ByteArrayInputStream der = new ByteArrayInputStream(bytes(words[1]));
                X509Certificate certificate = (X509Certificate) factory.generateCertificate(der);
                return hex(certificate.getSubjectX500Principal().getName());
            }
            if (words[0].equals("name")) {
                return hex(new X500Principal(bytes(words[1])).getName());
            }
        } catch (Exception error) {
            return "refused";
        }
        return mapped(text(words[1]), text(words[2]));
    }

    private static String mapped(String rules, String name) {
        SslPrincipalMapper mapper;
        try {
            mapper = SslPrincipalMapper.fromRules(rules);
        } catch (RuntimeException error) {
            return "refused";
        }
        try {
            return hex(mapper.getName(name));
        } catch (java.io.IOException error) {
            return "none";
        } catch (RuntimeException error) {
            return "refused";
        }
    }

    private static String text(String digits) {
        try {
            return new String(bytes(digits), "UTF-8");
        } catch (java.io.UnsupportedEncodingException error) {
            throw new IllegalStateException(error);
        }
    }

    private static byte[] bytes(String digits) {
        if (digits.equals("-")) {
            return new byte[0];
        }
        byte[] found = new byte[digits.length() / 2];
        for (int i = 0; i < found.length; i++) {
            found[i] = (byte) Integer.parseInt(digits.substring(2 * i, 2 * i + 2), 16);
        }
        return found;
    }

    private static String hex(String text) throws RuntimeException {
        byte[] bytes;
        try {
            bytes = text.getBytes("UTF-8");
        } catch (java.io.UnsupportedEncodingException error) {
            throw new IllegalStateException(error);
        }
        StringBuilder digits = new StringBuilder();
        for (int i = 0; i < bytes.length; i++) {
            digits.append(Character.forDigit((bytes[i] >> 4) & 15, 16));
            digits.append(Character.forDigit(bytes[i] & 15, 16));
        }
        return digits.length() == 0 ? "-" : digits.toString();
    }
}
