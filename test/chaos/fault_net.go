package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/tidemarkhq/tidemark/internal/trial"
)

func (h *harness) aWire(random *rand.Rand) (string, *proxy) {
	i := random.IntN(len(h.wires))
	return fmt.Sprintf("wire %d", i), h.wires[i]
}

func wireCut(h *harness, random *rand.Rand) (string, func(context.Context) error) {
	what, p := h.aWire(random)
	return what, func(context.Context) error { p.cut(); return nil }
}

// wireHole lets nothing through between a daemon and the database for a while, in one direction or both. Then
// what has waited arrives after all, or the connections are gone.
func wireHole(h *harness, random *rand.Rand) (string, func(context.Context) error) {
	what, p := h.aWire(random)
	d, ways, cut := between(random, time.Second, 7*time.Second), random.IntN(3), random.IntN(2) == 0
	return what, func(ctx context.Context) error {
		if ways != back {
			p.set(there, way{hold: true})
		}
		if ways != there {
			p.set(back, way{hold: true})
		}
		err := trial.Wait(ctx, d)
		if cut {
			p.cut()
		}
		p.set(there, way{})
		p.set(back, way{})
		return err
	}
}

func wireLate(h *harness, random *rand.Rand) (string, func(context.Context) error) {
	what, p := h.aWire(random)
	d := between(random, 2*time.Second, 6*time.Second)
	return what, func(ctx context.Context) error {
		p.slow(100 * time.Millisecond)
		defer p.slow(0)
		return trial.Wait(ctx, d)
	}
}

// wireStuck holds what is on its way on some of a daemon's connections, until long after it has given them up
// and asked again on others. Then it arrives.
func wireStuck(h *harness, random *rand.Rand) (string, func(context.Context) error) {
	what, p := h.aWire(random)
	d := between(random, 6*time.Second, 10*time.Second)
	return what, func(ctx context.Context) error {
		loose := p.stick(random)
		defer loose()
		return trial.Wait(ctx, d)
	}
}

// wireForgotten leaves a daemon with connections that will never answer and never end.
func wireForgotten(h *harness, random *rand.Rand) (string, func(context.Context) error) {
	what, p := h.aWire(random)
	return what, func(context.Context) error { p.forget(); return nil }
}

func (h *harness) aLink(random *rand.Rand) (string, *proxy) {
	route := []string{healthy, flaky, plain}[random.IntN(3)]
	return "link " + route, h.links[route]
}

func linkCut(h *harness, random *rand.Rand) (string, func(context.Context) error) {
	what, p := h.aLink(random)
	return what, func(context.Context) error { p.cut(); return nil }
}

// linkHole swallows what is on its way to a receiver, and back. Nothing of it arrives later: a request that did
// would be the network's delivery through a closed gate, not ours.
func linkHole(h *harness, random *rand.Rand) (string, func(context.Context) error) {
	what, p := h.aLink(random)
	d := between(random, time.Second, 3*time.Second)
	return what, func(ctx context.Context) error {
		p.set(there, way{hold: true})
		p.set(back, way{hold: true})
		err := trial.Wait(ctx, d)
		p.cut()
		p.set(there, way{})
		p.set(back, way{})
		return err
	}
}

func linkLate(h *harness, random *rand.Rand) (string, func(context.Context) error) {
	what, p := h.aLink(random)
	d := between(random, 2*time.Second, 5*time.Second)
	return what, func(ctx context.Context) error {
		p.slow(100 * time.Millisecond)
		defer p.slow(0)
		return trial.Wait(ctx, d)
	}
}

func (h *harness) ill(d time.Duration, m mood) func(context.Context) error {
	r := h.receivers[flaky]
	return func(ctx context.Context) error {
		r.feel(m)
		defer r.calm()
		return trial.Wait(ctx, d)
	}
}

func receiverFails(h *harness, random *rand.Rand) (string, func(context.Context) error) {
	share := []float64{0.3, 0.7, 1}[random.IntN(3)]
	return "receiver", h.ill(between(random, 500*time.Millisecond, 3*time.Second), mood{fail: share})
}

func receiverLoses(h *harness, random *rand.Rand) (string, func(context.Context) error) {
	return "receiver", h.ill(between(random, 500*time.Millisecond, 2*time.Second), mood{lose: 0.2})
}

func receiverHangs(h *harness, random *rand.Rand) (string, func(context.Context) error) {
	return "receiver", h.ill(between(random, 500*time.Millisecond, 2*time.Second), mood{hang: 0.03})
}
