package fence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// A Dialect is what a SQL database understands.
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

// maxResource is how many characters of a resource's name a table keeps.
const maxResource = 255

// Table is a fence in a SQL database: a table with the largest token of each resource. A token is checked and raised within the
// transaction that writes, whose lock on the resource's row keeps every other token out until it ends.
type Table struct {
	name    string
	dialect Dialect
	schema  string
	raise   string // parameters: resource, token and, for MySQL, token again
	read    string // parameter: resource
	locked  string // read, and lock the row; empty if raise returns the token
}

var tableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)?$`)

// NewTable returns the fence whose table has the given name, "turnstile_fence" if that is empty; it may have a schema, as in
// "app.fence". The table is not made: see Create and Schema. It returns an error for a name that would need quotes and for a dialect that is none.
func NewTable(dialect Dialect, name string) (*Table, error) {
	if name == "" {
		name = "turnstile_fence"
	}
	if !tableName.MatchString(name) {
		return nil, fmt.Errorf("fence: %q cannot be the name of a table: use letters, digits and underscores, and a schema before a dot", name)
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
		// Names are compared byte by byte, as the others do. InnoDB, because MyISAM would ignore transactions.
		t.schema = fmt.Sprintf(schema, "CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL") + " ENGINE = InnoDB"
		// The token is given twice because VALUES() is on its way out of MySQL and the alias that replaces it is not in MariaDB.
		t.raise = "INSERT INTO " + name + columns + "(?, ?) ON DUPLICATE KEY UPDATE token = GREATEST(token, ?)"
		// The number of affected rows does not tell a token that is equal from one that is refused, so look.
		t.locked = t.read + " FOR UPDATE"
	case SQLite:
		t.schema = fmt.Sprintf(schema, "NOT NULL")
		t.raise = "INSERT INTO " + name + " AS seen" + columns + "(?, ?)" +
			" ON CONFLICT (resource) DO UPDATE SET token = max(seen.token, excluded.token) RETURNING token"
	default:
		return nil, fmt.Errorf("fence: no dialect %v: use PostgreSQL, MySQL or SQLite", dialect)
	}
	return t, nil
}

// Schema returns the statement that makes the table if it is not there, for those who keep their schema elsewhere.
func (t *Table) Schema() string { return t.schema }

// Create makes the table if it is not there.
func (t *Table) Create(ctx context.Context, db *sql.DB) error {
	if _, err := db.ExecContext(ctx, t.schema); err != nil {
		return t.failed("create the table", err)
	}
	return nil
}

// Admit shows the token for resource in the caller's transaction, and returns a *StaleError if a larger one has been seen. From then until tx ends
// nobody else is admitted to the resource, and once tx is committed no smaller token ever again. What tx writes and the token become visible
// together, or neither.
//
// Call it first in the transaction, before anything that the resource's state is read from. After any error roll tx back. Errors of
// the database come wrapped; one that says that the transaction met another (a serialization failure, a deadlock, a busy
// database) is answered, as ever, by doing the whole transaction again. Who waits for another's transaction waits as long as the database lets it:
// until ctx ends, or a limit of the database's (innodb_lock_wait_timeout, SQLite's busy_timeout, which is zero if it is not set).
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

// Do runs write in a transaction that has admitted the token, and commits it. If the token is refused, write is not run; if write
// returns an error, the transaction is rolled back, and so is the token, and the error comes back as it is. An error of the commit itself (it
// begins "fence: TABLE: commit") may mean that everything was committed and only the answer was lost.
func (t *Table) Do(ctx context.Context, db *sql.DB, resource string, token Token, write func(tx *sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return t.failed("begin", err)
	}
	defer tx.Rollback() //nolint:errcheck // after a commit it does nothing, and after a failure that is what is returned
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

// Raise shows the token for resource and writes nothing else: what later tries a smaller one is refused.
func (t *Table) Raise(ctx context.Context, db *sql.DB, resource string, token Token) error {
	return t.Do(ctx, db, resource, token, func(*sql.Tx) error { return nil })
}

// Newest returns the largest token that has been seen for resource, zero if none has.
func (t *Table) Newest(ctx context.Context, db *sql.DB, resource string) (Token, error) {
	var token Token
	err := db.QueryRowContext(ctx, t.read, resource).Scan(&token)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return 0, t.failed("read the token of "+resource, err)
	}
	return token, nil
}

// Store makes the table remember for a Gate.
func (t *Table) Store(db *sql.DB) Store {
	return func(ctx context.Context, resource string, token Token) error {
		return t.Raise(ctx, db, resource, token)
	}
}

func (t *Table) failed(what string, err error) error {
	return fmt.Errorf("fence: %s: %s: %w", t.name, what, err)
}

// checkResource refuses what databases would cut, change or refuse themselves: names that are cut become one.
func checkResource(resource string) error {
	if resource == "" || len(resource) > maxResource || strings.ToValidUTF8(resource, "") != resource || strings.ContainsRune(resource, 0) ||
		strings.HasSuffix(resource, " ") {
		return fmt.Errorf("fence: %.40q cannot name a resource: use 1 to %d bytes of UTF-8, without zeros and not ending in a space", resource, maxResource)
	}
	return nil
}
