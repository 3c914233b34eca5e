package ingress

import "time"

// SetWriteTimeout lets answers take less time.
func (i *Ingress) SetWriteTimeout(d time.Duration) { i.http.WriteTimeout = d }
