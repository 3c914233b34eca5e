package main

import (
	"context"
	"strings"

	"github.com/tidemarkhq/tidemark/internal/store"
)

// step is a step of a runbook that was taken.
type step struct {
	Step    string `json:"step"`
	SQL     string `json:"sql"`
	Changed bool   `json:"changed"`
	Result  string `json:"result"`
}

// steps writes what was done so that the whole output can be given to psql.
func (p *printer) steps(all ...step) error {
	for _, s := range all {
		if p.json {
			if err := p.object(s); err != nil {
				return err
			}
			continue
		}
		for _, line := range []string{"-- " + s.Step, s.SQL, "--   " + s.Result} {
			if err := p.linef("%s", line); err != nil {
				return err
			}
		}
	}
	return nil
}

func literal(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// workerGates are the gates of workers.
func workerGates(workers []string) (gates []string) {
	for _, worker := range workers {
		gates = append(gates, workerGate(worker))
	}
	return gates
}

// setGates sets gates, and returns a step for each, and how all gates were before.
func setGates(ctx context.Context, db *store.DB, gates []string, open bool, reason string) (done []step, before []store.Gate, err error) {
	if before, err = db.Gates(ctx); err != nil {
		return nil, nil, err
	}
	was := map[string]bool{}
	for _, g := range before {
		was[g.Gate] = g.Open
	}
	for _, gate := range gates {
		if err := db.GateSet(ctx, gate, open, reason); err != nil {
			return nil, nil, err
		}
		done = append(done, gateStep(gate, was[gate], open, reason))
	}
	return done, before, nil
}

// gateStep is the step that set a gate.
func gateStep(gate string, was, open bool, reason string) step {
	value, why := "false", "null"
	if open {
		value = "true"
	}
	if reason != "" {
		why = literal(reason)
	}
	s := step{
		Step: "set the gate " + gate, SQL: "select tidemark.gate_set(" + literal(gate) + ", " + value + ", " + why + ");",
		Changed: was != open, Result: openOrClosed(was) + " before, " + openOrClosed(open) + " now",
	}
	if !s.Changed {
		s.Result = "was " + openOrClosed(open) + " already"
	}
	return s
}

func workerGate(worker string) string { return "worker." + worker + ".enabled" }
