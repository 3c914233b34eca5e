package main

const (
	limitName      = "limit"
	tidemarkName   = "tidemark"
	catchAllName   = "tidemark, one route"
	batch50kName   = "tidemark, batch 50,000"
	batch1kName    = "tidemark, batch 1,000"
	batch100Name   = "tidemark, batch 100"
	deliveriesName = "tidemark, deliveries"
	poisonName     = "tidemark, deliveries, poison"
	batchesName    = "tidemark, deliveries in batches"
	eachName       = "tidemark, effect an event"
	effectsName    = "tidemark, effect a batch"
	setBasedName   = "set-based SQL 5k"
	setEffectName  = "set-based SQL 5k with effect"
	pgqName        = "PgQ + one audit row per event"
	riverName      = "River"
	daemonName     = "tidemark, daemon"
	daemon50kName  = "tidemark, daemon, batch 50,000"

	mixedName  = "tidemark, 44 types"
	pgqMixName = "PgQ + one audit row per event, 44 types"
	mixedTypes = 44 // the groups in each page

	tailFigure = "last ÷ first tenth"
)

// steady compares the end of a large backlog with its beginning.
func steady(rs results) figure {
	f := figure{what: "speed of the last tenth ÷ of the first, " + tidemarkName + ", backlog of a million and more"}
	if r, ok := rs.find(tidemarkName); ok && r.samples[0].items >= 1_000_000 {
		f.value, f.known = rs.of(tidemarkName, figureOf(tailFigure))
	}
	return f
}

var w1 = workload{
	number:    "1",
	title:     "route a backlog of committed events, in dry run",
	unit:      "event",
	baselines: []string{limitName},
	contestants: func(e *env) []contestant {
		// Slow peers get a smaller backlog: a figure per event does not get better with more.
		some, few := min(e.events, 200_000), min(e.events, 100_000)
		// Of the mix too, since the log is filled anew for it in each round.
		mix := *e
		mix.events = some
		engine, stock := &pgqEngine{}, &stockServer{}
		queue, mixedQueue := &pgqQueue{engine: engine, name: "bench", types: 4}, &pgqQueue{engine: engine, name: "mix", types: mixedTypes}
		onStock := func(make func(*env) contestant) contestant { return newOnStock(e, stock, make) }
		return []contestant{
			&readLimit{env: e, name: limitName, payload: true},
			&sqlWorker{env: e, name: tidemarkName, batch: 5000, types: everyType},
			&sqlWorker{env: e, name: catchAllName, batch: 5000, types: catchAll},
			&dryDaemon{env: e, name: daemonName, batch: 5000, types: everyType},
			&dryDaemon{env: e, name: daemon50kName, batch: 50_000, types: everyType},
			&sqlWorker{env: e, name: batch50kName, batch: 50_000, types: everyType},
			&sqlWorker{env: e, name: batch1kName, batch: 1000, types: everyType},
			&sqlWorker{env: e, name: batch100Name, batch: 100, types: everyType},
			&sqlWorker{env: e, name: deliveriesName, batch: 5000, types: everyType, target: "bench.accept"},
			&sqlWorker{env: e, name: poisonName, batch: 5000, types: everyType, target: "bench.accept_or_refuse", poison: true},
			&sqlWorker{env: e, name: batchesName, batch: 5000, types: everyType, target: "bench.accept_batch"},
			&sqlWorker{env: e, name: eachName, batch: 5000, types: everyType, target: "bench.take", effect: true},
			&sqlWorker{env: e, name: effectsName, batch: 5000, types: everyType, target: "bench.take_batch", effect: true},
			&setBased{env: e},
			&setBased{env: e, effect: true},
			&subtransaction{env: e, items: some},
			&pgq{env: e, name: pgqName, queue: queue, evidence: true},
			&pgq{env: e, name: "PgQ without evidence", queue: queue},
			&riverJobs{env: e, items: few},
			&watermillSQL{env: e, items: few},
			&readLimit{env: e, name: "limit without payload"},
			onStock(func(e *env) contestant { return &readLimit{env: e, name: limitName, payload: true} }),
			onStock(func(e *env) contestant {
				return &sqlWorker{env: e, name: tidemarkName, batch: 5000, types: everyType}
			}),
			onStock(func(e *env) contestant {
				return &dryDaemon{env: e, name: daemonName, batch: 5000, types: everyType}
			}),
			&readLimit{env: e.far, name: limitName + awaySuffix, payload: true},
			&sqlWorker{env: e.far, name: tidemarkName + awaySuffix, batch: 5000, types: everyType},
			&dryDaemon{env: e.far, name: daemonName + awaySuffix, batch: 5000, types: everyType},
			&sqlWorker{env: &mix, name: mixedName, batch: 5000, types: typeNames(mixedTypes)},
			&pgq{env: &mix, name: pgqMixName, queue: mixedQueue, evidence: true},
		}
	},
	reach: func(rs results) []goal {
		of := func(what, name string, f func(sample) float64) figure {
			v, ok := rs.of(name, f)
			return figure{what + ", " + name, v, ok}
		}
		return []goal{
			atLeast(0.85, rs.quotient(tidemarkName, limitName)),
			atLeast(0.9, rs.quotient(daemonName, limitName)),
			atLeast(0.9, rs.quotient(tidemarkName+stockSuffix, tidemarkName)),
			note(rs.quotient(tidemarkName+stockSuffix, limitName+stockSuffix)),
			atLeast(0.9, rs.quotient(daemonName+stockSuffix, daemonName)),
			note(rs.quotient(tidemarkName+awaySuffix, limitName+awaySuffix)),
			note(rs.quotient(daemonName+awaySuffix, limitName+awaySuffix)),
			atLeast(2.2, rs.quotient(mixedName, pgqMixName)),
			note(rs.quotient(daemonName, tidemarkName)),
			atLeast(2.2, rs.quotient(tidemarkName, pgqName)),
			atLeast(20, rs.quotient(tidemarkName, riverName)),
			atMost(3.5, of("CPU µs per event", tidemarkName, sample.cpuPerItem)),
			atMost(12, of("WAL bytes per event", tidemarkName, sample.walPerItem)),
			atLeast(0.85, rs.quotient(batchesName, setBasedName)),
			atLeast(0.85, rs.quotient(deliveriesName, setBasedName)),
			atLeast(0.85, rs.quotient(effectsName, setEffectName)),
			note(rs.quotient(eachName, setEffectName)),
			atLeast(0.6, rs.quotient(batch1kName, tidemarkName)),
			atLeast(0.3, rs.quotient(batch100Name, tidemarkName)),
			atLeast(0.8, rs.quotient(poisonName, deliveriesName)),
			atLeast(0.9, steady(rs)),
		}
	},
}
