package test

import (
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// A setting takes only what the function that reads it understands: each passes over anything else without an error.
func TestSettingsAreReadAsTheyAreSet(t *testing.T) {
	t.Parallel()
	s := open(t, tidemarktest.NewDB(t), "operator")
	s.exec(`select tidemark.heartbeat_register('job', 'Agent')`)
	s.exec(`insert into tidemark.dead_letter (idempotency_key, worker_id, source, item_id, event_snapshot, error_code)
		select 'k' || n, (select w.id from tidemark.worker w where w.worker = 'default'), 'births', n::text, '{}', 'x' from generate_series(1, 1001) n`)
	const overflow = `select case when exists (select from tidemark.finding f where f.kind = 'dlq_overflow') then 'over' else 'under' end`
	for key, c := range map[string]struct {
		read  string            // what the reader makes of it
		takes map[string]string // text → what is read; "": it is refused
	}{
		"emit.payload_limit": {`select coalesce(tidemark.payload_limit(), 0)::text`, map[string]string{
			"0": "0", "1000": "1000", "005000": "5000", "999999999999999": "999999999999999",
			"999": "", "1000000000000000": "", "5000000 ": "", "+5000000": "", "5_000_000": "", "0x10000": "", "-1": "", "1e6": "",
		}},
		"batch.max_bytes": {`select tidemark.page_bytes()::text`, map[string]string{
			"65536": "65536", "999999999999": "999999999999", "1000000000000": "", " 100000": "", "+100000": "", "100_000": "", "65535": "",
		}},
		"dead_letter.overflow": {overflow, map[string]string{"2147483647": "under", "2000000000": "under", "1000": "over", "2147483648": "", "2_000": "", " 2000": "", "0": ""}},
		"queue.heartbeat.stale_threshold_seconds": {`select h.stale_threshold_seconds::text from tidemark.heartbeat_health h where h.executor_id = 'job'`, map[string]string{
			"5000": "5000", "99999999999999999999": "2147483647", "+5000": "", "5_000": "", "5000 ": "", "-1": "",
		}},
		"disk.size": {`select tidemark.disk_bytes(s.value)::text from tidemark.setting s where s.key = 'disk.size'`, map[string]string{
			"0": "0", "500 GB": "536870912000", "1.5kb": "1536", " 2 TB ": "2199023255552", "1 PB": "1125899906842624", "5000000000000": "5000000000000", "100 bytes": "100",
			"999999999999999999 TB": "1099511627775999998900488372224", "-1": "", "1e3": "", "500 XB": "", "GB": "",
		}},
		"outbox.partition_events": {``, map[string]string{"1000": "1000", "999": "", "1_000": "", "2147483648": ""}},
		"outbox.partitions_ahead": {``, map[string]string{"1": "1", "0": "", " 2": ""}},
	} {
		if c.read == "" {
			c.read = `select s.value from tidemark.setting s where s.key = ` + "'" + key + "'"
		}
		for value, want := range c.takes {
			s.begin()
			if want == "" {
				s.refused("TM005", "setting "+key+" is", `select tidemark.setting_set($1, $2)`, key, value)
			} else {
				s.exec(`select tidemark.setting_set($1, $2)`, key, value)
				s.exec(`select tidemark.dead_letter_findings('default', (select w.id from tidemark.worker w where w.worker = 'default'), 'default', 1)`)
				s.wantRows(c.read, want)
			}
			s.rollback()
		}
	}
}
