package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidemarkhq/tidemark/internal/trial"
)

// commandKeyFails has the commands of a key fail for a while, in a way that can heal.
func commandKeyFails(h *harness, random *rand.Rand) (string, func(context.Context) error) {
	key := fmt.Sprintf("t%d", random.IntN(troubledKeys))
	d := between(random, 500*time.Millisecond, 4*time.Second)
	return "key " + key, func(ctx context.Context) error {
		if err := h.command(ctx, `insert into app.trouble values ($1) on conflict do nothing`, key); err != nil {
			return err
		}
		err := trial.Wait(ctx, d)
		return errors.Join(err, h.command(ctx, `delete from app.trouble where key = $1`, key))
	}
}

// commandGate closes the gate of all commands, or of one service.
func commandGate(h *harness, random *rand.Rand) (string, func(context.Context) error) {
	name := []string{commandsGate, serviceGate("till"), serviceGate("depot")}[random.IntN(3)]
	return "gate of commands", h.shut(closing{What: name, Routes: []string{name}}, between(random, 1500*time.Millisecond, 3500*time.Millisecond), func(ctx context.Context, open bool) error {
		return h.command(ctx, `select tidemark.gate_set($1, $2, 'chaos')`, name, open)
	})
}

// commandOff switches a command off for a while: it waits, with those of its key.
func commandOff(h *harness, random *rand.Rand) (string, func(context.Context) error) {
	service := []string{"till", "depot"}[random.IntN(2)]
	d := between(random, 500*time.Millisecond, 2*time.Second)
	return "command " + service, func(ctx context.Context) error {
		set := func(on bool) error {
			return h.command(ctx, `select count(*) from tidemark.command_set($1, 'take', 1, jsonb_build_object('enabled', $2::boolean), 'chaos')`, service, on)
		}
		if err := set(false); err != nil {
			return err
		}
		err := trial.Wait(ctx, d)
		return errors.Join(err, set(true))
	}
}

// commandDry has the commands of the service mirror run dry for a while, and then replays what was run dry.
func commandDry(h *harness, random *rand.Rand) (string, func(context.Context) error) {
	d := between(random, 500*time.Millisecond, 3*time.Second)
	return "command " + mirror, func(ctx context.Context) error {
		set := func(dry bool) error {
			return h.command(ctx, `select count(*) from tidemark.command_set($1, 'take', 1, jsonb_build_object('dry_run', $2::boolean), 'chaos')`, mirror, dry)
		}
		if err := set(true); err != nil {
			return err
		}
		err := trial.Wait(ctx, d)
		return errors.Join(err, set(false), h.replay(ctx, mirror))
	}
}

// replay replays what was run dry, and what was refused: of a service that is never in dry run nothing takes effect.
func (h *harness) replay(ctx context.Context, service string) error {
	return h.command(ctx, `select last from tidemark.command_replay($1, reason => 'chaos', most => 10000)`, service)
}

// commandReplay replays commands that have all had their turn, from the database or from the beginning of the topic.
func commandReplay(h *harness, random *rand.Rand) (string, func(context.Context) error) {
	service, topic := []string{"till", "depot"}[random.IntN(2)], random.IntN(3) == 0
	return "replay of " + service, func(ctx context.Context) error {
		if !topic {
			return h.replay(ctx, service)
		}
		limited, cancel := context.WithTimeout(ctx, 20*time.Second)
		defer cancel()
		d := h.daemons[0]
		cmd := exec.CommandContext(limited, d.binary, "command", "replay", "--service", service, "--from-offset", "0", "--reason", "chaos", "--config", d.config())
		cmd.Env, cmd.Dir = d.environ, d.dir
		_ = cmd.Run() // broker or database may be away: then it replays a part, or nothing
		return ctx.Err()
	}
}

// commandOwner is the daemon that holds the leases of most partitions; -1: none does.
func (h *harness) commandOwner(ctx context.Context) (int, error) {
	rows, _, err := ask(ctx, h, pgx.RowTo[string], `select lease_owner from tidemark.heartbeat
		where executor_id like 'commands/kafka:%' and lease_owner is not null group by 1 order by count(*) desc limit 1`)
	for i, d := range h.daemons {
		if len(rows) > 0 && strings.HasPrefix(rows[0], d.name+"/") {
			return i, err
		}
	}
	return -1, err
}

// commandStop stops a daemon past its lease and its session with the group: another one takes its partitions.
func commandStop(h *harness, random *rand.Rand) (string, func(context.Context) error) {
	d := between(random, 8*time.Second, 10*time.Second)
	return "owner of commands", func(ctx context.Context) error {
		i, err := h.commandOwner(ctx)
		if err != nil || i < 0 {
			return err
		}
		return h.stopped(ctx, i, d)
	}
}

func (h *harness) stopped(ctx context.Context, i int, d time.Duration) error {
	what := fmt.Sprintf("daemon %d", i)
	if !h.take(what) {
		return nil
	}
	defer h.release(what)
	from := time.Now()
	if !h.daemons[i].signal(syscall.SIGSTOP, 0) {
		return nil
	}
	err := trial.Wait(ctx, d)
	h.stops.Add(stop{from, time.Now()})
	h.daemons[i].signal(syscall.SIGCONT, 0)
	return err
}

// commandPassLate holds a pass on its way to the database until another daemon has the partition and has gone on. Then it
// arrives.
func commandPassLate(h *harness, random *rand.Rand) (string, func(context.Context) error) {
	d := between(random, 10*time.Second, 12*time.Second)
	return "owner of commands", func(ctx context.Context) error {
		i, err := h.commandOwner(ctx)
		what := fmt.Sprintf("wire %d", i)
		if err != nil || i < 0 || !h.take(what) {
			return err
		}
		defer h.release(what)
		// With records: an empty pass has nothing to repeat.
		loose := h.wires[i].catch(`"offset":`)
		defer loose()
		if err := trial.Wait(ctx, 300*time.Millisecond); err != nil {
			return err
		}
		return h.stopped(ctx, i, d)
	}
}

// commandBrokerAway has the broker answer nothing for a while, at times for longer than a session.
func commandBrokerAway(h *harness, random *rand.Rand) (string, func(context.Context) error) {
	d := between(random, time.Second, 9*time.Second)
	return "broker", func(ctx context.Context) error { return h.commanding.broker.away(ctx, d) }
}

func commandBrokerCut(h *harness, _ *rand.Rand) (string, func(context.Context) error) {
	return "broker", func(ctx context.Context) error { return h.commanding.broker.cut(ctx) }
}
