package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tidemarkhq/tidemark/internal/config"
	"github.com/tidemarkhq/tidemark/internal/store"
	"github.com/tidemarkhq/tidemark/migrate"
)

// Session is a running command: its arguments, its database and its output.
type Session struct {
	*store.DB
	*Printer
	App    *App
	Conn   *pgx.Conn // nil before Open, for a command that needs nothing
	Args   []string
	Flags  *pflag.FlagSet
	In     io.Reader
	Reason string
	cmd    *cobra.Command
}

// Arg is the nth argument, or empty.
func (s *Session) Arg(n int) string {
	if n < len(s.Args) {
		return s.Args[n]
	}
	return ""
}

// Given tells whether any of the flags was given.
func (s *Session) Given(flags ...string) bool { return s.NumGiven(flags...) > 0 }

// NumGiven counts the flags that were given.
func (s *Session) NumGiven(flags ...string) (n int) {
	for _, flag := range flags {
		if s.Flags.Changed(flag) {
			n++
		}
	}
	return n
}

// NeedReason is for commands that need a reason in some cases.
func (s *Session) NeedReason() error {
	if strings.TrimSpace(s.Reason) == "" {
		return Usagef("--reason is required: the audit records it")
	}
	return nil
}

// ErrRollback ends the work of InTx without an error and without keeping anything.
var ErrRollback = errors.New("nothing is to be kept")

// InTx runs work in a transaction, READ COMMITTED whatever the database's default is.
func InTx[T any](ctx context.Context, s *Session, work func(*store.DB) (T, error)) (result T, err error) {
	err = pgx.BeginTxFunc(ctx, s.Conn, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) (err error) {
		result, err = work(store.New(tx))
		return err
	})
	if errors.Is(err, ErrRollback) {
		err = nil
	}
	return result, err
}

// Open connects, and checks that this build can work with the schema.
func (s *Session) Open(ctx context.Context) error { return s.open(ctx, true) }

func (s *Session) open(ctx context.Context, schema bool) (err error) {
	if s.Conn, err = s.App.Connect(ctx, s.Printer); err != nil {
		return err
	}
	s.DB = store.New(s.Conn)
	if !schema {
		return nil
	}
	return migrate.Check(ctx, s.Conn)
}

// answerLimit is how long a command for watchdogs waits for answers.
const answerLimit = 30 * time.Second

// Within is for commands for watchdogs. A server that has accepted the connection and then says nothing, as one that was stopped or
// whose disk hangs, is an error: else the watchdog would hang with it.
func Within(ctx context.Context, read func(context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	err := read(limited)
	if errors.Is(err, context.DeadlineExceeded) && limited.Err() != nil {
		return fmt.Errorf("the database has not answered within %s", answerLimit)
	}
	return err
}

func (s *Session) close() {
	if s.Conn != nil {
		Close(s.Conn)
	}
}

// Close ends a connection, and gives up after a second.
func Close(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = conn.Close(ctx)
}

// Connect connects to the database that the command line or the environment names.
func (a *App) Connect(ctx context.Context, p *Printer) (*pgx.Conn, error) {
	address := cmp.Or(a.DatabaseURL, os.Getenv("TIDEMARK_DATABASE_URL"), os.Getenv("DATABASE_URL"))
	config, err := ParseAddress(address)
	if err != nil {
		return nil, err
	}
	// PgBouncer in transaction mode does not keep our prepared statements.
	config.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = "tidemark"
	}
	if !strings.Contains(address, "connect_timeout") && os.Getenv("PGCONNECT_TIMEOUT") == "" {
		config.ConnectTimeout = 10 * time.Second
	}
	config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) {
		if n.SeverityUnlocalized == "WARNING" {
			p.Note("warning: %s", n.Message)
		}
	}
	return pgx.ConnectConfig(ctx, config)
}

// ParseAddress reads the address of a database.
func ParseAddress(address string) (*pgx.ConnConfig, error) {
	if config.SplitsPassword(address) {
		return nil, Hint(Usagef("the address of the database is malformed: an @, / or ? in it may be part of a password"), "Write each @ as %40 but for the one before the host, and in a password / as %2F and ? as %3F.")
	}
	parsed, err := pgx.ParseConfig(address)
	if err != nil {
		return nil, badAddress(err)
	}
	return parsed, nil
}

// badAddress says what is wrong with an address without printing it: it may hold a password in an unexpected place.
func badAddress(err error) error {
	problem := err.Error()
	if i := strings.LastIndex(problem, "`: "); i >= 0 {
		problem = problem[i+len("`: "):]
	}
	return Hint(Usagef("the address of the database is malformed: %s", problem),
		"Write postgres://USER@HOST:PORT/DATABASE, or host=HOST port=PORT user=USER dbname=DATABASE.")
}

const roleAnnotation = "role"

// nameRole adds to a refusal that has no hint the role that the command needs, by its name in this database.
func (s *Session) nameRole(ctx context.Context, err error) error {
	role := s.cmd.Annotations[roleAnnotation]
	if role == "" || s.Conn == nil || !store.HasCode(err, "42501") {
		return err
	}
	if pgErr := (*pgconn.PgError)(nil); errors.As(err, &pgErr) && pgErr.Hint != "" {
		return err
	}
	role = s.RoleNames(ctx, role)
	var login string
	if s.Conn.QueryRow(ctx, "select quote_ident(session_user)").Scan(&login) != nil {
		return Hint(err, needsRole(s.cmd, role))
	}
	return Hint(err, fmt.Sprintf("%s: grant %s to %s;", strings.TrimSuffix(needsRole(s.cmd, role), "."), role, login))
}

// RoleNames replaces the names of roles in text by those that this database has.
func (s *Session) RoleNames(ctx context.Context, text string) string {
	prefix, err := migrate.InstalledPrefix(ctx, s.Conn)
	if err != nil {
		return text
	}
	return migrate.NameRoles(text, prefix)
}
