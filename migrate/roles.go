package migrate

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tidemarkhq/tidemark/sql"
)

// An Option changes how Tidemark is installed.
type Option func(*options)

type options struct {
	prefix *string // nil: the installed prefix, or none in a new database
}

// RolePrefix puts prefix before the names of Tidemark's roles. With "shop_" they are shop_tidemark_owner,
// shop_tidemark_admin and so on, and a right in this database is no right in another one of the cluster. The first Up sets
// the prefix; later calls find it in the database and refuse another. Default: no prefix.
func RolePrefix(prefix string) Option {
	return func(o *options) { o.prefix = &prefix }
}

const (
	ownerRole = "tidemark_owner"
	prefixMax = 63 - len("tidemark_executor") // 63 is PostgreSQL's limit, tidemark_executor the longest name
)

var (
	roleName    = regexp.MustCompile(`\btidemark_(?:owner|admin|executor|emitter|reader)\b`)
	prefixShape = regexp.MustCompile(`^([a-z][a-z0-9_]*)?$`)
)

func collect(all []Option) (options, error) {
	var o options
	for _, option := range all {
		option(&o)
	}
	if o.prefix == nil {
		return o, nil
	}
	if p := *o.prefix; !prefixShape.MatchString(p) || len(p) > prefixMax || strings.HasPrefix(p, "pg_") {
		return o, fmt.Errorf("role prefix %q: must be lower-case letters, digits and _, begin with a letter and not with pg_, "+
			"and have at most %d characters", p, prefixMax)
	}
	return o, nil
}

// NameRoles returns text with prefix before each name of a role of Tidemark.
func NameRoles(text, prefix string) string {
	if prefix == "" {
		return text
	}
	return roleName.ReplaceAllString(text, prefix+"$0")
}

// InstalledPrefix returns the prefix of the roles in this database. It is empty without a prefix or without the schema.
// Any role may call it.
func InstalledPrefix(ctx context.Context, db querier) (string, error) {
	owner, err := schemaOwner(ctx, db)
	if err != nil || owner == "" {
		return "", err
	}
	return prefixOf(owner)
}

// schemaOwner returns the owner of the schema, or an empty text without the schema.
func schemaOwner(ctx context.Context, db querier) (string, error) {
	var owner string
	err := db.QueryRow(ctx, `select pg_get_userbyid(n.nspowner)::text from pg_namespace n where n.nspname = 'tidemark'`).Scan(&owner)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", nil
	}
	return owner, err
}

func prefixOf(owner string) (string, error) {
	prefix, ours := strings.CutSuffix(owner, ownerRole)
	if !ours || !prefixShape.MatchString(prefix) {
		return "", fmt.Errorf("the schema tidemark belongs to %s, must belong to %s or PREFIX%s: it is not Tidemark's, "+
			"or was restored without its owner", owner, ownerRole, ownerRole)
	}
	return prefix, nil
}

// A RoleStatement is one of the statements that create Tidemark's roles and their memberships.
type RoleStatement struct {
	// SQL is the statement, without a semicolon at its end.
	SQL string `json:"sql"`
	// Done: the statement has no effect left.
	Done bool `json:"done"`
	// Needed is "always" (for each Up), "install" (for the first Up), or "advice".
	Needed string `json:"needed"`
	// Without says what does not work without a statement of "advice". Empty for the others.
	Without string `json:"without"`
}

// Roles returns the statements that a DBA runs before the role installer can install Tidemark in this database, in order
// and with their state. An empty installer is the role of conn. Any role may call it.
func Roles(ctx context.Context, conn *pgx.Conn, installer string, opts ...Option) ([]RoleStatement, error) {
	prefix, installer, err := whose(ctx, conn, installer, opts)
	if err != nil {
		return nil, err
	}
	steps, err := roleSteps(ctx, conn, prefix, installer)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(steps, func(s RoleStatement) bool { return s.Needed == "always" }) {
		return nil, fmt.Errorf("there is no role %s to install with", installer)
	}
	return steps, nil
}

// whose returns the prefix and the installer. The database supplies those that are not given.
func whose(ctx context.Context, db querier, installer string, opts []Option) (prefix, role string, err error) {
	o, err := collect(opts)
	if err != nil {
		return "", "", err
	}
	owner, err := schemaOwner(ctx, db)
	if err != nil {
		return "", "", err
	}
	if prefix, err = o.prefixFor(owner); err != nil || installer != "" {
		return prefix, installer, err
	}
	err = db.QueryRow(ctx, `select current_user::text`).Scan(&role)
	return prefix, role, err
}

func (o options) prefixFor(owner string) (string, error) {
	switch {
	case owner == "" && o.prefix == nil:
		return "", nil
	case owner == "":
		return *o.prefix, nil
	}
	prefix, err := prefixOf(owner)
	if err == nil && o.prefix != nil && *o.prefix != prefix {
		err = fmt.Errorf("role prefix %q: this database was installed with %q, and it cannot change", *o.prefix, prefix)
	}
	return prefix, err
}

func roleSteps(ctx context.Context, db querier, prefix, installer string) ([]RoleStatement, error) {
	rows, err := db.Query(ctx, NameRoles(sql.Roles, prefix), installer)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[RoleStatement])
}

// A RolesError says that the installer lacks rights which it cannot grant to itself.
type RolesError struct {
	Installer string
	Database  string
	// Statements for a superuser, or an owner of the roles and the database, to run.
	Statements []string
}

func (e *RolesError) Error() string {
	return fmt.Sprintf("%s may not install Tidemark in database %s, and nothing was changed. A superuser, or a role with ADMIN "+
		"on Tidemark's roles, has to run: %s;", e.Installer, e.Database, strings.Join(e.Statements, "; "))
}

// makeRoles runs the statements that are not done, and returns them. It checks failed ones again at the end: roles belong
// to the cluster, so an installer in another database may have done the same meanwhile.
func makeRoles(ctx context.Context, tx pgx.Tx, prefix string, first bool) (made, warnings []string, err error) {
	var installer, database string
	if err := tx.QueryRow(ctx, `select current_user::text, current_database()::text`).Scan(&installer, &database); err != nil {
		return nil, nil, err
	}
	tried := map[string]int{}
	for {
		steps, err := roleSteps(ctx, tx, prefix, installer)
		if err != nil {
			return nil, nil, err
		}
		steps = slices.DeleteFunc(steps, func(s RoleStatement) bool { return s.Done || !first && s.Needed != "always" })
		i := slices.IndexFunc(steps, func(s RoleStatement) bool { return tried[s.SQL] == 0 })
		if i < 0 {
			return leftUndone(made, steps, installer, database)
		}
		tried[steps[i].SQL]++
		err = pgx.BeginFunc(ctx, tx, func(savepoint pgx.Tx) error {
			_, err := savepoint.Exec(ctx, steps[i].SQL)
			return err
		})
		switch {
		case err == nil:
			made = append(made, steps[i].SQL)
		case !mayBeDone(err):
			return nil, nil, fmt.Errorf("%s: %w", steps[i].SQL, err)
		}
	}
}

// leftUndone reports the statements that are still not done: a grant may fail, or do nothing and raise only a warning.
func leftUndone(made []string, steps []RoleStatement, installer, database string) ([]string, []string, error) {
	var left, warnings []string
	refused := false
	for _, s := range steps {
		made = slices.DeleteFunc(made, func(sql string) bool { return sql == s.SQL })
		left = append(left, s.SQL)
		warnings = append(warnings, fmt.Sprintf("%s; run as a superuser: %s;", s.Without, s.SQL))
		refused = refused || s.Needed != "advice"
	}
	if refused {
		return nil, nil, &RolesError{Installer: installer, Database: database, Statements: left}
	}
	return made, warnings, nil
}

// mayBeDone reports whether the installer lacks a right, or another installer was faster.
func mayBeDone(err error) bool {
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && slices.Contains([]string{
		"42501", // insufficient_privilege
		"42704", // undefined_object: a role that could not be made
		"42710", // duplicate_object
		"23505", // unique_violation: by another transaction that has just ended
		"XX000", // tuple concurrently updated
	}, pgErr.Code)
}

// sharedWith returns the other databases of the cluster in which the same roles own something.
func sharedWith(ctx context.Context, db querier, prefix string) ([]string, error) {
	rows, err := db.Query(ctx, NameRoles(`
select distinct d.datname::text
from pg_shdepend s join pg_database d on d.oid = s.dbid
where s.refclassid = 'pg_authid'::regclass and s.refobjid = to_regrole('tidemark_owner') and s.deptype = 'o'
  and s.classid = 'pg_namespace'::regclass and d.datname <> current_database()
order by 1`, prefix))
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}
