package main

const (
	baseName     = "base"
	plainName    = "base + plain outbox"
	emitName     = "base + emit"
	oneBaseName  = "one statement: base"
	oneEmitName  = "one statement: base + emit"
	many         = 100
	manyPlain    = "100 a statement: plain outbox"
	manyEmit     = "100 a statement: emit_many"
	manyArrays   = "100 a statement: emit_arrays"
	manyJSON     = "100 a statement: insert into the log, from the same JSON"
	directName   = "base + direct insert into the log"
	toLogName    = "base, trigger by hand into the log"
	capturedName = "base, captured"
	byHandName   = "base, trigger by hand into the plain outbox"
	manyBase     = "100 a statement: base"
	manyByHand   = "100 a statement: base, trigger by hand into the plain outbox"
	manyCaptured = "100 a statement: base, captured"
)

// besideName is base + emit, beside these readers.
func besideName(r readers) string {
	if r == nobody {
		return emitName
	}
	return emitName + ", beside " + string(r)
}

const crowded = 16 // clients of the rows that show whether commits wait for each other

const steadyRate = 2000 // transactions a second of the rows that ask whether a loop slows writers down

func steadyName(r readers) string { return besideName(r) + ", 2,000/s" }

func crowdedName(r readers) string { return besideName(r) + ", 16 clients" }

var w4 = workload{
	number:    "4",
	title:     "cost for the writers: pgbench, 8 clients, one order a transaction",
	unit:      "transaction",
	baselines: []string{baseName, plainName, besideName(nobody)},
	columns:   []string{waitingFigure},
	contestants: func(e *env) []contestant {
		const orders, taken, byHand = "bench.orders", "bench.captured_orders", "bench.triggered_orders"
		const toLog = "bench.logged_orders"
		const plain, outbox = "bench.plain_outbox", "tidemark.outbox"
		beside := func(r readers) contestant {
			return &watchedWriters{
				writers: writers{env: e, name: besideName(r), script: "emit.sql", rows: map[string]int{orders: 1, outbox: 1}}, readers: r,
			}
		}
		besideMany := func(r readers) contestant {
			return &watchedWriters{
				writers: writers{env: e, name: crowdedName(r), script: "emit.sql", clients: crowded, rows: map[string]int{orders: 1, outbox: 1}}, readers: r,
			}
		}
		besideSteady := func(r readers) contestant {
			return &watchedWriters{
				writers: writers{env: e, name: steadyName(r), script: "emit.sql", rate: steadyRate, rows: map[string]int{orders: 1, outbox: 1}}, readers: r,
			}
		}
		return []contestant{
			&writers{env: e, name: baseName, script: "base.sql", rows: map[string]int{orders: 1}},
			&writers{env: e, name: plainName, script: "plain.sql", rows: map[string]int{orders: 1, plain: 1}},
			&writers{env: e, name: directName, script: "direct.sql", rows: map[string]int{orders: 1, outbox: 1}},
			beside(nobody),
			beside(gateAlone),
			beside(polling),
			beside(woken),
			beside(sleeping),
			besideMany(nobody),
			besideMany(polling),
			besideMany(woken),
			besideMany(sleeping),
			besideSteady(nobody),
			besideSteady(polling),
			besideSteady(woken),
			&writers{env: e, name: oneBaseName, script: "one_base.sql", rows: map[string]int{orders: 1}},
			&writers{env: e, name: oneEmitName, script: "one_emit.sql", rows: map[string]int{orders: 1, outbox: 1}},
			&writers{env: e, name: manyPlain, script: "many_plain.sql", rows: map[string]int{plain: many}},
			&writers{env: e, name: manyEmit, script: "many_emit.sql", rows: map[string]int{outbox: many}},
			&writers{env: e, name: manyArrays, script: "many_arrays.sql", rows: map[string]int{outbox: many}},
			&writers{env: e, name: manyJSON, script: "many_json.sql", rows: map[string]int{outbox: many}},
			&writers{env: e, name: toLogName, script: "to_log.sql", rows: map[string]int{toLog: 1, outbox: 1}},
			&writers{env: e, name: byHandName, script: "triggered.sql", rows: map[string]int{byHand: 1, plain: 1}},
			&writers{env: e, name: capturedName, script: "captured.sql", rows: map[string]int{taken: 1, outbox: 1}},
			&writers{env: e, name: manyBase, script: "many_base.sql", rows: map[string]int{orders: many}},
			&writers{env: e, name: manyByHand, script: "many_triggered.sql", rows: map[string]int{byHand: many, plain: many}},
			&writers{env: e, name: manyCaptured, script: "many_captured.sql", rows: map[string]int{taken: many, outbox: many}},
		}
	},
	reach: func(rs results) []goal {
		// A transaction of the base writes the same order, so the difference is what the event costs.
		wal := func(name string) figure {
			v, ok := rs.between(name, baseName, func(s, base sample) float64 { return s.walPerItem() - base.walPerItem() })
			return figure{"WAL bytes an event, " + name, v, ok}
		}
		waiting := func(name string) figure {
			v, ok := rs.of(name, figureOf(waitingFigure))
			return figure{waitingFigure + ", " + name, v, ok}
		}
		walOfMany := func(name string) figure {
			v, ok := rs.of(name, func(s sample) float64 { return s.walPerItem() / many })
			return figure{"WAL bytes an event, " + name, v, ok}
		}
		return []goal{
			note(rs.quotient(emitName, baseName)),
			atMost(460, wal(emitName)),
			atLeast(0.95, rs.quotient(besideName(gateAlone), emitName)),
			atLeast(0.95, rs.quotient(besideName(woken), besideName(polling))),
			atLeast(0.95, rs.quotient(steadyName(woken), steadyName(nobody))),
			atLeast(0.95, rs.quotient(steadyName(polling), steadyName(nobody))),
			note(rs.quotient(besideName(sleeping), emitName)),
			atLeast(0.95, rs.quotient(crowdedName(woken), crowdedName(polling))),
			atMost(1, waiting(crowdedName(woken))),
			note(waiting(crowdedName(sleeping))),
			note(rs.quotient(crowdedName(sleeping), crowdedName(nobody))),
			note(rs.quotient(crowdedName(woken), besideName(woken))),
			note(rs.quotient(plainName, baseName)),
			atLeast(0.9, rs.quotient(emitName, plainName)),
			atLeast(0.98, rs.quotient(emitName, directName)),
			note(wal(plainName)),
			note(rs.quotient(oneEmitName, oneBaseName)),
			note(rs.quotient(manyEmit, manyPlain)),
			atLeast(0.8, rs.quotient(manyEmit, manyJSON)),
			note(rs.quotient(manyArrays, manyJSON)),
			note(walOfMany(manyPlain)),
			note(walOfMany(manyEmit)),
			atLeast(0.8, rs.quotient(capturedName, baseName)),
			atLeast(0.34, rs.quotient(manyCaptured, manyBase)),
			note(rs.quotient(byHandName, baseName)),
			note(rs.quotient(toLogName, baseName)),
			note(rs.quotient(manyByHand, manyBase)),
			note(rs.quotient(capturedName, emitName)),
			note(wal(capturedName)),
		}
	},
}
