package main

import (
	"bytes"
	"context"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"github.com/tidemarkhq/tidemark/internal/trial"
)

// A proxy stands between two parties and passes bytes on, later, or not at all.
type proxy struct {
	listener net.Listener
	to       string

	mu     sync.Mutex
	change *sync.Cond
	pipes  map[*pipe]bool
	ways   [2]way
	trap   []byte // the next connection that sends this gets stuck
	caught *pipe
	closed bool
}

// The directions of a proxy.
const (
	there = iota // to the target
	back
)

// way is what happens to bytes in one direction.
type way struct {
	delay time.Duration
	hold  bool // they wait
}

// A pipe is a connection through the proxy.
type pipe struct {
	near, far net.Conn
	deaf      bool // bytes are dropped in both directions, without an error to either side
	stuck     bool // bytes wait
	closed    bool
}

func newProxy(ctx context.Context, to string) (*proxy, error) {
	var listen net.ListenConfig
	l, err := listen.Listen(ctx, "tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{listener: l, to: to, pipes: map[*pipe]bool{}}
	p.change = sync.NewCond(&p.mu)
	go p.accept(ctx)
	return p, nil
}

func (p *proxy) addr() string { return p.listener.Addr().String() }

func (p *proxy) accept(ctx context.Context) {
	for {
		near, err := p.listener.Accept()
		if err != nil {
			return
		}
		go p.connect(ctx, near)
	}
}

func (p *proxy) connect(ctx context.Context, near net.Conn) {
	dialer := net.Dialer{Timeout: 2 * time.Second}
	far, err := dialer.DialContext(ctx, "tcp4", p.to)
	if err != nil {
		trial.Reset(near)
		return
	}
	x := &pipe{near: near, far: far}
	p.mu.Lock()
	if p.closed {
		x.closed = true
	} else {
		p.pipes[x] = true
	}
	p.mu.Unlock()
	if x.closed {
		trial.Reset(near)
		trial.Reset(far)
		return
	}
	go p.pump(x, near, far, there)
	go p.pump(x, far, near, back)
}

func (p *proxy) pump(x *pipe, from, to net.Conn, direction int) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		p.look(x, buffer[:n])
		if n > 0 && p.passes(x, direction) {
			if _, err := to.Write(buffer[:n]); err != nil {
				p.end(x)
				return
			}
		}
		if err != nil {
			p.finish(x, direction)
			return
		}
	}
}

// finish is the end of one side. What it has sent before may be waiting still, and goes on to the other.
func (p *proxy) finish(x *pipe, direction int) {
	if direction == back {
		p.mu.Lock()
		for x.stuck && !x.closed {
			p.change.Wait()
		}
		p.mu.Unlock()
	}
	p.end(x)
}

// passes returns when bytes may go on, and whether they may.
func (p *proxy) passes(x *pipe, direction int) bool {
	p.mu.Lock()
	for (p.ways[direction].hold || x.stuck) && !x.closed && !x.deaf {
		p.change.Wait()
	}
	delay, pass := p.ways[direction].delay, !x.closed && !x.deaf
	p.mu.Unlock()
	if delay > 0 {
		time.Sleep(delay)
	}
	return pass
}

func (p *proxy) end(x *pipe) {
	p.mu.Lock()
	x.closed = true
	delete(p.pipes, x)
	p.change.Broadcast()
	p.mu.Unlock()
	x.near.Close()
	x.far.Close()
}

// set says what happens to bytes from now on.
func (p *proxy) set(direction int, w way) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ways[direction] = w
	p.change.Broadcast()
}

// slow delays bytes in both directions.
func (p *proxy) slow(d time.Duration) {
	p.set(there, way{delay: d})
	p.set(back, way{delay: d})
}

// cut breaks all connections.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for x := range p.pipes {
		x.closed = true
		trial.Reset(x.near)
		trial.Reset(x.far)
	}
	clear(p.pipes)
	p.change.Broadcast()
}

// forget makes the connections that there are pass nothing on, for ever, as a firewall does that has lost its
// table; new ones are not concerned.
func (p *proxy) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for x := range p.pipes {
		x.deaf = true
	}
	p.change.Broadcast()
}

// look springs the trap.
func (p *proxy) look(x *pipe, data []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.trap != nil && bytes.Contains(data, p.trap) {
		x.stuck = true
		p.caught, p.trap = x, nil
	}
}

// catch makes the next connection that sends the text pass nothing on until loose is called.
func (p *proxy) catch(text string) (loose func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.trap = []byte(text)
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.trap = nil
		if p.caught != nil {
			p.caught.stuck = false
		}
		p.caught = nil
		p.change.Broadcast()
	}
}

// stick makes some of the connections that there are pass nothing on until loose is called; others do.
func (p *proxy) stick(random *rand.Rand) (loose func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var stuck []*pipe
	for x := range p.pipes {
		if random.IntN(3) == 0 {
			x.stuck = true
			stuck = append(stuck, x)
		}
	}
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, x := range stuck {
			x.stuck = false
		}
		p.change.Broadcast()
	}
}

func (p *proxy) close() {
	p.listener.Close()
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.cut()
}
