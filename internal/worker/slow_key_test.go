package worker_test

import (
	"context"
	"strings"
	"testing"

	"github.com/tidemarkhq/tidemark/sink"
)

// holding lets the target keep the events of key s until it is told to let them go.
func holding(target *target) (release func()) {
	held := make(chan struct{})
	target.answers(func(_ context.Context, d sink.Delivery) sink.Result {
		if d.Event.Key == "s" {
			<-held // whatever happens to the lease
		}
		return sink.Result{Status: sink.Delivered}
	})
	return func() { close(held) }
}

// While an event takes long, the events of other keys that come later are delivered and recorded as if nothing were, and those of
// its key wait.
func TestSlowEventHoldsUpItsKeyAlone(t *testing.T) {
	t.Parallel()
	db, ts := setup(t, `, "ordering": "key"`)
	release := holding(ts["app"])
	run(t, db, ts)
	emit(t, db, "s1")
	eventually(t, db, `select seq::text from tidemark.pending`, "1")
	for _, e := range []string{"a2", "b3", "s4", "a5"} {
		emit(t, db, e)
	}
	eventually(t, db, evidence, "app 1 1 pending busy", "app 2 1 sent", "app 3 1 sent", "app 4 1 pending behind_key", "app 5 1 sent")
	release()
	eventually(t, db, settled, "true")
	if got := arrivedAs(ts["app"].wait(t, 5)); !strings.HasSuffix(got, " s1 s4") || strings.Index(got, "a2") > strings.Index(got, "a5") {
		t.Errorf("arrived: %s", got)
	}
}

// A page goes on without a slow event, and its settle fails. That the event has arrived in the end is not recorded: the database
// does not know that it was under way, and the whole page is delivered again.
func TestEndOfWhatWasNotSettled(t *testing.T) {
	t.Parallel()
	db, ts := setup(t, `, "ordering": "key"`)
	release := holding(ts["app"])
	exec(t, db, `create sequence refused; create function no_settle() returns trigger language plpgsql security definer as $$ begin
		perform nextval('public.refused'); raise exception 'no settle'; end $$`)
	exec(t, db, `create trigger no_settle before insert on tidemark.decision for each row execute function no_settle()`)
	exec(t, db, `insert into tidemark.handled select r.id, 1 from tidemark.outbound_route r`) // as a handler's commit leaves it
	emit(t, db, "s1", "a2")
	run(t, db, ts)
	eventually(t, db, `select is_called::text from refused`, "true")
	exec(t, db, `drop trigger no_settle on tidemark.decision`)
	release()
	if got := arrivedAs(ts["app"].wait(t, 4)); len(got) != 11 {
		t.Errorf("arrived: %s", got)
	}
	eventually(t, db, settled, "true")
	eventually(t, db, `select sum(m.sent)::text || ' sent' from tidemark.route_minute m`, "2 sent")
}

// The SQL holds to that by itself: what is told of an event that is not pending does not say that its handler was called.
func TestNothingIsForgottenOfWhatIsNotPending(t *testing.T) {
	t.Parallel()
	db, _ := setup(t, "")
	emit(t, db, "a1")
	exec(t, db, `insert into tidemark.handled select r.id, 1 from tidemark.outbound_route r`)
	exec(t, db, `select tidemark.settle('default', (select c.epoch from tidemark.claim('default') c), null, '{}',
		array[row(r.id, false, 'sent', null, null, '{[1,2)}', 0)]::tidemark.result[]) from tidemark.outbound_route r`)
	eventually(t, db, `select seq::text from tidemark.handled`, "1")
}
