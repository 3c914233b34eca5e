package test

import (
	"testing"

	"github.com/tidemarkhq/tidemark/sql"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// A target and a handler fail over a value of the payload, and the message of the error quotes it. Nothing that a reader
// may select shows it: she has the code, and what it means. Who may read payloads sees the message.
func TestMessagesAreNotForReaders(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	const secret = "4111-1111"
	w := live(t, db)
	s := tailing{w}
	s.exec(`create or replace function receive(event jsonb) returns void language plpgsql as $$ declare n integer; begin n := event -> 'payload' ->> 'card'; end $$;
		select tidemark.type_set('test', 'tick'); select tidemark.emit('test', 'tick', '{"card": "` + secret + `"}')`)
	s.exec(`create table births (id bigint generated always as identity primary key, card text);
		create function take(rows births[]) returns void language plpgsql as $$ begin perform card::integer from unnest(rows); end $$;
		insert into births (card) values ('` + secret + `'), ('` + secret + `')`)
	s.source("births", `{"table": "public.births", "id_column": "id", "safety": "sequence"}`)
	s.worker("w", `{"handler": "sql", "handler_ref": "public.take", "retry_policy": {"base_seconds": 1000, "max_attempts": 2}}`)
	s.add("w")
	s.exec(`select tidemark.source_rewind('w', 'births', 'from the start', to_id => '0')`)
	s.pass()
	if got := s.once(); got.Failed != 2 {
		t.Fatalf("%+v, want two rows to fail", got)
	}
	s.exec(`update tidemark.pending_row set next_attempt_at = now() where item_id = '1'; select tidemark.worker_run('w')`)
	// Findings of workers, and a page that is cut off again and again.
	s.exec(`select tidemark.worker_finding('default', 'worker_failing', 'default', 'it cannot settle: 22P02', message => '` + secret + `')`)
	s.exec(`select tidemark.worker_finding('default', 'target_down', 'app', 'its target fails: http_500', message => '` + secret + `')`)
	s.exec(`select tidemark.source_cut(p, p.epoch, null, 'canceled: ` + secret + `') from generate_series(1, 5) n cross join lateral (
		select (tidemark.source_plan('w', 'births', 0, c.epoch, null, null)).* from tidemark.claim('w', 'me', '30 seconds', 'births', 0) c) p`)
	reader, operator := login(t, db, "reader", "tidemark_reader"), login(t, db, "operator", "tidemark_admin")
	const event = `(select event_id from tidemark.outbox where seq = 1)`
	operator.want(`select count(*) from tidemark.letter_detail where error_detail like '%`+secret+`%'`, "2")
	operator.want(`select count(*) from tidemark.waiting where last_error like '%`+secret+`%'`, "1")
	operator.want(`select count(*) from tidemark.route_attempt where detail like '%`+secret+`%'`, "1")
	operator.want(`select count(*) from tidemark.event_evidence(1) where detail like '%`+secret+`%'`, "1")
	// Of the event's route: the letter, and what is tried again.
	const failedBefore = "It failed for good after one attempt: 22P02, "
	operator.want(`select sentence from tidemark.why(`+event+`, 'app')`, failedBefore+`invalid input syntax for type integer: "`+secret+`".`)
	operator.want(`select count(*) from tidemark.route_why_not('app') where sentence like '%`+secret+`%' and reason = 'dead letter'`, "1")
	operator.want(`select count(*) from tidemark.route_why_not('app') where sentence like '%`+secret+`%' and reason = 'dead_letters'`, "1")
	reader.want(`select string_agg(reason, ' ') from tidemark.route_why_not('app')`, "target_down worker_failing dead_letters dead letter")
	executor := login(t, db, "executor", "tidemark_executor")
	executor.want(`select string_agg(reason, ' ') from tidemark.route_why_not('app')`, "target_down worker_failing dead_letters dead letter")
	reader.want(`select sentence from tidemark.why(`+event+`, 'app')`, failedBefore+"a value cannot be read, or is out of range.")
	operator.want(`select count(*) from tidemark.finding_detail where detail like '%`+secret+`%'`, "3")
	operator.want(`select count(*) from tidemark.queue_health where note like '%`+secret+`%'`, "3")

	reader.want(`select f.kind, d.detail from tidemark.finding f join tidemark.finding_detail d using (id) where f.kind in ('worker_failing', 'target_down') order by f.id limit 2`,
		"worker_failing worker default: it cannot settle: 22P02", "target_down worker default: its target fails: http_500")
	reader.wantRefused("42501", `select * from tidemark.finding_message`)
	reader.want(`select distinct error_code, s.error_detail from tidemark.dead_letter join tidemark.letter_detail s using (id)`, "22P02 a value cannot be read, or is out of range")
	reader.want(`select last_error from tidemark.waiting`, "22P02: a value cannot be read, or is out of range")
	reader.want(`select reason, detail from tidemark.route_attempt where outcome = 'failed'`, "22P02 a value cannot be read, or is out of range")
	reader.want(`select detail from tidemark.event_evidence(1) where outcome = 'failed'`, "a value cannot be read, or is out of range")
	reader.wantRefused("42501", `select error_detail from tidemark.dead_letter`)
	reader.wantRefused("42501", `select last_error from tidemark.pending`)
	reader.wantRefused("42501", `select last_error from tidemark.pending_row`)
	reader.wantRefused("42501", `select detail from tidemark.attempt`)
	reader.wantNowhere(secret)
}

// A handler that raises an error of class 42, or one of Tidemark's, in words of its own holds the worker: nothing that a
// reader may select has the words.
func TestMessagesOfHeldWorkersAreNotForReaders(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"42501", "42883", "42P01", "42703", "42804", "42601", "0A000", "TM001"} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			db := tidemarktest.NewDB(t)
			const secret = "4111-1111"
			s := tailing{live(t, db)}
			s.exec(`create table births (id bigint generated always as identity primary key, card text);
				create function take(rows births[]) returns void language plpgsql as $$ begin
					raise exception using errcode = '` + code + `', message = rows[1].card; end $$;
				insert into births (card) values ('` + secret + `')`)
			s.source("births", `{"table": "public.births", "id_column": "id", "safety": "sequence"}`)
			s.worker("w", `{"handler": "sql", "handler_ref": "public.take"}`)
			s.add("w")
			s.exec(`select tidemark.source_rewind('w', 'births', 'from the start', to_id => '0')`)
			s.pass()
			if got := s.once(); got.Status != "held" {
				t.Fatalf("%+v, want held", got)
			}
			s.exec(`select tidemark.finding_ack(id, 'mine') from tidemark.finding where kind = 'source_misconfigured'`)
			reader, operator := login(t, db, "reader", "tidemark_reader"), login(t, db, "operator", "tidemark_admin")
			operator.want(`select count(*) from tidemark.finding_detail where detail like '%`+secret+`%'`, "1")
			reader.want(`select kind, left(detail, 6) from tidemark.finding where closed_at is null`, "source_misconfigured "+code+":")
			reader.wantNowhere(secret)
		})
	}
}

// The migration that took messages out of findings takes them out of those that are there.
func TestMessagesOfOldFindingsAreMoved(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	const secret = "4111-1111"
	s := open(t, db, "superuser")
	s.exec(`insert into tidemark.finding (kind, subject, severity, detail, last_seen_at)
		select k, 'w', 'high', 'it fails: ` + secret + `', now() - interval '1 year'
		from unnest('{source_misconfigured,worker_failing,target_down,route_misconfigured,cursor_holes}'::text[]) k`)
	s.exec(`select tidemark.finding_ack(id, 'mine') from tidemark.finding where kind <> 'cursor_holes'`)
	s.exec(`update tidemark.finding set detail = 'holes' where kind = 'cursor_holes'`)
	migration, err := sql.Files.ReadFile("migrations/0041_messages_of_findings.sql")
	if err != nil {
		t.Fatal(err)
	}
	s.exec(`begin;` + string(migration) + `commit`)
	reader, operator := login(t, db, "reader", "tidemark_reader"), login(t, db, "operator", "tidemark_admin")
	operator.want(`select count(*) from tidemark.finding_detail where detail like '%`+secret+`%'`, "4")
	reader.want(`select detail from tidemark.finding where kind = 'cursor_holes'`, "holes")
	reader.wantNowhere(secret)
}

// wantNowhere looks for a text in whatever the role may select, also in a table that is made tomorrow.
func (s tailing) wantNowhere(secret string) {
	s.t.Helper()
	for _, sql := range s.selectable(secret) {
		s.want(sql, "0")
	}
}

// selectable are queries that count where the text is among what the role may select.
func (s tailing) selectable(secret string) []string {
	s.t.Helper()
	return append(s.lines(`select format('select count(*) from tidemark.%I t where concat_ws('' '', %s) like ''%%`+secret+`%%''', c.relname,
			string_agg(format('t.%I::text', a.attname), ', '))
		from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
		where c.relnamespace = 'tidemark'::regnamespace and c.relkind in ('r', 'p', 'v') and not c.relispartition
		  and has_column_privilege(c.oid, a.attnum, 'select') group by c.relname order by 1`),
		`select count(*) from tidemark.verify() v where v.detail like '%`+secret+`%'`)
}
