package nats

// Back reports whether the own mark has come back.
func (m *Marks) Back() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.back
}
