package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidemarkhq/tidemark/internal/devpg"
	"github.com/tidemarkhq/tidemark/internal/trial"
)

// options of a run.
type options struct {
	duration time.Duration
	seed     uint64
	mutant   mutant
	pause    float64
	backlog  int
	list     []fault // that are injected
	verbose  bool
	keep     bool
	binary   string
	pg       string
	path     string
	tables   string
	commands string
	shards   string
	broker   string
	out      io.Writer
}

// A harness is one run: everything that is started, disturbed and written down.
type harness struct {
	options
	dir       string
	server    *devpg.Server
	receivers map[string]*receiver
	links     map[string]*proxy // to the receivers
	wires     []*proxy          // of each daemon to the database
	daemons   []*daemon
	cleanup   []func() error // the last one first

	next         atomic.Int64 // ids
	acknowledged atomic.Int64
	passes       atomic.Int64 // by clients
	clientsEnd   func()
	hush         atomic.Bool // producers are to commit nothing
	still        atomic.Bool // producers are to begin nothing

	arrivals trial.Journal[arrival]
	txns     trial.Journal[*txn]
	limbo    trial.Journal[limbo]
	closings trial.Journal[closing]
	stops    trial.Journal[stop]
	samples  trial.Journal[Sample]
	replays  trial.Journal[replay]
	changes  trial.Journal[change]
	rewinds  trial.Journal[rewind]
	probes   trial.Journal[probe]

	commanding commanding

	mu     sync.Mutex
	held   map[string]bool // what a fault is at work on
	counts map[string]int  // faults
	broken []string
	began  time.Time
}

// result is what a run came to.
type result struct {
	*harness
	evidence *evidence
	found    []violation
	excused  int
	took     time.Duration
}

// run is one run from the empty cluster to the verdict.
func run(ctx context.Context, o options) (r *result, err error) {
	h := &harness{
		options: o, receivers: map[string]*receiver{}, links: map[string]*proxy{},
		held: map[string]bool{}, counts: map[string]int{}, began: time.Now(),
	}
	if !h.withTables() {
		h.list = slices.DeleteFunc(slices.Clone(h.list), func(f fault) bool { return strings.HasPrefix(f.name, "table-") })
	}
	if !h.withCommands() {
		h.list = slices.DeleteFunc(slices.Clone(h.list), func(f fault) bool { return strings.HasPrefix(f.name, "command-") })
	}
	if !h.withShards() {
		h.list = slices.DeleteFunc(slices.Clone(h.list), func(f fault) bool { return f.name == "log-shards" })
	}
	name := fmt.Sprintf("tidemark-chaos-%d-", os.Getpid())
	if h.keep {
		name = "tidemark-chaos-kept-" // which the next run does not sweep
	}
	if h.dir, err = os.MkdirTemp("", name); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, h.tearDown()) }()
	if h.binary == "" {
		if h.binary, err = build(ctx, h.dir); err != nil {
			return nil, err
		}
	}
	if err := h.setUp(ctx); err != nil {
		return nil, err
	}
	r = &result{harness: h, evidence: &evidence{Targets: targets}}
	if err := h.disturb(ctx, r.evidence); err != nil {
		return nil, err
	}
	if err := h.gather(ctx, r.evidence); err != nil {
		return nil, err
	}
	r.found, r.excused = check(r.evidence)
	r.took = time.Since(h.began)
	return r, nil
}

// disturb is the run until all is at rest again.
func (h *harness) disturb(ctx context.Context, e *evidence) error {
	watching, unwatch := context.WithCancel(ctx)
	var watch sync.WaitGroup
	watch.Go(func() { h.sample(watching) })
	watch.Go(func() { h.progress(watching) })
	watch.Go(func() { h.place(watching) })
	defer watch.Wait()
	defer unwatch()

	stop, resolve := make(chan struct{}), make(chan struct{})
	var writing, resolving sync.WaitGroup
	for id := range producers + slow {
		writing.Go(func() { h.produce(ctx, stop, id) })
	}
	for id := range commanders {
		if h.withCommands() {
			writing.Go(func() { h.commandUntil(ctx, stop, id) })
		}
	}
	resolving.Go(func() { h.resolve(ctx, resolve) })
	h.inject(ctx)
	h.say("the faults are over")
	close(stop)
	writing.Wait()
	close(resolve)
	resolving.Wait()
	if err := h.sweep(ctx); err != nil {
		return err
	}
	var err error
	if e.Unquiet, err = h.quiet(ctx, h.mutant.patience()); err != nil {
		return err
	}
	h.say("quiet: %q", e.Unquiet)
	if e.Unquiet == "" {
		if e.Calms, err = h.calmDown(ctx); err == nil {
			e.Findings, err = h.findings(ctx)
		}
	}
	return err
}

// gather stops the daemons and reads what the checker needs.
func (h *harness) gather(ctx context.Context, e *evidence) error {
	if h.clientsEnd != nil {
		h.clientsEnd()
	}
	for _, d := range h.daemons {
		if err := d.end(); err != nil {
			h.brokenLater(err.Error())
		}
		h.brokenLater(d.broken()...)
	}
	for _, r := range h.receivers {
		e.Forged += int(r.Forged.Load())
	}
	e.Arrivals, e.Txns, e.Closings, e.Stops = h.arrivals.All(), h.txns.All(), h.closings.All(), h.stops.All()
	e.Samples, e.Replays, e.Broken = h.samples.All(), h.replays.All(), h.broken
	e.Changes, e.Rewinds, e.Probes = h.changes.All(), h.rewinds.All(), h.probes.All()
	var errs [4]error
	e.Stored, _, errs[0] = ask(ctx, h, pgx.RowToStructByPos[Stored], `select id, event, key, version, kind, poison from app.journal`)
	e.Effects, _, errs[1] = ask(ctx, h, pgx.RowToStructByPos[Effect], `select n, at, id, event, key, version from app.effect order by n`)
	e.Letters, _, errs[2] = ask(ctx, h, pgx.RowToStructByPos[Letter], `
		select r.route_code, l.event_id::text from tidemark.dead_letter l join tidemark.outbound_route r on r.id = l.route_id`)
	e.Unsound, _, errs[3] = ask(ctx, h, pgx.RowTo[string], `
		select format('%s: %s', v."check", v.detail) from tidemark.verify() v where v.status = 'fail'`)
	return errors.Join(errors.Join(errs[:]...), h.gatherTables(ctx, e), h.gatherCommands(ctx, e))
}

// tearDown ends everything that the run has started.
func (h *harness) tearDown() error {
	var errs []error
	if h.keep && h.server != nil {
		errs = append(errs, os.WriteFile(filepath.Join(h.dir, "postgres.log"), []byte(h.server.Logs()), 0o600))
	}
	for _, f := range slices.Backward(h.cleanup) {
		errs = append(errs, f())
	}
	if h.keep {
		fmt.Fprintln(h.out, "kept:", h.dir)
	} else {
		errs = append(errs, os.RemoveAll(h.dir))
	}
	return errors.Join(errs...)
}

func (h *harness) say(format string, args ...any) {
	if h.verbose {
		fmt.Fprintf(h.out, "%s %6.1f s  %s\n", clock(time.Now()), time.Since(h.began).Seconds(), fmt.Sprintf(format, args...))
	}
}

func (h *harness) brokenLater(texts ...string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, t := range texts {
		h.brokenLocked(t)
	}
}

func (h *harness) brokenLocked(text string) { h.broken = append(h.broken, text) }

// sweepOld removes what a run left behind that was killed.
func sweepOld() {
	dirs, _ := filepath.Glob(filepath.Join(os.TempDir(), "tidemark-chaos-*"))
	for _, dir := range dirs {
		var pid int
		if _, err := fmt.Sscanf(filepath.Base(dir), "tidemark-chaos-%d-", &pid); err == nil && !alive(pid) {
			_ = os.RemoveAll(dir)
		}
	}
}

// inject starts one fault after the other until the time is over, and returns when all are made good.
func (h *harness) inject(ctx context.Context) {
	random := rand.New(rand.NewPCG(h.seed, 1<<32))
	deadline := time.Now().Add(h.duration)
	var working sync.WaitGroup
	defer working.Wait()
	_ = trial.Wait(ctx, time.Second)
	for n := 0; time.Now().Before(deadline) && ctx.Err() == nil; n++ {
		f := h.choose(random, n)
		what, do := f.plan(h, rand.New(rand.NewPCG(random.Uint64(), 0)))
		if h.take(what) {
			h.count(f.name)
			h.say("%s %s", f.name, what)
			working.Go(func() {
				defer h.release(what)
				if err := do(ctx); err != nil && ctx.Err() == nil {
					h.brokenLater(fmt.Sprintf("fault %s %s: %v", f.name, what, err))
				}
			})
		}
		_ = trial.Wait(ctx, time.Duration(500+random.IntN(1000))*time.Millisecond)
	}
}

// choose takes a fault by its weight; of a mutant, every other one is of those that meet it.
func (h *harness) choose(random *rand.Rand, n int) fault {
	list := h.list
	if n%2 == 0 && len(h.mutant.scenes) > 0 {
		list = slices.DeleteFunc(slices.Clone(faults), func(f fault) bool { return !slices.Contains(h.mutant.scenes, f.name) })
	}
	total := 0
	for _, f := range list {
		total += f.weight
	}
	dice := random.IntN(total)
	for _, f := range list {
		if dice -= f.weight; dice < 0 {
			return f
		}
	}
	return list[0]
}

// take reserves what a fault works on. No other fault touches it until it is given back.
func (h *harness) take(what string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.held[what] {
		return false
	}
	h.held[what] = true
	return true
}

func (h *harness) release(what string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.held, what)
}

func (h *harness) count(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.counts[name]++
}
