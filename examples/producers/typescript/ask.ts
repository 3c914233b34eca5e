// Asks the service billing for the command charge.capture, over Kafka, and prints the result:
//
//     npm run ask -- inv-7 '{"invoice": 7, "customer": "ada", "cents": 1200}'
//
// See ../README.md for the environment variables.
import { createPrivateKey, randomBytes, randomUUID, sign as ed25519 } from "node:crypto";
import { readFileSync } from "node:fs";
import kafkajs from "kafkajs";
// @ts-expect-error: the package has no types
import SnappyCodec from "kafkajs-snappy";

const { CompressionCodecs, CompressionTypes, Kafka, logLevel } = kafkajs;
CompressionCodecs[CompressionTypes.Snappy] = SnappyCodec; // Tidemark's results are compressed, and kafkajs brings gzip alone
const results = "db-results.billing";
const patience = 30_000; // milliseconds

// sign makes a detached JWS with a private JWK.
function sign(jwk: { kid: string }, cluster: string, topic: string, key: Buffer, value: Buffer): string {
  const parts = [Buffer.from("tidemark-command-v1"), Buffer.from(cluster), Buffer.from(topic), key, value];
  const covered = Buffer.concat(
    parts.flatMap((part) => {
      const length = Buffer.alloc(4);
      length.writeInt32BE(part.length);
      return [length, part];
    }),
  );
  const header = Buffer.from(JSON.stringify({ alg: "EdDSA", kid: jwk.kid })).toString("base64url");
  const signed = Buffer.from(`${header}.${covered.toString("base64url")}`);
  return `${header}..${ed25519(null, signed, createPrivateKey({ key: jwk, format: "jwk" })).toString("base64url")}`;
}

const [idempotencyKey, payload] = process.argv.slice(2);
if (!idempotencyKey || !payload) {
  console.error("usage: npm run ask -- KEY PAYLOAD");
  process.exit(2);
}
const kafka = new Kafka({ brokers: process.env.KAFKA!.split(","), logLevel: logLevel.ERROR });

// Begin to read the results before the command is sent, so that its result is among them.
const admin = kafka.admin();
await admin.connect();
const ends = await admin.fetchTopicOffsets(results);
await admin.disconnect();

const eventId = randomUUID();
const consumer = kafka.consumer({ groupId: `ask-${eventId}` });
await consumer.connect();
await consumer.subscribe({ topics: [results] });
const outcome = new Promise<string>((resolve, reject) => {
  setTimeout(() => reject(new Error("no result in time: send it again, with the same key")), patience).unref();
  consumer.on(consumer.events.CRASH, ({ payload }) => reject(payload.error));
  void consumer.run({
    autoCommit: false,
    eachMessage: async ({ message }) => {
      const result = JSON.parse(message.value!.toString());
      if (result.event_id !== eventId) return; // of another command
      console.log(message.value!.toString());
      const status = result.status === "duplicate" ? result.original_status : result.status;
      if (status === "failed_retryable") return; // it is tried again: another result follows
      resolve(status);
    },
  });
});
for (const { partition, high } of ends) consumer.seek({ topic: results, partition, offset: high });

const key = Buffer.from(idempotencyKey);
const value = Buffer.from(
  JSON.stringify({
    event_id: eventId, service: "billing", command: "charge.capture", command_version: 1, schema_version: 1,
    payload: JSON.parse(payload), idempotency_key: idempotencyKey, occurred_at: new Date().toISOString(),
    trace_id: randomBytes(16).toString("hex"), metadata: { producer: "shop" },
  }),
);
let topic = "db-events.billing";
const headers: Record<string, string> = {};
if (process.env.SIGNING_KEY) {
  topic = "db-events"; // shared: the signature tells who asks
  const jwk = JSON.parse(readFileSync(process.env.SIGNING_KEY, "utf8"));
  headers["tidemark-signature"] = sign(jwk, process.env.CLUSTER!, topic, key, value);
}
const producer = kafka.producer({ idempotent: true });
await producer.connect();
await producer.send({ topic, messages: [{ key, value, headers }] });
await producer.disconnect();

let status = "";
try {
  status = await outcome;
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
}
await consumer.disconnect();
process.exit(status === "processed" ? 0 : 1);
