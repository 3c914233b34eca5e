package kafka

// RawRecord is what a payload is delivered as in the format Raw.
var RawRecord = raw

// Idle returns the producers that wait for the next delivery.
func (c *Connection) Idle() []any {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []any
	for _, p := range c.idle {
		all = append(all, p)
	}
	return all
}

// Aside returns the client that is kept for requests that are not deliveries.
func (c *Connection) Aside() any {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.aside
}

// Places returns of how many topics the marks are known.
func (m *Marks) Places() int { return len(m.last) }
