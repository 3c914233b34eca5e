package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/spf13/cobra"

	"github.com/tidemarkhq/tidemark/internal/store"
	"github.com/tidemarkhq/tidemark/migrate"
)

// app holds the flags that every command has.
type app struct {
	databaseURL string
	output      string
}

// session is a command at work: its database and where it writes.
type session struct {
	*store.DB
	conn *pgx.Conn
	*printer
	in io.Reader
}

// inTx runs work in a transaction, READ COMMITTED whatever the database's default is.
func (s *session) inTx(ctx context.Context, work func(*store.DB) error) error {
	return pgx.BeginTxFunc(ctx, s.conn, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		return work(store.New(tx))
	})
}

type work func(ctx context.Context, s *session, args []string) error

// withSchema makes a command of work that needs a schema this build can work with.
func (a *app) withSchema(do work) func(*cobra.Command, []string) error {
	return a.withDatabase(func(ctx context.Context, s *session, args []string) error {
		if err := migrate.Check(ctx, s.conn); err != nil {
			return err
		}
		return do(ctx, s, args)
	})
}

// withDatabase is withSchema for work that needs no schema.
func (a *app) withDatabase(do work) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		p, err := a.printer(cmd)
		if err != nil {
			return err
		}
		conn, err := a.connect(cmd.Context(), p)
		if err != nil {
			return err
		}
		defer func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(cmd.Context()), time.Second)
			defer cancel()
			_ = conn.Close(ctx)
		}()
		s := &session{DB: store.New(conn), conn: conn, printer: p, in: cmd.InOrStdin()}
		return s.lacksRole(cmd, do(cmd.Context(), s, args))
	}
}

// lacksRole says which role a refused command needs, by the name that it has in this database.
func (s *session) lacksRole(cmd *cobra.Command, err error) error {
	var pgErr *pgconn.PgError
	role := cmd.Annotations[roleAnnotation]
	if role == "" || !errors.As(err, &pgErr) || pgErr.Code != "42501" {
		return err
	}
	return hinted{err, needsRole(cmd, s.roles(cmd.Context(), role))}
}

// roles gives the roles in text the names that they have in this database.
func (s *session) roles(ctx context.Context, text string) string {
	prefix, err := migrate.InstalledPrefix(ctx, s.conn)
	if err != nil {
		return text
	}
	return migrate.NameRoles(text, prefix)
}

func (a *app) connect(ctx context.Context, p *printer) (*pgx.Conn, error) {
	address := cmp.Or(a.databaseURL, os.Getenv("TIDEMARK_DATABASE_URL"), os.Getenv("DATABASE_URL"))
	config, err := pgx.ParseConfig(address)
	if err != nil {
		return nil, badAddress(err)
	}
	// PgBouncer in transaction mode knows no prepared statements of ours.
	config.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = "tidemark"
	}
	if !strings.Contains(address, "connect_timeout") && os.Getenv("PGCONNECT_TIMEOUT") == "" {
		config.ConnectTimeout = 10 * time.Second
	}
	config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) {
		if n.SeverityUnlocalized == "WARNING" {
			p.note("warning: %s", n.Message)
		}
	}
	return pgx.ConnectConfig(ctx, config)
}

// badAddress tells what is wrong with an address, and not the address: somebody may
// have put a password where none is looked for.
func badAddress(err error) error {
	problem := err.Error()
	if i := strings.LastIndex(problem, "`: "); i >= 0 {
		problem = problem[i+len("`: "):]
	}
	return hinted{
		usagef("the address of the database is malformed: %s", problem),
		"Write postgres://USER@HOST:PORT/DATABASE, or host=HOST port=PORT user=USER dbname=DATABASE.",
	}
}

// needOne is for commands that change nothing unless told what.
func needOne(changes store.Changes) error {
	if len(changes) == 0 {
		return usagef("nothing to change: give at least one flag beside --reason")
	}
	return nil
}

// reasonFlag adds --reason, which goes to the audit.
func reasonFlag(cmd *cobra.Command, reason *string) {
	cmd.Flags().StringVar(reason, "reason", "", "why, for the audit")
}

func needReason(reason string) error {
	if strings.TrimSpace(reason) == "" {
		return usagef("--reason is needed: it goes to the audit")
	}
	return nil
}

// when reads a time of a flag: RFC 3339, or how long ago, such as 90m, 24h or 7d.
func when(flag, text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t, nil
	}
	ago := text
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.Atoi(days); err == nil {
			ago = fmt.Sprintf("%dh", n*24)
		}
	}
	if d, err := time.ParseDuration(ago); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	return time.Time{}, usagef("--%s %q is neither a time such as 2026-01-31T12:00:00Z nor how long ago, such as 90m, 24h or 7d", flag, text)
}
