package tidemark

// Where the registry has a schema of another digest than the last parameter, these give it, and the function is not called.
const (
	sqlEmit       = before + `tidemark.emit` + after
	sqlEmitStrict = before + `tidemark.emit_strict` + after

	before = `select t.schema_digest, t.schema::text, case when t.schema_digest is null then `
	after  = `(
	domain => $1, type => $2, payload => coalesce($3::jsonb, '{}'), key => nullif($4, ''), stream => nullif($5, ''),
	lane => nullif($6, '')::tidemark.lane, severity => nullif($7, '')::tidemark.severity,
	subject_table => nullif($8, ''), subject_ref => nullif($9, ''), idempotency_key => nullif($10, ''),
	trace => nullif($11, ''), actor => nullif($12, ''), occurred_at => $13)::text end
from (values (null)) one
left join tidemark.event_type t on t.domain = $1 and t.type = $2 and t.enabled and t.schema_digest <> $14`

	sqlEmitMany       = beforeMany + `tidemark.emit_many` + afterMany
	sqlEmitManyStrict = beforeMany + `tidemark.emit_many_strict` + afterMany

	beforeMany = `with other as materialized (
	select t.domain, t.type, t.schema_digest as digest, t.schema
	from jsonb_to_recordset($2::text::jsonb) k (domain text, type text, digest text)
	join tidemark.event_type t on t.domain = k.domain and t.type = k.type and t.enabled and t.schema_digest <> k.digest
)
select (select json_agg(o)::text from other o),
       case when not exists (select from other) then (select to_json(array_agg(m.event_id::text order by m.position))::text from `
	afterMany = `($1::text::jsonb) m) end`
)
