package test

import (
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

const stormWaited = `update tidemark.worker_cursor set metadata = jsonb_set(metadata, '{storm_until}', to_jsonb(now() - interval '1 s')) where metadata ? 'storm_until'`

// ready runs a pass after the window of a millisecond in which these tests have changes gathered.
func (s tailing) ready() run {
	s.t.Helper()
	for range 1000 {
		if r := s.once(); r.Status != "waiting" {
			return r
		}
	}
	s.t.Fatal("a window of a millisecond does not end")
	return run{}
}

// CU10: a storm is what comes until the worker has caught up, however small its pages are: a fifth of a million groups is
// in no page. What was there before the worker came is history.
func TestSourceStormOfSmallPages(t *testing.T) {
	t.Parallel()
	s := tail(t, tidemarktest.NewDB(t), "sequence", `{"group_key": ["name"]}`)
	s.exec(`select tidemark.worker_set('w', '{"source": "table", "coalesce_window": "1 millisecond", "storm_fraction": 0.3, "page_size": 10}');
		insert into births (name) select 'g' || n from generate_series(1, 100) n; analyze births`)
	s.drain()
	s.want(findings)
	s.want(`select metadata ? 'burst' from tidemark.worker_cursor where worker = 'w'`, "false")

	s.exec(`insert into births (name) select 'g' || n from generate_series(1, 60) n`)
	for _, opens := range []bool{false, false, false, true} {
		if got := s.ready(); got.Rows != 10 {
			t.Fatalf("%+v", got)
		}
		if opens {
			s.want(`select kind, subject, detail from tidemark.finding where closed_at is null`,
				"group_invalidation_storm w/births/0 40 touches of about 100 groups at once, more than 0.3 of them")
		} else {
			s.want(findings)
		}
	}
	if got := s.ready(); got.Status != "throttled" {
		t.Errorf("%+v, want it throttled", got)
	}
	s.exec(stormWaited)
	for range 2 { // two full pages, and the end of it
		if got := s.ready(); got.Rows != 10 {
			t.Fatalf("%+v", got)
		}
		s.want(findings, "group_invalidation_storm w/births/0")
	}
	s.ready()
	// It is over, and with it the count.
	s.want(findings)
	s.exec(`insert into births (name) select 'g' || n from generate_series(1, 9) n`)
	if got := s.ready(); got.Rows != 9 {
		t.Errorf("%+v", got)
	}
	s.want(findings)
	s.exact()
}

// A busy table of few groups is throttled once, and then caught up with, however much comes while the worker waits: more than
// a page here. The next storm is throttled again.
func TestSourceStormIsCaughtUpWith(t *testing.T) {
	t.Parallel()
	s := tail(t, tidemarktest.NewDB(t), "sequence", `{"group_key": ["name"]}`)
	s.exec(`select tidemark.worker_set('w', '{"source": "table", "coalesce_window": "1 millisecond", "storm_fraction": 0.2, "page_size": 10}');
		insert into births (name) select 'g' || n from generate_series(1, 100) n; analyze births`)
	s.drain()
	for range 2 {
		const few = `insert into births (name) select 'g' || n % 3 from generate_series(1, $1::integer) n`
		s.exec(few, 100) // 3 touches for a page
		waits, caught := 0, false
		for range 20 {
			got := s.ready()
			if got.Status == "throttled" {
				waits++
				s.exec(few, 12)
				s.exec(stormWaited)
			} else if got.Rows < 10 {
				caught = true
				break
			}
		}
		if waits != 1 || !caught {
			t.Errorf("%d waits, caught up: %t, want 1 and true", waits, caught)
		}
		s.want(findings)
		s.want(`select metadata ?| array['burst', 'storm_until'] from tidemark.worker_cursor where worker = 'w'`, "false")
	}
	s.want(`select count(*) from tidemark.finding where kind = 'group_invalidation_storm'`, "2")
}

// A guard that is taken off while a storm is on leaves no finding, and nothing to wait for.
func TestSourceStormGuardTakenOff(t *testing.T) {
	t.Parallel()
	s := tail(t, tidemarktest.NewDB(t), "sequence", `{"group_key": ["name"]}`)
	s.exec(`select tidemark.worker_set('w', '{"source": "table", "coalesce_window": "1 millisecond", "storm_fraction": 0.3, "page_size": 10}');
		insert into births (name) select 'g' || n from generate_series(1, 100) n; analyze births`)
	s.drain()
	s.exec(`insert into births (name) select 'g' || n from generate_series(1, 60) n`)
	for n, rows := 0, 0; n < 10 && rows < 40; n++ {
		rows += s.ready().Rows
	}
	s.want(findings, "group_invalidation_storm w/births/0")
	s.exec(`select tidemark.worker_set('w', '{"source": "table", "storm_fraction": null}')`)
	if got := s.ready(); got.Rows != 10 {
		t.Errorf("%+v, want it to go on at once", got)
	}
	s.want(findings)
	s.want(`select metadata ?| array['burst', 'storm_until'] from tidemark.worker_cursor where worker = 'w'`, "false")
}

// A handler that knows what its rows have touched, and how many groups there are, is believed; not when it tells nonsense.
func TestSourceStormAsTheHandlerHasIt(t *testing.T) {
	t.Parallel()
	for returns, want := range map[string][]string{
		`{"touched": 30, "groups": 100}`:             {"group_invalidation_storm w/births/0"},
		`{"touched": 20, "groups": 100}`:             nil,
		`{"touched": 30, "groups": 1000000}`:         nil,
		`{"touched": 1e300, "groups": 1}`:            {"group_invalidation_storm w/births/0"},
		`{"touched": "many", "groups": [1]}`:         nil, // 5 rows of 100 groups
		`{"touched": null, "groups": 10}`:            nil, // too few to be one
		`[{"touched": 30, "groups": 100}, "groups"]`: nil,
	} {
		t.Run(returns, func(t *testing.T) {
			t.Parallel()
			s := tail(t, tidemarktest.NewDB(t), "sequence", `{"group_key": ["name"]}`)
			s.exec(`select tidemark.worker_set('w', '{"source": "table", "coalesce_window": "1 millisecond", "storm_fraction": 0.2}');
				insert into births (name) select 'g' || n from generate_series(1, 100) n; analyze births`)
			s.drain()
			s.exec(`create or replace function take(rows births[]) returns jsonb language sql as $$ select '` + returns + `'::jsonb $$;
				insert into births (name) select 'g' || n from generate_series(1, 5) n`)
			if got := s.ready(); got.Rows != 5 || got.Failed != 0 {
				t.Fatalf("%+v", got)
			}
			s.want(findings, want...)
		})
	}
}

// A page that is halved has no more groups for that.
func TestSourceStormOfAHalvedPage(t *testing.T) {
	t.Parallel()
	s := tail(t, tidemarktest.NewDB(t), "sequence", `{"group_key": ["name"]}`)
	s.exec(`select tidemark.worker_set('w', '{"source": "table", "storm_fraction": 0.2}')`)
	s.drain()
	s.exec(`create or replace function take(rows births[]) returns jsonb language plpgsql as $$ begin
			if exists (select from unnest(rows) r where r.name = 'poison') then raise 'poison'; end if;
			return jsonb_build_object('touched', cardinality(rows), 'groups', 100); end $$;
		insert into births (name) select case n when 7 then 'poison' else 'g' || n end from generate_series(1, 31) n`)
	s.once()
	s.want(`select kind, detail from tidemark.finding where closed_at is null`,
		"group_invalidation_storm 30 touches of about 100 groups at once, more than 0.2 of them")
}

// The checkpoint that a handler returned for a page stays until the next page that has rows: passes without rows and held
// passes do not erase it.
func TestSourceCheckpointLasts(t *testing.T) {
	t.Parallel()
	s := tail(t, tidemarktest.NewDB(t), "sequence", "")
	const checkpoint = `select c.k ->> 'taken' as taken, c.k ->> 'batch_count' as batches, (c.k ->> 'started_at')::timestamptz < (c.k ->> 'ended_at')::timestamptz as timed,
		last_run_summary ->> 'rows' as rows from tidemark.worker_cursor, lateral (select last_run_summary -> 'checkpoint') c (k) where worker = 'w'`
	s.once()
	s.want(checkpoint, "- - - 0")
	s.exec(`insert into births (name) select 'g' || n from generate_series(1, 7) n`)
	s.once(nil, nil, 5)
	s.want(checkpoint, "5 1 true 5")
	s.once(nil, nil, 5)
	s.want(checkpoint, "2 2 true 2")
	for range 3 {
		s.once()
	}
	s.want(checkpoint, "2 2 true 0")
	s.exec(`alter table births rename to elsewhere`)
	if got := s.once(); got.Status != "held" {
		t.Fatalf("%+v", got)
	}
	s.want(checkpoint, "2 2 true 0")
	s.exec(`alter table elsewhere rename to births; insert into births (name) values ('g')`)
	s.once()
	s.want(checkpoint, "1 3 true 1")
	// Nor does a page whose rows have all failed, which returns nothing.
	s.exec(`alter table taken add check (id <> '9'); insert into births (name) values ('refused')`)
	if got := s.once(); got.Failed != 1 || got.Taken != 0 {
		t.Fatalf("%+v", got)
	}
	s.want(checkpoint, "1 4 true 1")
}
