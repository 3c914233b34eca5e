package bundletest

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidemarkhq/tidemark/internal/command"
	"github.com/tidemarkhq/tidemark/internal/command/bundle"
	"github.com/tidemarkhq/tidemark/internal/store"
)

// traps are what a hostile, broken or hasty producer does, and a function that fails late. base is an example of a success.
func (t *tester) traps(ctx context.Context, c bundle.Command, base bundle.Example) error {
	for _, part := range []func(context.Context, scratch, bundle.Command, bundle.Example) error{t.refusals, t.repeats, t.atOnce, t.failing, t.overKafka} {
		err := t.within(ctx, func(s scratch) error {
			problem, err := t.before(ctx, s, base)
			if err == nil && problem != "" {
				err = fmt.Errorf("%s: %s", base.Name, problem) // it passed before
			}
			if err != nil {
				return err
			}
			err = part(ctx, s, c, base)
			if err != nil && ctx.Err() == nil && !s.IsClosed() { // an answer was to come, and not an error
				t.note(t.bundle.Name(c), "traps", []string{t.Text(err)})
				err = nil
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// trap is a record and what must become of it.
type trap struct {
	what   string
	record []byte
	want   command.Reason // or the class of it
}

// refusals are rejected, claim nothing, and have no effect.
func (t *tester) refusals(ctx context.Context, s scratch, c bundle.Command, base bundle.Example) error {
	good := t.envelope(c, base, "refused")
	unknown := []trap{
		{"an unknown command", good.with("command", "tidemark-command-test").text(), command.ContractUnknownCommand},
		{"an unknown version", good.with("command_version", 1<<30).text(), command.ContractUnsupportedVersion},
		{"an unknown schema version", good.with("schema_version", 1<<30).text(), command.ContractUnknownSchemaVersion},
	}
	who, _ := t.asker(c)
	stranger := good.with("metadata", map[string]any{"producer": "tidemark-command-test-stranger"})
	for _, group := range []struct {
		check string
		traps []trap
	}{
		{"envelopes that are not", envelopeTraps(good)},
		{"unknown command and versions", unknown},
		{"a foreign producer", []trap{{"a producer that is not on the allowlist", stranger.text(), command.IdentityProducerNotAllowed}}},
	} {
		if err := t.refuse(ctx, s, c, group.check, group.traps); err != nil {
			return err
		}
	}
	if p, found := t.bundle.Asker(c); found && slices.Contains(p.Tenants, "*") {
		t.skip(t.bundle.Name(c), "a foreign tenant", p.Producer+" may ask for all tenants")
		return nil
	}
	foreign := good.with("metadata", map[string]any{"producer": who.producer, "tenant": "tidemark-command-test-tenant"})
	return t.refuse(ctx, s, c, "a foreign tenant", []trap{{"a tenant that is not the producer's", foreign.text(), command.IdentityTenantNotAllowed}})
}

func (t *tester) refuse(ctx context.Context, s scratch, c bundle.Command, check string, traps []trap) error {
	was, err := s.state(ctx)
	if err != nil {
		return err
	}
	claims, err := s.db.CommandClaims(ctx, store.ClaimFilter{})
	if err != nil {
		return err
	}
	var problems []string
	for _, trap := range traps {
		a, err := s.ask(ctx, trap.record)
		switch {
		case err != nil && ctx.Err() != nil:
			return err
		case err != nil:
			problems = append(problems, trap.what+": "+t.Text(err))
		case a.Status != "rejected" || !strings.HasPrefix(string(a.Code), string(trap.want)):
			problems = append(problems, fmt.Sprintf("%s: wanted rejected, %s, found %s", trap.what, trap.want, a))
		}
		// The daemon reads envelopes by itself.
		if _, err := command.Parse(trap.record); (err == nil) == strings.HasPrefix(string(trap.want), "envelope") {
			problems = append(problems, fmt.Sprintf("%s: the daemon and the database do not agree: %v", trap.what, err))
		}
	}
	after, err := s.db.CommandClaims(ctx, store.ClaimFilter{})
	if err != nil {
		return err
	}
	if len(after) != len(claims) {
		problems = append(problems, "a refused command has claimed its idempotency key")
	}
	changed, err := s.left(ctx, was)
	t.note(t.bundle.Name(c), check, append(problems, changed...))
	return err
}

// members are all those of an envelope.
var members = []string{
	"event_id", "service", "command", "command_version", "schema_version", "payload", "idempotency_key", "occurred_at", "trace_id", "metadata",
}

// envelopeTraps has each member missing, null and of a wrong type, one doubled, and one unknown.
func envelopeTraps(good envelope) (all []trap) {
	add := func(what string, record []byte) { all = append(all, trap{what, record, "envelope."}) }
	for _, member := range members {
		add(member+" missing", good.without(member).text())
		add(member+" null", good.with(member, nil).text())
		add(member+" an array", good.with(member, []int{}).text())
	}
	add("a member twice", bytes.Replace(good.text(), []byte("{"), []byte(`{"command_version": 1, `), 1))
	add("an unknown member", good.with("tidemark_command_test", 1).text())
	add("text behind the envelope", append(good.text(), "{}"...))
	return all
}

// repeats are the same command again, and another one with its key.
func (t *tester) repeats(ctx context.Context, s scratch, c bundle.Command, base bundle.Example) error {
	name, first := t.bundle.Name(c), t.envelope(c, base, "repeated")
	done, err := s.ask(ctx, first.text())
	if err != nil {
		return err
	}
	was, err := s.state(ctx)
	if err != nil {
		return err
	}
	asked := first.again()
	a, err := s.ask(ctx, asked.text())
	if err != nil {
		return err
	}
	var problems []string
	if a.Status != "duplicate" || a.Original != "processed" {
		problems = append(problems, "wanted duplicate, found "+a.String())
	}
	if a.EventID != asked["event_id"] || string(a.Result) != string(done.Result) || a.ProcessedAt != done.ProcessedAt {
		problems = append(problems, "the answer has not the stored result and time under the event id of the asker")
	}
	changed, err := s.left(ctx, was)
	if err != nil {
		return err
	}
	t.note(name, "a resend", append(problems, changed...))

	payload := otherPayload(c, base)
	if payload == nil {
		t.skip(name, "a key used again", "no other payload is known that fits the schema: add a second example of a success")
		return nil
	}
	if a, err = s.ask(ctx, first.again().with("payload", payload).text()); err != nil {
		return err
	}
	problems = nil
	if a.Status != "failed_terminal" || a.Code != command.IdempotencyKeyReused {
		problems = append(problems, fmt.Sprintf("wanted failed_terminal, %s, found %s", command.IdempotencyKeyReused, a))
	}
	claims, err := s.db.CommandClaimsOf(ctx, "repeated")
	if err != nil {
		return err
	}
	if len(claims) != 1 || claims[0].EventID != first["event_id"] || claims[0].State != "processed" {
		problems = append(problems, "the claim of the first command has changed")
	}
	changed, err = s.left(ctx, was)
	t.note(name, "a key used again", append(problems, changed...))
	return err
}

// atOnce asks twice, the second time while the first transaction is open.
func (t *tester) atOnce(ctx context.Context, s scratch, c bundle.Command, base bundle.Example) error {
	other, err := t.connect(ctx, s.name)
	if err != nil {
		return err
	}
	second := scratch{Conn: other, db: store.New(other), name: s.name}
	defer other.Close(context.WithoutCancel(ctx))
	first := t.envelope(c, base, "at once")
	tx, err := s.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
	if err != nil {
		return err
	}
	defer tx.Rollback(context.WithoutCancel(ctx))
	a, err := s.ask(ctx, first.text())
	if err != nil {
		return err
	}
	type outcome struct {
		answer
		err error
	}
	answered := make(chan outcome, 1)
	go func() {
		b, err := second.ask(ctx, first.again().text())
		answered <- outcome{b, err}
	}()
	waited, err := waits(ctx, tx, other.PgConn().PID(), func() bool { return len(answered) > 0 })
	if err == nil {
		err = tx.Commit(ctx)
	}
	b := <-answered
	if err := cmp.Or(err, b.err); err != nil {
		return fmt.Errorf("two of one key at once: %w", err)
	}
	results, err := s.db.CommandResults(ctx, t.bundle.Service, 0, 1000)
	if err != nil {
		return err
	}
	processed := 0
	for _, r := range results {
		if bytes.Contains(r.Document, []byte(`"idempotency_key": "at once"`)) && bytes.Contains(r.Document, []byte(`"status": "processed"`)) {
			processed++
		}
	}
	var problems []string
	if a.Status != "processed" || b.Status != "duplicate" || processed != 1 || !waited {
		problems = []string{fmt.Sprintf("wanted processed, and the other to wait and be duplicate; found %s and %s, with %d results processed", a, b.answer, processed)}
	}
	t.note(t.bundle.Name(c), "two of one key at once", problems)
	return nil
}

// waits tells whether a session waits for a lock before it is done.
func waits(ctx context.Context, tx pgx.Tx, pid uint32, done func() bool) (is bool, err error) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !is && !done() {
		if err := tx.QueryRow(ctx, "select cardinality(pg_blocking_pids($1)) > 0", int32(pid)).Scan(&is); err != nil { //nolint:gosec // a process id fits
			return false, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
	return is, nil
}

// failing lets the command fail after its effect: nothing of the effect may stay.
func (t *tester) failing(ctx context.Context, s scratch, c bundle.Command, base bundle.Example) error {
	const check = "a failure after the effect"
	if c.Function == "" {
		t.skip(t.bundle.Name(c), check, "a statement has no part that could stay")
		return nil
	}
	schema, name, _ := strings.Cut(c.Function, ".")
	function := pgx.Identifier{schema, name}.Sanitize()
	var arguments int
	err := s.QueryRow(ctx, `select p.pronargs from pg_proc p join pg_namespace n on n.oid = p.pronamespace
		where n.nspname = $1 and p.proname = $2 and p.prokind = 'f' and p.proargtypes[0] = 'jsonb'::regtype and p.pronargs in (1, 2)`, schema, name).Scan(&arguments)
	if err != nil {
		return err
	}
	call := function + "(payload)"
	if arguments == 2 {
		call = function + "(payload, context)"
	}
	if _, err = s.Exec(ctx, fmt.Sprintf(`create schema tidemark_command_test;
		create function tidemark_command_test.fails(payload jsonb, context jsonb) returns jsonb language plpgsql
		set search_path = pg_catalog, %s, pg_temp as $$
		begin
			perform %s;
			raise exception 'the test lets the command fail after its effect';
		end $$`, pgx.Identifier{schema}.Sanitize(), call), pgx.QueryExecModeSimpleProtocol); err != nil {
		return err
	}
	if _, err := s.db.CommandSet(ctx, t.bundle.Service, c.Command, c.Version, map[string]any{"function": "tidemark_command_test.fails"}, reason); err != nil {
		return err
	}
	was, err := s.state(ctx)
	if err != nil {
		return err
	}
	a, err := s.ask(ctx, t.envelope(c, base, "failing").text())
	if err != nil {
		return err
	}
	var problems []string
	if a.Status != "failed_terminal" || a.Code != command.SQLBusinessRule {
		problems = append(problems, fmt.Sprintf("wanted failed_terminal, %s, found %s", command.SQLBusinessRule, a))
	}
	changed, err := s.left(ctx, was)
	t.note(t.bundle.Name(c), check, append(problems, changed...))
	return err
}
