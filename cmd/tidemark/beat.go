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
	"github.com/spf13/cobra"

	"github.com/tidemarkhq/tidemark/internal/store"
	"github.com/tidemarkhq/tidemark/migrate"
)

func newBeat(a *app) *cobra.Command {
	var every time.Duration
	var status, payload, job string
	cmd := needs("tidemark_executor", &cobra.Command{
		Use:   "beat EXECUTOR [-- COMMAND ARGS...]",
		Short: "Give a sign of life, or run a command and give signs of life while it runs",
		Long: `Give one sign of life of a registered executor:

  tidemark beat mailer/host-7 --status ok --payload '{"sent": 12}'

Or run a command, beating with the status running while it runs, and at its end with ok or failed:N, N being its
exit status, which is passed on. Signals are passed on to the command. The command runs whatever becomes
of the beats: a database that does not answer is remarked on, and neither delays nor ends it.

  tidemark beat nightly_export --every 30s -- pg_dump -f /backup/app.dump app

Who has psql only calls: select tidemark.heartbeat_write('mailer/host-7', 'ok', '{"sent": 12}');`,
	})
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		dash := cmd.ArgsLenAtDash()
		switch {
		case len(args) == 0 || dash == 0:
			return fmt.Errorf("%q needs EXECUTOR", cmd.CommandPath())
		case dash < 0 && len(args) > 1 || dash > 1:
			return fmt.Errorf("unexpected argument %q for %q: write -- before the command", args[1], cmd.CommandPath())
		case dash == 1 && len(args) == 1:
			return fmt.Errorf("%q needs a command behind --", cmd.CommandPath())
		}
		return nil
	}
	flags := cmd.Flags()
	flags.DurationVar(&every, "every", 30*time.Second, "while the command runs, beat this often")
	flags.StringVar(&status, "status", "ok", "what it says of itself, without a command")
	flags.StringVar(&payload, "payload", "", "small facts, as a JSON object, without a command")
	flags.StringVar(&job, "job", "", "id of the job that it works on, at the end of the command none")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) > 1 {
			if flags.Changed("status") || flags.Changed("payload") {
				return usagef("--status and --payload are for a beat without a command")
			}
			if every < time.Second {
				return usagef("--every is %s, must be 1s or more", every)
			}
			return a.beatWhile(cmd, args[0], job, every, args[1:])
		}
		if flags.Changed("every") {
			return usagef("--every is for a beat with a command")
		}
		return a.withSchema(func(ctx context.Context, s *session, args []string) error {
			at, err := s.HeartbeatWrite(ctx, args[0], status, payload, job)
			if err != nil {
				return err
			}
			if s.json {
				return s.object(struct {
					ExecutorID string    `json:"executor_id"`
					Status     string    `json:"status"`
					BeatAt     time.Time `json:"last_beat_at"`
				}{args[0], status, at})
			}
			return s.linef("%s: %s, %s", args[0], status, utc(at))
		})(cmd, args)
	}
	return cmd
}

// beatWhile runs a command. Nothing that the database does may reach it: beats are made
// elsewhere, each for a short time, and their errors are remarks.
func (a *app) beatWhile(cmd *cobra.Command, executor, job string, every time.Duration, command []string) error {
	p, err := a.printer(cmd)
	if err != nil {
		return err
	}
	child := exec.Command(command[0], command[1:]...) //nolint:noctx // it is not ours to end
	child.Stdin, child.Stdout, child.Stderr = os.Stdin, os.Stdout, os.Stderr
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2)
	defer signal.Stop(signals)

	began := time.Now()
	status := 0
	if err := child.Start(); err != nil {
		p.note("cannot run %s: %v", command[0], err)
		status = 127
		if errors.Is(err, os.ErrPermission) {
			status = 126
		}
	} else {
		b := &beater{app: a, printer: p, executor: executor, job: job}
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
	last := &beater{app: a, printer: p, executor: executor}
	last.beat(context.Background(), result(status), began)
	last.close()
	if status == 0 {
		return nil
	}
	return exitError{nil, status}
}

func result(status int) string {
	if status == 0 {
		return "ok"
	}
	return fmt.Sprintf("failed:%d", status)
}

// wait passes signals on until the command ends, and returns its exit status as a shell
// would tell it.
func wait(child *exec.Cmd, signals <-chan os.Signal) int {
	ended := make(chan error, 1)
	go func() { ended <- child.Wait() }()
	for {
		select {
		case s := <-signals:
			// What is typed at a terminal goes to the whole foreground group: the command has it.
			if typed := s == syscall.SIGINT || s == syscall.SIGQUIT; !typed || !isTerminal(os.Stdin) {
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

// beater beats over a connection that it makes anew when it is lost.
type beater struct {
	*app
	*printer
	executor string
	job      string
	conn     *pgx.Conn
	said     string
}

// beatTime is for one beat, with its connection.
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
		text, hint, _ := describe(&cobra.Command{}, err)
		if text != b.said {
			b.said = text
			b.note("%s", "no beat of "+b.executor+": "+text)
			if hint != "" {
				b.note("hint: %s", hint)
			}
		}
	}
}

func (b *beater) try(ctx context.Context, status, payload string) (err error) {
	if b.conn == nil {
		if b.conn, err = b.connect(ctx, b.printer); err != nil {
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
	if b.conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = b.conn.Close(ctx)
	b.conn = nil
}
