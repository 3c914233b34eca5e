package store

import (
	"context"
	"slices"
	"strings"
	"time"
)

// Gate is a switch that a worker asks before it delivers. It is closed until an operator opens it.
type Gate struct {
	Gate      string     `db:"gate" json:"gate"`
	Open      bool       `db:"open" json:"open"`
	ChangedAt *time.Time `db:"changed_at" json:"changed_at"` // null: never
	ChangedBy *string    `db:"changed_by" json:"changed_by"`
	Reason    *string    `db:"reason" json:"reason"`
}

// OthersOpen names the workers, other than these, whose own gate is open.
func OthersOpen(gates []Gate, workers []string) (others []string) {
	for _, g := range gates {
		name, ok := strings.CutPrefix(g.Gate, "worker.")
		name = strings.TrimSuffix(name, ".enabled")
		if ok && g.Open && !slices.Contains(workers, name) {
			others = append(others, name)
		}
	}
	return others
}

// Gates returns the master gates, the gates of domains that have one, and the gate of each service and of each worker but that of
// commands, which has none.
func (db *DB) Gates(ctx context.Context) ([]Gate, error) {
	return list[Gate](ctx, db, gates)
}

// GateExists returns tidemark.ErrNotFound for a gate that Gates does not list.
func (db *DB) GateExists(ctx context.Context, gate string) error {
	_, err := one[Gate](ctx, db, `select g.* from (`+gates+`) g where g.gate = $1`, gate)
	_, err = known(gate, err, `gate "`+gate+`"`, "Gates: tidemark gate list")
	return err
}

const gates = `select g.gate, tidemark.gate_open(g.gate) as open, a.at as changed_at, a.actor as changed_by, a.reason
		from (select 'routes.enabled' as gate, 0 as place
		      union all select 'commands.enabled', 0 from tidemark.service having count(*) > 0
		      union all select 'commands.' || s.service || '.enabled', 2 from tidemark.service s
		      union all select g, 3 from unnest(array['notify.bridge_enabled', 'notify.listeners_enabled']) g
		      union all select s.key, 1 from tidemark.setting s where s.key like 'domain.%.enabled'
		      union all select 'worker.' || w.worker || '.enabled', 2 from tidemark.worker w where w.source <> 'kafka') g
		left join lateral (select a.at, a.actor, a.reason from tidemark.audit a
		                   where a.object = 'setting ' || g.gate order by a.id desc limit 1) a on true
		order by g.place, g.gate`

// GateSet calls tidemark.gate_set. An unknown gate is tidemark.ErrNotFound.
func (db *DB) GateSet(ctx context.Context, gate string, open bool, reason string) error {
	_, err := value[bool](ctx, db, `select tidemark.gate_set($1, $2, nullif($3, ''))`, gate, open, reason)
	return err
}

// ClosedGate calls tidemark.closed_gate: what forbids the worker to run. Null: nothing.
func (db *DB) ClosedGate(ctx context.Context, worker string) (gate *string, err error) {
	return value[*string](ctx, db, `select tidemark.closed_gate($1)`, worker)
}

// Stage says whether routes may deliver.
type Stage struct {
	Stage     string    `db:"stage" json:"stage"` // dry_run or live
	Armed     bool      `db:"armed" json:"armed"` // live, in this very cluster and database
	Database  *string   `db:"database" json:"database"`
	ChangedAt time.Time `db:"changed_at" json:"changed_at"`
	ChangedBy string    `db:"changed_by" json:"changed_by"`
	Reason    string    `db:"reason" json:"reason"`
}

// Stage returns the stage of the installation.
func (db *DB) Stage(ctx context.Context) (Stage, error) {
	return one[Stage](ctx, db, stage)
}

const stage = `select s.stage, tidemark.armed() as armed, s.database, s.changed_at, s.changed_by, s.reason from tidemark.stage s`

// StageSet calls tidemark.stage_set.
func (db *DB) StageSet(ctx context.Context, stage, reason string) error {
	_, err := value[string](ctx, db, `select tidemark.stage_set($1, $2)`, stage, reason)
	return err
}

// WorkerGate is the gate of a worker.
func WorkerGate(worker string) string { return "worker." + worker + ".enabled" }
