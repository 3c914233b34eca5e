package main

const (
	statementName  = "limit"
	sweep5kName    = "tidemark, page 5,000"
	sweepPlaceName = "tidemark, bounds, page 5,000"
	sweep2kName    = "tidemark, page 2,000"
	sweepIDName    = "tidemark, by id, page 5,000"
	resweepName    = "tidemark, re-sweep, anti-join first"
	resweepDoName  = "tidemark, re-sweep, DO UPDATE WHERE"
	handPageName   = "SQL page 5,000"
	goPageName     = "Go read, upsert by unnest"
	rowByRowName   = "row by row"
	longestPage    = 5000 // milliseconds
	sweepWorker    = "sweep"
	birthsSource   = "births"
	birthsByNumber = "births_by_id"
)

var w3 = workload{
	number:    "3",
	title:     "sweep an application's table",
	unit:      "row",
	baselines: []string{statementName},
	columns:   []string{slowestFigure, flatFigure},
	contestants: func(e *env) []contestant {
		return []contestant{
			&oneStatement{births{env: e}},
			&tableSweep{births: births{env: e}, name: sweep5kName, source: birthsSource, page: 5000, handler: "bench.candidates_seed"},
			&tableSweep{births: births{env: e}, name: sweepPlaceName, source: birthsSource, page: 5000, handler: "bench.candidates_seed_between"},
			&tableSweep{births: births{env: e}, name: sweep2kName, source: birthsSource, page: 2000, handler: "bench.candidates_seed"},
			&tableSweep{births: births{env: e}, name: sweepIDName, source: birthsByNumber, page: 5000, handler: "bench.candidates_seed"},
			&handSweep{births: births{env: e}, name: handPageName, query: "select bench.sweep_page(5000)"},
			&clientSweep{births: births{env: e}},
			&handSweep{births: births{env: e}, name: rowByRowName, query: "select bench.sweep_rows(5000)"},
			&tableSweep{births: births{env: e}, name: resweepName, source: birthsSource, page: 5000, handler: "bench.candidates_seed_missing", again: true},
			&tableSweep{births: births{env: e}, name: resweepDoName, source: birthsSource, page: 5000, handler: "bench.candidates_seed_changed", again: true},
		}
	},
	reach: func(rs results) []goal {
		of := func(what, name string, f func(sample) float64) figure {
			v, ok := rs.of(name, f)
			return figure{what + ", " + name, v, ok}
		}
		goals := []goal{
			atLeast(0.94, rs.quotient(sweepPlaceName, statementName)),
			atLeast(0.94, rs.quotient(sweep5kName, statementName)),
			note(rs.work(sweepPlaceName, statementName)),
			note(rs.quotient(sweep5kName, handPageName)),
			note(rs.work(sweep5kName, statementName)),
			note(rs.work(sweep5kName, handPageName)),
			note(rs.work(resweepName, statementName)),
			note(rs.quotient(sweep2kName, statementName)),
			note(rs.quotient(sweepIDName, statementName)),
			atMost(1.25, of(flatFigure, sweep5kName, figureOf(flatFigure))),
			atMost(1.25, of(flatFigure, sweep2kName, figureOf(flatFigure))),
			atLeast(1.5, rs.quotient(resweepName, statementName)),
			atMost(2, of("WAL bytes per row", resweepName, sample.walPerItem)),
			note(of("WAL bytes per row", resweepDoName, sample.walPerItem)),
		}
		for _, name := range []string{sweep5kName, sweep2kName, sweepIDName, resweepName, resweepDoName} {
			goals = append(goals, atMost(longestPage, of(slowestFigure, name, figureOf(slowestFigure))))
		}
		return goals
	},
}
