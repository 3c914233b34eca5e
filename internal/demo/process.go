package demo

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"time"
)

// A process is a `tidemark run` of its own, so that it can be killed. It is started again when it ends by itself, as a service
// manager does: a daemon that finds no database when it starts ends.
type process struct {
	binary string
	env    []string // beside those of this process
	log    tail

	mu    sync.Mutex
	cmd   *exec.Cmd // nil: it is not to run
	ended sync.WaitGroup
}

const startAgainAfter = 500 * time.Millisecond

// start leaves the process running whatever becomes of ctx.
func (p *process) start(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.launch(context.WithoutCancel(ctx))
}

func (p *process) launch(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, p.binary, "run")
	cmd.Env = append(os.Environ(), p.env...)
	cmd.Stderr = &p.log
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the daemon: %w", err)
	}
	p.cmd = cmd
	p.ended.Go(func() {
		_ = cmd.Wait() // how it ended is in its log
		time.Sleep(startAgainAfter)
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.cmd == cmd {
			if err := p.launch(ctx); err != nil {
				fmt.Fprintln(&p.log, err)
			}
		}
	})
	return nil
}

// kill kills it with SIGKILL, if it runs.
func (p *process) kill() {
	p.mu.Lock()
	if p.cmd != nil {
		_ = p.cmd.Process.Kill()
		p.cmd = nil
	}
	p.mu.Unlock()
	p.ended.Wait()
}
