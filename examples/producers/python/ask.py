"""Asks the service billing for the command charge.capture, over Kafka, and prints the result:

    python3 ask.py inv-7 '{"invoice": 7, "customer": "ada", "cents": 1200}'

See ../README.md for the environment variables.
"""

import base64
import json
import os
import struct
import sys
import time
import uuid
from datetime import datetime, timezone

from confluent_kafka import Consumer, Producer, TopicPartition
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

RESULTS = "db-results.billing"
PATIENCE = 30  # seconds


def encode(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def sign(jwk, cluster, topic, key, value):
    """Makes a detached JWS with a private JWK."""
    parts = [b"tidemark-command-v1", cluster.encode(), topic.encode(), key, value]
    covered = b"".join(struct.pack(">i", len(part)) + part for part in parts)
    private = Ed25519PrivateKey.from_private_bytes(base64.urlsafe_b64decode(jwk["d"] + "=="))
    header = encode(json.dumps({"alg": "EdDSA", "kid": jwk["kid"]}).encode())
    return header + b".." + encode(private.sign(header + b"." + encode(covered)))


def read_from_end(consumer):
    """Begins to read the results before the command is sent, so that its result is among them."""
    partitions = consumer.list_topics(RESULTS, timeout=PATIENCE).topics[RESULTS].partitions
    ends = []
    for partition in partitions:
        _, end = consumer.get_watermark_offsets(TopicPartition(RESULTS, partition), timeout=PATIENCE)
        ends.append(TopicPartition(RESULTS, partition, end))
    consumer.assign(ends)


def send(brokers, key, payload):
    event_id = str(uuid.uuid4())
    envelope = json.dumps({
        "event_id": event_id, "service": "billing", "command": "charge.capture", "command_version": 1, "schema_version": 1,
        "payload": payload, "idempotency_key": key, "occurred_at": datetime.now(timezone.utc).isoformat(),
        "trace_id": uuid.uuid4().hex, "metadata": {"producer": "shop"},
    }).encode()
    topic, headers = "db-events.billing", {}
    if "SIGNING_KEY" in os.environ:
        topic = "db-events"  # shared: the signature tells who asks
        with open(os.environ["SIGNING_KEY"]) as file:
            headers["tidemark-signature"] = sign(json.load(file), os.environ["CLUSTER"], topic, key.encode(), envelope)
    failures = []
    producer = Producer({"bootstrap.servers": brokers, "enable.idempotence": True})
    producer.produce(topic, envelope, key.encode(), headers=headers, on_delivery=lambda error, _: error and failures.append(error))
    if producer.flush(PATIENCE) or failures:
        sys.exit(f"not sent: {failures}")
    return event_id


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: python3 ask.py KEY PAYLOAD")
    brokers = os.environ["KAFKA"]
    consumer = Consumer({"bootstrap.servers": brokers, "group.id": "unused", "enable.auto.commit": False})
    read_from_end(consumer)
    event_id = send(brokers, sys.argv[1], json.loads(sys.argv[2]))
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        record = consumer.poll(1)
        if record is None or record.error():
            continue
        result = json.loads(record.value())
        if result["event_id"] != event_id:
            continue  # of another command
        print(record.value().decode())
        outcome = result["original_status"] if result["status"] == "duplicate" else result["status"]
        if outcome == "failed_retryable":
            continue  # it is tried again: another result follows
        sys.exit(None if outcome == "processed" else result["status"])
    sys.exit("no result in time: send it again, with the same key")


if __name__ == "__main__":
    main()
