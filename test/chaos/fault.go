package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidemarkhq/tidemark/internal/trial"
)

// A fault does something bad and makes it good again.
type fault struct {
	name   string
	weight int
	// plan says what it is at work on, and does it.
	plan func(h *harness, random *rand.Rand) (what string, do func(context.Context) error)
}

// faults are all that there are.
var faults = []fault{
	{"server-kill", 4, serverKill},
	{"server-immediate", 4, serverImmediate},
	{"backend-kill", 4, backendKill},
	{"backend-stop", 3, backendStop},
	{"terminate-half", 6, terminateHalf},
	{"daemon-kill", 8, daemonKill},
	{"daemon-term", 3, daemonTerm},
	{"owner-stop", 8, ownerStop},
	{"wire-cut", 6, wireCut},
	{"wire-hole", 6, wireHole},
	{"wire-late", 4, wireLate},
	{"wire-stuck", 4, wireStuck},
	{"wire-forgotten", 3, wireForgotten},
	{"link-cut", 4, linkCut},
	{"link-hole", 3, linkHole},
	{"link-late", 3, linkLate},
	{"receiver-fails", 5, receiverFails},
	{"receiver-loses", 4, receiverLoses},
	{"receiver-hangs", 3, receiverHangs},
	{"key-fails", 5, keyFails},
	{"gate-master", 3, gateMaster},
	{"gate-worker", 3, gateWorker},
	{"gate-slow", 3, gateSlow},
	{"route-off", 4, routeOff},
	{"route-pause", 5, routePause},
	{"bridge", 2, bridge},
	{"late-commit", 5, lateCommit},
	{"late-alone", 2, lateAlone},
	{"prepared-late", 5, preparedLate},
	{"prepared-crash", 3, preparedCrash},
	{"async-crash", 4, asyncCrash},
	{"settle-late", 4, settleLate},
	{"maintain", 3, maintain},
	{"low-timeouts", 3, lowTimeouts},
	{"low-limits", 3, lowLimits},
	{"table-away", 3, tableAway},
	{"table-rewind", 4, tableRewind},
	{"table-truncate", 2, tableTruncate},
	{"table-set-back", 2, tableSetBack},
	{"table-swap", 2, tableSwap},
	{"table-detach", 2, tableDetach},
	{"log-rewind", 3, logRewind},
	{"log-shards", 6, shardsChange},
	{"low-thresholds", 2, lowThresholds},
	{"message-alone", 2, messageAlone},
	{"replay", 6, replayLetters},
	{"replay-fails", 3, replayFails},
	{"command-key-fails", 6, commandKeyFails},
	{"command-gate", 4, commandGate},
	{"command-off", 3, commandOff},
	{"command-dry", 4, commandDry},
	{"command-replay", 4, commandReplay},
	{"command-stop", 3, commandStop},
	{"command-pass-late", 3, commandPassLate},
	{"command-broker-away", 4, commandBrokerAway},
	{"command-broker-cut", 3, commandBrokerCut},
}

// chosenFaults reads the flags -faults and -without.
func chosenFaults(only, without string) ([]fault, error) {
	list := slices.Clone(faults)
	for i, text := range []string{only, without} {
		if text == "" {
			continue
		}
		names := strings.Split(text, ",")
		for _, name := range names {
			if !slices.ContainsFunc(faults, func(f fault) bool { return f.name == name }) {
				return nil, fmt.Errorf("there is no fault %q", name)
			}
		}
		list = slices.DeleteFunc(list, func(f fault) bool { return slices.Contains(names, f.name) == (i == 1) })
	}
	if len(list) == 0 {
		return nil, errors.New("no fault is left")
	}
	return list, nil
}

// between is a time from least to most.
func between(random *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(random.Int64N(int64(most-least)))
}

func serverKill(h *harness, _ *rand.Rand) (string, func(context.Context) error) {
	return "server", func(ctx context.Context) error {
		return errors.Join(h.server.Kill(), h.server.Restart(ctx))
	}
}

func serverImmediate(h *harness, _ *rand.Rand) (string, func(context.Context) error) {
	return "server", func(ctx context.Context) error {
		pid := h.server.Pid()
		if err := syscall.Kill(pid, syscall.SIGQUIT); err != nil {
			return err
		}
		for h.server.Pid() != 0 {
			if err := trial.Wait(ctx, 5*time.Millisecond); err != nil {
				return err
			}
		}
		return h.server.Restart(ctx)
	}
}

// aBackend is any client's backend; of the daemons only, if name says so.
func (h *harness) aBackend(ctx context.Context, user string) (int, error) {
	pid, err := h.number(ctx, `select pid from pg_stat_activity
		where backend_type = 'client backend' and pid <> pg_backend_pid() and usename like $1 order by random() limit 1`, user)
	return int(pid), err
}

// backendKill has the server crash and recover by itself.
func backendKill(h *harness, _ *rand.Rand) (string, func(context.Context) error) {
	return "server", func(ctx context.Context) error {
		pid, err := h.aBackend(ctx, "%")
		if err != nil || pid == 0 {
			return err
		}
		_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
		return trial.Wait(ctx, 200*time.Millisecond)
	}
}

// backendStop stops a backend of a daemon for a while, with whatever it has locked.
func backendStop(h *harness, random *rand.Rand) (string, func(context.Context) error) {
	d := between(random, time.Second, 5*time.Second)
	return "server", func(ctx context.Context) error {
		pid, err := h.aBackend(ctx, "chaos_daemon")
		if err != nil || pid == 0 || syscall.Kill(pid, syscall.SIGSTOP) != nil {
			return err
		}
		defer func() { _ = syscall.Kill(pid, syscall.SIGCONT) }()
		return trial.Wait(ctx, d)
	}
}

func terminateHalf(h *harness, _ *rand.Rand) (string, func(context.Context) error) {
	return "backends", func(ctx context.Context) error {
		return h.command(ctx, `select count(pg_terminate_backend(pid)) from pg_stat_activity
			where backend_type = 'client backend' and pid <> pg_backend_pid() and random() < 0.5`)
	}
}

func (h *harness) aDaemon(random *rand.Rand) (string, *daemon) {
	i := random.IntN(len(h.daemons))
	return fmt.Sprintf("daemon %d", i), h.daemons[i]
}

func daemonKill(h *harness, random *rand.Rand) (string, func(context.Context) error) {
	what, d := h.aDaemon(random)
	rest := between(random, 0, 2*time.Second)
	return what, func(ctx context.Context) error {
		d.signal(syscall.SIGKILL, rest)
		return trial.Wait(ctx, rest)
	}
}

func daemonTerm(h *harness, random *rand.Rand) (string, func(context.Context) error) {
	what, d := h.aDaemon(random)
	return what, func(ctx context.Context) error {
		d.signal(syscall.SIGTERM, 0)
		return trial.Wait(ctx, 4*time.Second)
	}
}

// ownerStop stops the owner of the lease past its end, as a long pause of a virtual machine does.
func ownerStop(h *harness, random *rand.Rand) (string, func(context.Context) error) {
	d := between(random, 3500*time.Millisecond, 5500*time.Millisecond)
	return "owner", func(ctx context.Context) error {
		i, err := h.owner(ctx)
		if err != nil || i < 0 || !h.take(fmt.Sprintf("daemon %d", i)) {
			return err
		}
		defer h.release(fmt.Sprintf("daemon %d", i))
		from := time.Now()
		if !h.daemons[i].signal(syscall.SIGSTOP, 0) {
			return nil
		}
		err = trial.Wait(ctx, d)
		h.stops.Add(stop{from, time.Now()})
		h.daemons[i].signal(syscall.SIGCONT, 0)
		return err
	}
}

func maintain(h *harness, _ *rand.Rand) (string, func(context.Context) error) {
	return "upkeep", func(ctx context.Context) error {
		return h.command(ctx, `select count(*) from tidemark.maintain()`)
	}
}

// replayLetters sends a few open dead letters again.
func replayLetters(h *harness, random *rand.Rand) (string, func(context.Context) error) {
	n := 1 + random.IntN(4)
	return "replay", func(ctx context.Context) error {
		letters, _, err := ask(ctx, h, pgx.RowToStructByPos[struct {
			ID           int64
			Route, Event string
		}], `select l.id, r.route_code, l.event_id::text from tidemark.dead_letter l
			join tidemark.outbound_route r on r.id = l.route_id
			where l.resolved_at is null and r.route_code <> $2
			  and not exists (select from tidemark.pending p where p.dead_letter_id = l.id) order by random() limit $1`, n, inside)
		for _, l := range letters {
			if err != nil {
				return err
			}
			// Before it is asked for: it may arrive before we know.
			h.replays.Add(replay{Route: l.Route, Event: l.Event})
			var outcome []string
			if outcome, err = askOnce(ctx, h, pgx.RowTo[string], `select outcome::text from tidemark.dead_letter_replay($1)`, l.ID); err == nil {
				h.replays.Add(replay{Route: l.Route, Event: l.Event, Known: len(outcome) == 1 && outcome[0] == "pending"})
			}
			err = nil // a gate is closed, or its commit was not acknowledged: it may arrive or not
		}
		return err
	}
}
