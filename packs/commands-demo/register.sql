-- What the bundles say, as `tidemark command apply` would register it. A test compares them.
select tidemark.command_set('billing', 'charge.capture', 1, '{
    "function": "demo_billing.charge_capture", "description": "Charges a customer for an invoice",
    "payload_schema": {
      "type": "object",
      "additionalProperties": false,
      "required": ["invoice", "customer", "cents"],
      "properties": {
        "invoice": {"type": "integer", "minimum": 1},
        "customer": {"type": "string", "minLength": 1, "maxLength": 100},
        "cents": {"type": "integer", "minimum": 1, "maximum": 100000000}
      }
    },
    "result_schema": {
      "type": "object",
      "additionalProperties": false,
      "required": ["invoice", "charged"],
      "properties": {
        "invoice": {"type": "integer"},
        "charged": {"type": "integer"}
      }
    }
}');
select tidemark.command_allow('billing', 'shop');

select tidemark.command_set('user', 'create', 1, '{
    "function": "demo_user.account_create", "description": "Makes an account",
    "payload_schema": {
      "type": "object",
      "additionalProperties": false,
      "required": ["name", "email"],
      "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 100},
        "email": {"type": "string", "pattern": "^[^@ ]+@[^@ ]+$", "maxLength": 200}
      }
    },
    "result_schema": {
      "type": "object",
      "additionalProperties": false,
      "required": ["id"],
      "properties": {
        "id": {"type": "integer"}
      }
    }
}');
select tidemark.command_allow('user', 'shop');

-- Results and dead letters go to Kafka by these routes, off and in dry run. What an operator has set stays.
select tidemark.route_set(r.route || s.service, jsonb_build_object(
    'domain', 'commands', 'type', r.type || s.service, 'target_kind', 'kafka', 'target_ref', r.topic || s.service,
    'options', jsonb_build_object('format', r.format), 'ordering', 'key', 'description', r.what || s.service))
from (values ('billing'), ('user')) s (service),
    (values ('results.', 'result.', 'db-results.', 'payload', 'Results of the commands of '),
            ('dlq.', 'dead_letter.', 'db-dlq.', 'raw', 'Dead letters of the commands of '))
        r (route, type, topic, format, what)
where not exists (select from tidemark.outbound_route o where o.route_code = r.route || s.service);
