package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/pflag"

	"github.com/tidemarkhq/tidemark/internal/cli"
	"github.com/tidemarkhq/tidemark/internal/store"
	"github.com/tidemarkhq/tidemark/migrate"
)

func beatCommand() cli.Command {
	var every time.Duration
	var status, payload, job string
	return cli.Command{
		Use: "beat EXECUTOR [-- COMMAND ARGS...]", Short: "Send a heartbeat, or run a command and send heartbeats meanwhile",
		Role: "tidemark_executor", Needs: cli.Nothing, CheckArgs: beatArgs,
		Long: `Send one heartbeat of a registered executor. Or run a command: heartbeats say running while it runs, and at its
end ok or failed:N, where N is its exit status, which becomes that of beat. beat passes signals on to the command. The
command runs whatever becomes of the heartbeats: a database that does not answer is reported on stderr, and neither
delays nor ends it.

In psql: select tidemark.heartbeat_write('mailer/host-7', 'ok', '{"sent": 12}');`,
		Example: `  tidemark beat mailer/host-7 --status ok --payload '{"sent": 12}'
  tidemark beat nightly_export --every 30s -- pg_dump -f /backup/app.dump app`,
		Flags: func(flags *pflag.FlagSet) {
			flags.DurationVar(&every, "every", 30*time.Second, "how often to send a heartbeat while the command runs")
			flags.StringVar(&status, "status", "ok", "what the executor says about itself, without a command")
			flags.StringVar(&payload, "payload", "", "small facts, as a JSON object, without a command")
			flags.StringVar(&job, "job", "", "id of the job that it works on; cleared when the command ends")
		},
		MayBeEmpty: []string{"database-url", "job", "payload"}, // the command runs whatever becomes of the heartbeats
		Run: func(ctx context.Context, s *cli.Session) error {
			executor := s.Arg(0)
			switch {
			case len(s.Args) == 1 && s.Given("every"):
				return cli.Usagef("--every is for a heartbeat with a command")
			case len(s.Args) > 1 && s.Given("status", "payload"):
				return cli.Usagef("--status and --payload are for a heartbeat without a command")
			case len(s.Args) > 1 && every < time.Second:
				return cli.Usagef("--every is %s, must be 1s or more", every)
			case len(s.Args) > 1:
				return beatWhileRunning(&beater{App: s.App, Printer: s.Printer, executor: executor, job: job}, every, s.Args[1:])
			}
			if err := s.Open(ctx); err != nil {
				return err
			}
			at, err := s.HeartbeatWrite(ctx, executor, status, payload, job)
			if err != nil {
				return err
			}
			return s.Result(cli.Fields{
				"executor_id", executor,
				"status", status, "last_beat_at", at,
			}, "%s: %s, %s", executor, status, cli.Cell(at))
		},
	}
}

func beatArgs(path string, args []string, dash int) error {
	switch {
	case len(args) == 0 || dash == 0:
		return fmt.Errorf("%q needs EXECUTOR", path)
	case dash < 0 && len(args) > 1 || dash > 1:
		return fmt.Errorf("unexpected argument %q for %q: write -- before the command", args[1], path)
	case dash == 1 && len(args) == 1:
		return fmt.Errorf("%q needs a command after --", path)
	}
	return nil
}

// beatWhileRunning runs a command. The database cannot affect it: heartbeats are sent from another goroutine, each
// within a short time, and their errors are remarks.
func beatWhileRunning(b *beater, every time.Duration, command []string) error {
	child := exec.Command(command[0], command[1:]...) //nolint:noctx // it is not ours to end
	child.Stdin, child.Stdout, child.Stderr = os.Stdin, os.Stdout, os.Stderr
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM,
		syscall.SIGUSR1, syscall.SIGUSR2)
	defer signal.Stop(signals)

	began := time.Now()
	status := 0
	if err := child.Start(); err != nil {
		b.Note("cannot run %s: %v", command[0], err)
		status = 127
		if errors.Is(err, os.ErrPermission) {
			status = 126
		}
	} else {
		beating, stop := context.WithCancel(context.Background())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			b.run(beating, every, began)
		}()
		status = wait(child, signals)
		stop()
		<-ended
	}
	last := &beater{App: b.App, Printer: b.Printer, executor: b.executor} // without the job, on a connection of its own
	last.beat(context.Background(), result(status), began)
	last.close()
	if status == 0 {
		return nil
	}
	return cli.ExitWith(status, nil)
}

func result(status int) string {
	if status == 0 {
		return "ok"
	}
	return fmt.Sprintf("failed:%d", status)
}

// wait passes signals on until the command ends, and returns its exit status as a shell would.
func wait(child *exec.Cmd, signals <-chan os.Signal) int {
	ended := make(chan error, 1)
	go func() { ended <- child.Wait() }()
	for {
		select {
		case s := <-signals:
			// The terminal sends a typed signal to the whole foreground group, the command included.
			if typed := s == syscall.SIGINT || s == syscall.SIGQUIT; !typed || !cli.IsTerminal(os.Stdin) {
				_ = child.Process.Signal(s)
			}
		case err := <-ended:
			var exit *exec.ExitError
			switch {
			case err == nil:
				return 0
			case !errors.As(err, &exit):
				return 1
			}
			if s, ok := exit.Sys().(syscall.WaitStatus); ok && s.Signaled() {
				return 128 + int(s.Signal())
			}
			return exit.ExitCode()
		}
	}
}

// beater sends heartbeats, over a connection that it makes again when it is lost.
type beater struct {
	*cli.App
	*cli.Printer
	executor string
	job      string
	conn     *pgx.Conn
	said     string // the last error, which is not repeated
}

// beatTime bounds one heartbeat, with its connection.
const beatTime = 5 * time.Second

func (b *beater) run(ctx context.Context, every time.Duration, began time.Time) {
	defer b.close()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		b.beat(ctx, "running", began)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (b *beater) beat(ctx context.Context, status string, began time.Time) {
	limited, cancel := context.WithTimeout(ctx, beatTime)
	defer cancel()
	err := b.try(limited, status, fmt.Sprintf(`{"seconds": %d}`, int(time.Since(began).Seconds())))
	switch {
	case ctx.Err() != nil: // the command has ended
	case err == nil:
		b.said = ""
	default:
		b.close()
		if text, hint := cli.Describe(err); text != b.said {
			b.said = text
			b.Note("no heartbeat of %s: %s", b.executor, text)
			if hint != "" {
				b.Hint("%s", hint)
			}
		}
	}
}

func (b *beater) try(ctx context.Context, status, payload string) (err error) {
	if b.conn == nil {
		if b.conn, err = b.Connect(ctx, b.Printer); err != nil {
			b.conn = nil
			return err
		}
		if err := migrate.Check(ctx, b.conn); err != nil {
			return err
		}
	}
	_, err = store.New(b.conn).HeartbeatWrite(ctx, b.executor, status, payload, b.job)
	return err
}

func (b *beater) close() {
	if b.conn != nil {
		cli.Close(b.conn)
		b.conn = nil
	}
}
