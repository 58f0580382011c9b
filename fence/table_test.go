package fence_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-a3166700/turnstile/fence"
)

// script is a database that records its statements and answers every query with one number.
type script struct {
	answer int64
	fail   error // of queries and commands

	mu    sync.Mutex // guards asked
	asked []string
}

func (s *script) note(what string, args []driver.NamedValue) {
	s.mu.Lock()
	defer s.mu.Unlock()
	parts := []string{what}
	for _, a := range args {
		parts = append(parts, formatArg(a.Value))
	}
	s.asked = append(s.asked, strings.Join(parts, "|"))
}

func formatArg(v driver.Value) string {
	if n, ok := v.(int64); ok {
		return fence.FormatToken(fence.Token(n))
	}
	return v.(string)
}

func (s *script) Connect(context.Context) (driver.Conn, error) { return scriptConn{s}, nil }
func (s *script) Driver() driver.Driver                        { return nil }

type scriptConn struct{ *script }

func (c scriptConn) Prepare(string) (driver.Stmt, error) { return nil, errors.ErrUnsupported }
func (c scriptConn) Close() error                        { return nil }
func (c scriptConn) Begin() (driver.Tx, error)           { c.note("BEGIN", nil); return c, nil }
func (c scriptConn) Commit() error                       { c.note("COMMIT", nil); return nil }
func (c scriptConn) Rollback() error                     { c.note("ROLLBACK", nil); return nil }

func (c scriptConn) ExecContext(_ context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	c.note(query, args)
	return driver.RowsAffected(1), c.fail
}

func (c scriptConn) QueryContext(_ context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	c.note(query, args)
	return &scriptRows{answer: c.answer, left: 1}, c.fail
}

type scriptRows struct {
	answer int64
	left   int
}

func (r *scriptRows) Columns() []string { return []string{"token"} }
func (r *scriptRows) Close() error      { return nil }
func (r *scriptRows) Next(dest []driver.Value) error {
	if r.left == 0 {
		return io.EOF
	}
	r.left--
	dest[0] = r.answer
	return nil
}

func table(t *testing.T, d fence.Dialect, name string) *fence.Table {
	t.Helper()
	table, err := fence.NewTable(d, name)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// Promise: 12
func TestEachDialectRaisesTheTokenInItsOwnWords(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		dialect fence.Dialect
		table   string
		schema  string
		raise   []string
		read    string
	}{
		{
			dialect: fence.PostgreSQL,
			table:   "app.fence",
			schema: "CREATE TABLE IF NOT EXISTS app.fence" +
				" (resource VARCHAR(255) NOT NULL PRIMARY KEY, token BIGINT NOT NULL)",
			raise: []string{
				"INSERT INTO app.fence AS seen (resource, token) VALUES ($1, $2)" +
					" ON CONFLICT (resource) DO UPDATE SET token = GREATEST(seen.token, EXCLUDED.token)" +
					" RETURNING token|stock|7",
			},
			read: "SELECT token FROM app.fence WHERE resource = $1|stock",
		},
		{
			dialect: fence.MySQL,
			schema: "CREATE TABLE IF NOT EXISTS turnstile_fence" +
				" (resource VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL PRIMARY KEY," +
				" token BIGINT NOT NULL) ENGINE = InnoDB",
			raise: []string{
				"INSERT INTO turnstile_fence (resource, token) VALUES (?, ?)" +
					" ON DUPLICATE KEY UPDATE token = GREATEST(token, ?)|stock|7|7",
				"SELECT token FROM turnstile_fence WHERE resource = ? FOR UPDATE|stock",
			},
			read: "SELECT token FROM turnstile_fence WHERE resource = ?|stock",
		},
		{
			dialect: fence.SQLite,
			schema: "CREATE TABLE IF NOT EXISTS turnstile_fence" +
				" (resource VARCHAR(255) NOT NULL PRIMARY KEY, token BIGINT NOT NULL)",
			raise: []string{
				"INSERT INTO turnstile_fence AS seen (resource, token) VALUES (?, ?)" +
					" ON CONFLICT (resource) DO UPDATE SET token = max(seen.token, excluded.token)" +
					" RETURNING token|stock|7",
			},
			read: "SELECT token FROM turnstile_fence WHERE resource = ?|stock",
		},
	} {
		t.Run(c.dialect.String(), func(t *testing.T) {
			t.Parallel()
			s := &script{answer: 7}
			db := sql.OpenDB(s)
			defer db.Close()
			f := table(t, c.dialect, c.table)
			if f.Schema() != c.schema {
				t.Errorf("got schema %s", f.Schema())
			}
			if err := f.Create(t.Context(), db); err != nil {
				t.Fatal(err)
			}
			if err := f.Do(t.Context(), db, "stock", 7, func(tx *sql.Tx) error {
				_, err := tx.ExecContext(t.Context(), "write")
				return err
			}); err != nil {
				t.Fatal(err)
			}
			if got, err := f.Newest(t.Context(), db, "stock"); got != 7 || err != nil {
				t.Errorf("got newest %d, %v, want 7", got, err)
			}
			want := append(append([]string{c.schema, "BEGIN"}, c.raise...), "write", "COMMIT", c.read)
			if diff := cmp.Diff(want, s.asked); diff != "" {
				t.Errorf("statements (-want +got):\n%s", diff)
			}

			s.asked, s.answer = nil, 9
			err := f.Do(t.Context(), db, "stock", 7, func(*sql.Tx) error {
				t.Error("write ran with a stale token")
				return nil
			})
			wantStale(t, err, 7, 9)
			if want := append(append([]string{"BEGIN"}, c.raise...), "ROLLBACK"); !cmp.Equal(want, s.asked) {
				t.Errorf("got statements %q for a refused write", s.asked)
			}
		})
	}
}

// Promise: 12
func TestDatabaseErrorsComeBackAndRollBack(t *testing.T) {
	t.Parallel()
	deadlock := errors.New("deadlock found")
	for _, d := range []fence.Dialect{fence.PostgreSQL, fence.MySQL, fence.SQLite} {
		s := &script{fail: deadlock}
		db := sql.OpenDB(s)
		err := table(t, d, "").Raise(t.Context(), db, "stock", 7)
		if !errors.Is(err, deadlock) {
			t.Errorf("%v: got %v, want the database's error", d, err)
		}
		if last := s.asked[len(s.asked)-1]; last != "ROLLBACK" {
			t.Errorf("%v: got last statement %s after an error, want ROLLBACK", d, last)
		}
		db.Close()
	}
}

// Promise: 12
func TestTablesAndResourcesThatWouldNeedQuotesAreRefused(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a b", "x; DROP TABLE y", "a.b.c", "1a", `"a"`, "a.", "é"} {
		if _, err := fence.NewTable(fence.SQLite, name); err == nil {
			t.Errorf("table name %q: got nil, want an error", name)
		}
	}
	if _, err := fence.NewTable(0, ""); err == nil || !strings.Contains(err.Error(), "SQLite") {
		t.Errorf("dialect 0: got %v, want an error", err)
	}
	s := &script{answer: 1}
	db := sql.OpenDB(s)
	defer db.Close()
	f := table(t, fence.MySQL, "")
	for _, resource := range []string{"", strings.Repeat("x", 256), "a\x00b", "\xff", "a "} {
		if err := f.Raise(t.Context(), db, resource, 1); err == nil {
			t.Errorf("resource %q: got nil, want an error", resource)
		}
	}
	for _, token := range []fence.Token{0, -1} {
		if err := f.Raise(t.Context(), db, "stock", token); !errors.Is(err, fence.ErrBadToken) {
			t.Errorf("token %d: got %v, want ErrBadToken", token, err)
		}
	}
}
