package main

import "time"

const (
	bareHTTPName = "webhook client alone"
	hookName     = "tidemark, webhook"
	bareAwayName = "webhook client alone, 5 ms away"
	hookAwayName = "tidemark, webhook, 5 ms away"
	nineName     = "9 webhooks"
	refusedName  = "9 webhooks beside one that refuses"
	hangingName  = "9 webhooks beside one that hangs"
	oneDaemon    = "tidemark, webhook, 20 ms away, 1 daemon"
	oneWideName  = "tidemark, webhook, 20 ms away, 1 daemon, 16 at a time"
	twoDaemons   = "tidemark, webhook, 20 ms away, 2 daemons with a shard each"
	fourDaemons  = "tidemark, webhook, 20 ms away, 4 daemons with a shard each"
	oneIsKilled  = "tidemark, webhook, 20 ms away, 4 daemons, one is killed"
	apartOne     = "tidemark, webhook, 20 ms away, 1 daemon, its own network"
	apartFour    = "tidemark, webhook, 20 ms away, 4 daemons, a network each"
	apartKilled  = "tidemark, webhook, 20 ms away, 4 daemons, a network each, one is killed"
	apartCut     = "tidemark, webhook, 20 ms away, 4 daemons, a network each, one is cut off"
	bareKafka    = "Kafka client alone"
	kafkaName    = "tidemark, Kafka"
)

var w5 = workload{
	number:    "5",
	title:     "deliver a backlog outside the database, with evidence",
	unit:      "event",
	baselines: []string{bareHTTPName, bareAwayName, nineName, bareKafka},
	columns:   []string{stagedFigure, onceBegunFigure, takeoverFigure, doubleFigure},
	contestants: func(e *env) []contestant {
		const (
			concurrency = 16
			each        = 4 // the default of a route
			away        = 5 * time.Millisecond
			distant     = 20 * time.Millisecond
		)
		items, few, fewer, records := e.scaled(100_000), e.scaled(20_000), e.scaled(6_000), e.scaled(400_000)
		return []contestant{
			bareWebhook(e, bareHTTPName, items, concurrency, 0),
			&webhooks{env: e, name: hookName, items: items, concurrency: concurrency},
			bareWebhook(e, bareAwayName, few, concurrency, away),
			&webhooks{env: e, name: hookAwayName, items: few, concurrency: concurrency, away: away},
			&webhooks{env: e, name: nineName, items: items, concurrency: each, separate: true, last: noRoute},
			&webhooks{env: e, name: refusedName, items: items, concurrency: each, separate: true, last: refusingTo},
			&webhooks{env: e, name: hangingName, items: items, concurrency: each, separate: true, last: hangingRoute},
			&daemons{webhooks: webhooks{env: e, name: oneDaemon, items: fewer, concurrency: each, away: distant}, n: 1},
			&daemons{webhooks: webhooks{env: e, name: oneWideName, items: fewer, concurrency: 4 * each, away: distant}, n: 1},
			&daemons{webhooks: webhooks{env: e, name: twoDaemons, items: fewer, concurrency: each, away: distant}, n: 2},
			&daemons{webhooks: webhooks{env: e, name: fourDaemons, items: fewer, concurrency: each, away: distant}, n: 4},
			&daemons{webhooks: webhooks{env: e, name: oneIsKilled, items: fewer, concurrency: each, away: distant}, n: 4, fault: killed},
			&daemons{webhooks: webhooks{env: e, name: apartOne, items: fewer, concurrency: each}, n: 1, apart: distant},
			&daemons{webhooks: webhooks{env: e, name: apartFour, items: fewer, concurrency: each}, n: 4, apart: distant},
			&daemons{webhooks: webhooks{env: e, name: apartKilled, items: fewer, concurrency: each}, n: 4, apart: distant, fault: killed},
			&daemons{webhooks: webhooks{env: e, name: apartCut, items: fewer, concurrency: each}, n: 4, apart: distant, fault: unplugged},
			bareTopic(e, bareKafka, records, each),
			&topic{env: e, name: kafkaName, items: records, concurrency: each},
			&webhooks{env: e.far, name: hookName + awaySuffix, items: items, concurrency: concurrency},
			&topic{env: e.far, name: kafkaName + awaySuffix, items: records, concurrency: each},
		}
	},
	reach: func(rs results) []goal {
		speed, ok := rs.of(kafkaName, sample.rate)
		return []goal{
			atLeast(0.9, rs.quotient(hookName, bareHTTPName)),
			atLeast(0.9, rs.quotient(hookAwayName, bareAwayName)),
			atLeast(250_000, figure{"events a second, " + kafkaName, speed, ok}),
			atLeast(0.95, rs.quotient(refusedName, nineName)),
			atLeast(0.95, rs.quotient(hangingName, nineName)),
			atLeast(1.8, onceBegun(rs, twoDaemons, oneDaemon)),
			atLeast(3.4, onceBegun(rs, fourDaemons, oneDaemon)),
			atLeast(3.4, onceBegun(rs, apartFour, apartOne)),
			note(rs.quotient(kafkaName, bareKafka)),
			note(rs.quotient(hookName+awaySuffix, hookName)),
			note(rs.quotient(kafkaName+awaySuffix, kafkaName)),
		}
	},
}
