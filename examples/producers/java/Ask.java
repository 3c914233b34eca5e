import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.security.KeyFactory;
import java.security.PrivateKey;
import java.security.Signature;
import java.security.spec.PKCS8EncodedKeySpec;
import java.time.Duration;
import java.time.Instant;
import java.util.Base64;
import java.util.HexFormat;
import java.util.Map;
import java.util.UUID;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Asks the service billing for the command charge.capture, over Kafka, and prints the result:
 *
 * <pre>java -cp 'target/classes:target/dependency/*' Ask inv-7 '{"invoice": 7, "customer": "ada", "cents": 1200}'</pre>
 *
 * See ../README.md for the environment variables.
 */
public class Ask {
    static final String RESULTS = "db-results.billing";
    static final Duration PATIENCE = Duration.ofSeconds(30);
    static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] args) throws Exception {
        if (args.length != 2) {
            System.err.println("usage: Ask KEY PAYLOAD");
            System.exit(2);
        }
        System.exit(ask(args[0], JSON.readTree(args[1])));
    }

    static int ask(String key, JsonNode payload) throws Exception {
        Map<String, Object> brokers = Map.of("bootstrap.servers", System.getenv("KAFKA"));
        try (var consumer = new KafkaConsumer<>(brokers, new ByteArrayDeserializer(), new ByteArrayDeserializer());
                var producer = new KafkaProducer<>(brokers, new ByteArraySerializer(), new ByteArraySerializer())) {
            // Begin to read the results before the command is sent, so that its result is among them.
            var partitions = consumer.partitionsFor(RESULTS).stream().map(p -> new TopicPartition(RESULTS, p.partition())).toList();
            consumer.assign(partitions);
            consumer.seekToEnd(partitions);
            partitions.forEach(consumer::position); // seekToEnd is lazy

            var eventId = UUID.randomUUID().toString();
            producer.send(command(eventId, key, payload)).get();
            for (var deadline = Instant.now().plus(PATIENCE); Instant.now().isBefore(deadline); ) {
                for (var record : consumer.poll(Duration.ofSeconds(1))) {
                    var result = JSON.readTree(record.value());
                    if (!result.get("event_id").asText().equals(eventId)) {
                        continue; // of another command
                    }
                    System.out.println(result);
                    var status = result.get("status").asText();
                    var outcome = status.equals("duplicate") ? result.get("original_status").asText() : status;
                    if (outcome.equals("failed_retryable")) {
                        continue; // it is tried again: another result follows
                    }
                    return outcome.equals("processed") ? 0 : 1;
                }
            }
        }
        System.err.println("no result in time: send it again, with the same key");
        return 1;
    }

    static ProducerRecord<byte[], byte[]> command(String eventId, String idempotencyKey, JsonNode payload) throws Exception {
        var random = new byte[16];
        new java.security.SecureRandom().nextBytes(random);
        var envelope = JSON.createObjectNode()
                .put("event_id", eventId).put("service", "billing").put("command", "charge.capture")
                .put("command_version", 1).put("schema_version", 1).put("idempotency_key", idempotencyKey)
                .put("occurred_at", Instant.now().toString()).put("trace_id", HexFormat.of().formatHex(random));
        envelope.set("payload", payload);
        envelope.putObject("metadata").put("producer", "shop");
        var key = idempotencyKey.getBytes(StandardCharsets.UTF_8);
        var value = JSON.writeValueAsBytes(envelope);
        var file = System.getenv("SIGNING_KEY");
        if (file == null) {
            return new ProducerRecord<>("db-events.billing", key, value);
        }
        var record = new ProducerRecord<>("db-events", key, value); // shared: the signature tells who asks
        var signature = sign(JSON.readTree(Path.of(file).toFile()), System.getenv("CLUSTER"), record.topic(), key, value);
        record.headers().add("tidemark-signature", signature.getBytes(StandardCharsets.UTF_8));
        return record;
    }

    /** Makes a detached JWS with a private JWK. */
    static String sign(JsonNode jwk, String cluster, String topic, byte[] key, byte[] value) throws Exception {
        var covered = new ByteArrayOutputStream();
        var parts = new DataOutputStream(covered);
        for (var part : new byte[][] {"tidemark-command-v1".getBytes(), cluster.getBytes(StandardCharsets.UTF_8), topic.getBytes(), key, value}) {
            parts.writeInt(part.length); // big-endian
            parts.write(part);
        }
        var base64 = Base64.getUrlEncoder().withoutPadding();
        var header = base64.encodeToString(JSON.writeValueAsBytes(Map.of("alg", "EdDSA", "kid", jwk.get("kid").asText())));
        var signer = Signature.getInstance("Ed25519");
        signer.initSign(privateKey(Base64.getUrlDecoder().decode(jwk.get("d").asText())));
        signer.update((header + "." + base64.encodeToString(covered.toByteArray())).getBytes(StandardCharsets.US_ASCII));
        return header + ".." + base64.encodeToString(signer.sign());
    }

    /** Java reads a private key as PKCS #8: these bytes before the 32 of the key. */
    static PrivateKey privateKey(byte[] seed) throws Exception {
        return KeyFactory.getInstance("Ed25519").generatePrivate(
                new PKCS8EncodedKeySpec(HexFormat.of().parseHex("302e020100300506032b657004220420" + HexFormat.of().formatHex(seed))));
    }
}
