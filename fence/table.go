package fence

// Table, a fence in a SQL database.

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/seed-a3166700/turnstile/internal/attempt"
)

// A Dialect is the SQL dialect of a database.
type Dialect int

// The dialects.
const (
	PostgreSQL Dialect = iota + 1 // 9.5 and later
	MySQL                         // 5.7 and later, MariaDB 10.2 and later, with InnoDB
	SQLite                        // 3.35 and later
)

// String returns the dialect's name.
func (d Dialect) String() string {
	switch d {
	case PostgreSQL:
		return "PostgreSQL"
	case MySQL:
		return "MySQL"
	case SQLite:
		return "SQLite"
	default:
		return fmt.Sprintf("Dialect(%d)", int(d))
	}
}

// maxResource is the longest name of a resource, in bytes.
const maxResource = 255

// Table is a fence in a SQL database: a table with the largest token of each resource. The transaction that writes also
// checks and raises the token. Its lock on the resource's row keeps out every other token until it ends.
type Table struct {
	name    string
	dialect Dialect
	schema  string
	raise   string // parameters: resource, token and, for MySQL, token again
	read    string // parameter: resource
	locked  string // read, and lock the row; empty if raise returns the token
}

var tableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)?$`)

// NewTable returns the fence in the table called name, which may include a schema, as in "app.fence"; an empty name
// means "turnstile_fence". It does not create the table: see Create and Schema. It returns an error if the name would
// need quotes or the dialect is unknown.
func NewTable(dialect Dialect, name string) (*Table, error) {
	if name == "" {
		name = "turnstile_fence"
	}
	if !tableName.MatchString(name) {
		return nil, attempt.Bad(
			"fence: invalid table name %q; use letters, digits and underscores, and a dot after the schema", name)
	}
	t := &Table{name: name, dialect: dialect}
	const columns = " (resource, token) VALUES "
	const resource = " (resource VARCHAR(255) %s PRIMARY KEY, token BIGINT NOT NULL)"
	schema := "CREATE TABLE IF NOT EXISTS " + name + resource
	t.read = "SELECT token FROM " + name + " WHERE resource = ?"
	switch dialect {
	case PostgreSQL:
		t.schema = fmt.Sprintf(schema, "NOT NULL")
		t.raise = "INSERT INTO " + name + " AS seen" + columns + "($1, $2)" +
			" ON CONFLICT (resource) DO UPDATE SET token = GREATEST(seen.token, EXCLUDED.token) RETURNING token"
		t.read = strings.ReplaceAll(t.read, "?", "$1")
	case MySQL:
		// utf8mb4_bin compares names byte by byte, as the other databases do. MyISAM would ignore transactions, so use
		// InnoDB.
		t.schema = fmt.Sprintf(schema, "CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL") + " ENGINE = InnoDB"
		// The token is given twice because VALUES() is deprecated in MySQL, and MariaDB lacks the alias that replaces
		// it.
		t.raise = "INSERT INTO " + name + columns + "(?, ?) ON DUPLICATE KEY UPDATE token = GREATEST(token, ?)"
		// The number of affected rows is the same for an equal token and for a refused one, so read the token.
		t.locked = t.read + " FOR UPDATE"
	case SQLite:
		t.schema = fmt.Sprintf(schema, "NOT NULL")
		t.raise = "INSERT INTO " + name + " AS seen" + columns + "(?, ?)" +
			" ON CONFLICT (resource) DO UPDATE SET token = max(seen.token, excluded.token) RETURNING token"
	default:
		return nil, attempt.Bad("fence: unknown dialect %v; use PostgreSQL, MySQL or SQLite", dialect)
	}
	return t, nil
}

// Schema returns the statement that creates the table if it does not exist, for programs that manage their schema
// elsewhere.
func (t *Table) Schema() string { return t.schema }

// Create creates the table if it does not exist.
func (t *Table) Create(ctx context.Context, db *sql.DB) error {
	if _, err := db.ExecContext(ctx, t.schema); err != nil {
		return t.failed("create the table", err)
	}
	return nil
}

// Admit shows the fence the token for resource in the caller's transaction. It returns a *StaleError if the fence has
// seen a larger one. Until tx ends the fence admits no other transaction to the resource, and once tx has committed it
// refuses smaller tokens for ever. The token and what tx writes take effect together or not at all.
//
// Call Admit first in the transaction, before it reads anything that a write depends on. Roll tx back after any error.
// Errors of the database come wrapped; after a conflict (a serialization failure, a deadlock, a busy database) repeat
// the whole transaction. Admit waits for other transactions until ctx ends or a limit of the database has passed
// (innodb_lock_wait_timeout, or SQLite's busy_timeout, which is zero by default).
func (t *Table) Admit(ctx context.Context, tx *sql.Tx, resource string, token Token) error {
	if err := checkToken(token); err != nil {
		return err
	}
	if err := checkResource(resource); err != nil {
		return err
	}
	var newest Token
	var err error
	if t.locked == "" {
		err = tx.QueryRowContext(ctx, t.raise, resource, int64(token)).Scan(&newest)
	} else if _, err = tx.ExecContext(ctx, t.raise, resource, int64(token), int64(token)); err == nil {
		err = tx.QueryRowContext(ctx, t.locked, resource).Scan(&newest)
	}
	if err != nil {
		return t.failed("raise the token of "+resource, err)
	}
	return admit(resource, token, newest)
}

// Do calls Admit and write in a transaction, and commits it. It does not run write if the token is refused. If write
// returns an error, Do rolls back the transaction with the token, and returns the error unchanged. After an error of
// the commit, which begins with "fence: TABLE: commit", the transaction may have been committed and only the reply
// lost.
func (t *Table) Do(ctx context.Context, db *sql.DB, resource string, token Token, write func(tx *sql.Tx) error) error {
	if err := checkWork(write == nil); err != nil {
		return err
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return t.failed("begin", err)
	}
	defer tx.Rollback() //nolint:errcheck // it does nothing after a commit, and the earlier error is returned otherwise
	if err := t.Admit(ctx, tx, resource, token); err != nil {
		return err
	}
	if err := write(tx); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return t.failed("commit", err)
	}
	return nil
}

// Raise shows the fence the token for resource and writes nothing else, so that it refuses smaller ones from then on.
func (t *Table) Raise(ctx context.Context, db *sql.DB, resource string, token Token) error {
	return t.Do(ctx, db, resource, token, func(*sql.Tx) error { return nil })
}

// Newest returns the largest token that the fence has seen for resource, or zero.
func (t *Table) Newest(ctx context.Context, db *sql.DB, resource string) (Token, error) {
	var token Token
	err := db.QueryRowContext(ctx, t.read, resource).Scan(&token)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return 0, t.failed("read the token of "+resource, err)
	}
	return token, nil
}

// Store returns a Store that keeps a Gate's tokens in the table.
func (t *Table) Store(db *sql.DB) Store {
	return func(ctx context.Context, resource string, token Token) error {
		return t.Raise(ctx, db, resource, token)
	}
}

func (t *Table) failed(what string, err error) error {
	return fmt.Errorf("fence: %s: %s: %w", t.name, what, err)
}

// checkResource refuses names that a database would truncate, change or refuse: two truncated names may become the same
// one.
func checkResource(resource string) error {
	if resource == "" || len(resource) > maxResource || !utf8.ValidString(resource) ||
		strings.ContainsRune(resource, 0) || strings.HasSuffix(resource, " ") {
		return attempt.Bad(
			"fence: invalid resource name %.40q; use 1 to %d bytes of UTF-8, without zeros or a space at the end",
			resource, maxResource)
	}
	return nil
}
