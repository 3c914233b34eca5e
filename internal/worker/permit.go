package worker

import "sync"

// A Permit is what a handler asks before it delivers: the lease of the moment.
type Permit struct {
	mu    sync.Mutex
	lease *lease
}

func (p *Permit) set(l *lease) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lease = l
}

func (p *Permit) current() *lease {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lease
}

// Allows reports whether the route may deliver now: the lease is ours, the gates are
// open, and it is live and not paused.
func (p *Permit) Allows(route int32) bool {
	l := p.current()
	return l != nil && l.allows(route)
}

// AllowsDomain reports whether the gate of the domain is open, as of what Allows goes by.
func (p *Permit) AllowsDomain(domain string) bool {
	l := p.current()
	return l != nil && l.open(domain)
}

// Changed returns a channel that is closed when the gate of a domain opens or closes. Without a lease it is nil, and the
// permit allows nothing.
func (p *Permit) Changed() <-chan struct{} {
	l := p.current()
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changed
}

// Epoch is that of the lease.
func (p *Permit) Epoch() int64 {
	if l := p.current(); l != nil {
		return l.epoch
	}
	return 0
}
