package command

import (
	"crypto/rand"
	"fmt"
)

// NewEventID returns a random event_id, a uuid of version 4.
func NewEventID() string {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// NewTraceID returns a random trace_id.
func NewTraceID() string {
	b := make([]byte, 16)
	_, _ = rand.Read(b)
	return fmt.Sprintf("%x", b)
}
