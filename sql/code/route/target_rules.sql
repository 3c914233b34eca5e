-- The one description of what a route may name and may say. SQL checks by it (tidemark.target_problem); Go reads the
-- JSON out of this file for its own check, the help and completion of the command, and the table in docs/daemon.md. Its
-- patterns mean the same in PostgreSQL and in Go.
create or replace function tidemark.target_rules()
returns jsonb
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    return $json$
{
  "name": "^[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}$",
  "key_prefix": "^whs(ec|k)_",
  "secret_name": [
    "authorization|cookie|token|secret|passw|credential|session",
    "(api|access|private|subscription|function)[-_.]?key",
    "^(x[-_])?(auth|key|sig|signature|pass|pwd|jwt|code)$|^x[-_]auth"],
  "secret_value": "^[\\x09 ]*((bearer|basic|digest|token|apikey|negotiate)[\\x09 ]+[^\\x09 ]|whs(ec|k)_)",
  "header_name": "^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,200}$",
  "header_value": "^[^\\x01-\\x08\\x0a-\\x1f\\x7f]*$",
  "reserved_header": [
    "^(connection|keep-alive|te|trailer|transfer-encoding|upgrade|host|expect|accept-encoding|traceparent)$",
    "^(content-(type|length|encoding)|(x-)?idempotency-key)$",
    "^(proxy-|webhook-|tidemark-|ce-)"],
  "kinds": [
    {"kind": "sql", "ref": "function SCHEMA.NAME that takes an event as jsonb, or a batch as tidemark.outbox[]",
     "example": "app.on_order", "max_bytes": 260, "rules": [
      {"must": "^(\"([^\"]|\"\")+\"|[^\"'.,;()\\x01-\\x20\\x7f]+)[.](\"([^\"]|\"\")+\"|[^\"'.,;()\\x01-\\x20\\x7f]+)$",
       "problem": "must be SCHEMA.FUNCTION, without arguments"}]},
    {"kind": "notify", "ref": "channel", "example": "orders", "max_bytes": 63, "rules": [
      {"must": "^[^\\x01-\\x1f\\x7f]+$", "problem": "must be the name of a channel, at most 63 bytes"}]},
    {"kind": "river", "ref": "kind of job", "example": "charge", "max_bytes": 508, "rules": [
      {"must": "^[^\\x01-\\x1f\\x7f]{1,127}$", "problem": "must be a kind of job, 1 to 127 characters"}]},
    {"kind": "webhook", "ref": "URL", "example": "https://billing.example/hooks", "max_bytes": 2048, "url": true,
     "one_of": ["secret", "unsigned"], "rules": [
      {"must": "^https?://", "problem": "must be a URL that begins with https:// or http://"},
      {"not": "[\\x01-\\x20\\x7f]", "problem": "must have no spaces and no control characters"},
      {"not": "#", "problem": "has a fragment (#), which is never sent"},
      {"not": "^https?://[^/?]*@",
       "problem": "holds a user or a password: use the option headers, {\"Authorization\": {\"secret\": \"NAME\"}}"},
      {"not": "[?&;][^?&;=]*%(2[5dDeE]|3[0-9]|[46][1-9a-fA-F]|[57][0-9aA]|5[fF]|7[eE])",
       "problem": "has a parameter whose name is percent-encoded without need: write its letters as they are"},
      {"must": "^https?://([^]/?@:\\\\[]+|\\[[0-9A-Fa-f:.]+\\])(:[0-9]{1,5})?([/?].*)?$",
       "problem": "must be a URL with a host and, if any, a port"}]},
    {"kind": "kafka", "ref": "topic", "example": "orders", "max_bytes": 249, "rules": [
      {"must": "^[A-Za-z0-9._-]+$", "problem": "must be a topic: letters, digits, \".\", \"_\" and \"-\""},
      {"not": "^[.][.]?$", "problem": "must be a topic, and not \".\" or \"..\""}]},
    {"kind": "nats", "ref": "subject of a JetStream stream", "example": "shop.orders", "max_bytes": 255, "rules": [
      {"must": "^[^.*>\\x01-\\x20\\x7f]+([.][^.*>\\x01-\\x20\\x7f]+)*$",
       "problem": "must be a subject: words with dots between them, no spaces, no wildcards"},
      {"not": "^[$]", "problem": "must not begin with \"$\", by which servers are managed"}]},
    {"kind": "stdout", "ref": "anything", "example": "log", "max_bytes": 1024, "rules": []},
    {"kind": "go", "ref": "pattern of the handler, DOMAIN/TYPE", "example": "shop/order.*", "max_bytes": 1024,
     "rules": [
      {"must": "^([*]|[^/*]+)/([*]|[^*]+|[^*]+[.][*])$",
       "problem": "must be DOMAIN/TYPE, where TYPE is exact, a prefix such as order.*, or *"}]}
  ],
  "options": [
    {"option": "secret", "kinds": ["webhook"], "type": "secret",
     "must": "the name of a secret in the daemon's configuration, never the secret itself",
     "meaning": "name of the key that signs, in the daemon's configuration"},
    {"option": "unsigned", "kinds": ["webhook"], "type": "boolean", "default": "false",
     "meaning": "send without a signature"},
    {"option": "headers", "kinds": ["webhook"], "type": "headers",
     "meaning": "headers to add: texts, or {\"secret\": \"NAME\"} for what is secret"},
    {"option": "connection", "kinds": ["kafka", "nats"], "type": "text",
     "pattern": "^[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}$", "must": "the name of a connection in the daemon's configuration",
     "default": "the only one of the kind", "meaning": "name of the connection, in the daemon's configuration"},
    {"option": "format", "kinds": ["webhook", "nats"], "type": "choice",
     "choices": ["cloudevents", "cloudevents-binary", "json"], "default": "cloudevents",
     "meaning": "envelope of the event"},
    {"option": "format", "kinds": ["kafka"], "type": "choice",
     "choices": ["cloudevents", "cloudevents-binary", "json", "payload", "raw"], "default": "cloudevents",
     "meaning": "envelope of the event; payload: no envelope; raw: the payload names the record's bytes"},
    {"option": "format", "kinds": ["stdout"], "type": "choice", "choices": ["cloudevents", "json"],
     "default": "cloudevents", "meaning": "envelope of the event"},
    {"option": "rate_per_second", "kinds": ["webhook", "kafka", "nats", "stdout"], "type": "number", "min": 0.001,
     "max": 1000000, "default": "no limit", "meaning": "most deliveries in a second"},
    {"option": "queue", "kinds": ["river"], "type": "text", "pattern": "^[a-z0-9]+([_|-][a-z0-9]+)*$", "max": 64,
     "must": "small letters and digits, single \"_\", \"-\" or \"|\" between them, at most 64 characters",
     "default": "default", "meaning": "River's queue"},
    {"option": "priority", "kinds": ["river"], "type": "whole", "min": 1, "max": 4, "default": "1",
     "meaning": "1 goes first"},
    {"option": "max_attempts", "kinds": ["river"], "type": "whole", "min": 1, "max": 32767, "default": "25",
     "meaning": "attempts that River makes"},
    {"option": "schema", "kinds": ["river"], "type": "text", "pattern": "^[^\\x01-\\x1f\\x7f]+$", "max": 46,
     "must": "a text of 1 to 46 characters", "default": "public", "meaning": "schema of River's tables"}
  ]
}
$json$;
end
$$;
comment on function tidemark.target_rules() is
    'The kinds of targets, what target_ref must be for each, and their options with type, bounds, default and '
    'meaning. tidemark.target_problem checks by it.';
grant execute on function tidemark.target_rules() to tidemark_reader, tidemark_executor;
