// Package sqlite_test runs the SQL fence on a real database. It is a separate module so that users of package fence
// do not depend on the database.
package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	_ "modernc.org/sqlite" // the database

	"github.com/seed-a3166700/turnstile/fence"
)

// shop returns a database with a fence and a table that the fence protects.
func shop(t *testing.T, path string) (*sql.DB, *fence.Table) {
	t.Helper()
	db := open(t, path, patient)
	f, err := fence.NewTable(fence.SQLite, "")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second call finds the table
		if err := f.Create(t.Context(), db); err != nil {
			t.Fatal(err)
		}
	}
	_, err = db.ExecContext(t.Context(), "CREATE TABLE log (id INTEGER PRIMARY KEY, token BIGINT NOT NULL)")
	if err != nil {
		t.Fatal(err)
	}
	return db, f
}

// patient is a busy_timeout in milliseconds that is longer than any test.
const patient = 60_000

// dsn returns the data source name of the database, with a busy_timeout in milliseconds.
func dsn(path string, wait int) string {
	return fmt.Sprintf("file:%s?_pragma=busy_timeout(%d)&_pragma=synchronous(off)", path, wait)
}

// open opens the database with its own connections, as another process would.
func open(t *testing.T, path string, wait int) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", dsn(path, wait))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// write appends the token to the log, under the fence.
func write(ctx context.Context, db *sql.DB, f *fence.Table, token fence.Token) error {
	return f.Do(ctx, db, "stock", token, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "INSERT INTO log (token) VALUES (?)", token)
		return err
	})
}

// written returns the tokens of the log in the order of their writes.
func written(t *testing.T, db *sql.DB) []fence.Token {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), "SELECT token FROM log ORDER BY id")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var tokens []fence.Token
	for rows.Next() {
		var token fence.Token
		if err := rows.Scan(&token); err != nil {
			t.Fatal(err)
		}
		tokens = append(tokens, token)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return tokens
}

// Promise: 12
func TestTableRefusesSmallerTokensInTheTransactionOfTheWrite(t *testing.T) {
	t.Parallel()
	db, f := shop(t, filepath.Join(t.TempDir(), "shop.db"))
	if got, err := f.Newest(t.Context(), db, "stock"); got != 0 || err != nil {
		t.Errorf("got newest %d, %v before any token, want 0", got, err)
	}
	for _, token := range []fence.Token{5, 5, 8, 1<<63 - 1} {
		if err := write(t.Context(), db, f, token); err != nil {
			t.Fatal(err)
		}
		err := write(t.Context(), db, f, token-1)
		stale, ok := errors.AsType[*fence.StaleError](err)
		if !ok || stale.Token != token-1 || stale.Newest != token || stale.Resource != "stock" {
			t.Errorf("after %d, token %d: got %v, want ErrStale", token, token-1, err)
		}
		if got, err := f.Newest(t.Context(), db, "stock"); got != token || err != nil {
			t.Errorf("got newest %d, %v, want %d", got, err, token)
		}
	}
	if err := f.Raise(t.Context(), db, "staff", 1); err != nil {
		t.Errorf("another resource: got %v, want nil", err)
	}
	if got := written(t, db); len(got) != 4 {
		t.Errorf("got tokens %d in the log", got)
	}
}

// Promise: 12
func TestWriteThatFailsTakesItsTokenBack(t *testing.T) {
	t.Parallel()
	db, f := shop(t, filepath.Join(t.TempDir(), "shop.db"))
	if err := write(t.Context(), db, f, 5); err != nil {
		t.Fatal(err)
	}
	refused := errors.New("nothing left")
	if err := f.Do(t.Context(), db, "stock", 9, func(*sql.Tx) error { return refused }); !errors.Is(err, refused) {
		t.Errorf("got %v, want the error of write", err)
	}
	if err := write(t.Context(), db, f, 6); err != nil {
		t.Errorf("smaller token after a write that was rolled back: got %v, want nil", err)
	}
}

// The fence runs in a transaction of the caller: the caller's writes and the token take effect together or not at
// all.
//
// Promise: 12
func TestCheckAndWriteAreOneTransactionOfTheCallers(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "shop.db")
	db, f := shop(t, path)
	// enter begins a transaction, shows the token and writes.
	enter := func(token fence.Token) (*sql.Tx, error) {
		tx, err := db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Admit(t.Context(), tx, "stock", token); err != nil {
			return nil, errors.Join(err, tx.Rollback())
		}
		if _, err := tx.ExecContext(t.Context(), "INSERT INTO log (token) VALUES (?)", token); err != nil {
			t.Fatal(err)
		}
		return tx, nil
	}
	want := func(when string, newest fence.Token, log ...fence.Token) {
		t.Helper()
		if got, err := f.Newest(t.Context(), db, "stock"); got != newest || err != nil {
			t.Errorf("%s: got newest %d, %v, want %d", when, got, err, newest)
		}
		if got := written(t, db); !slices.Equal(got, log) {
			t.Errorf("%s: got %d written, want %d", when, got, log)
		}
	}

	tx, err := enter(5)
	if err != nil {
		t.Fatal(err)
	}
	want("before the commit", 0)
	// Until the commit no other transaction is admitted, whatever its token. Without waiting it fails because the
	// database is locked.
	hasty := open(t, path, 0)
	for _, token := range []fence.Token{4, 5, 6} {
		if err := f.Raise(t.Context(), hasty, "stock", token); err == nil || errors.Is(err, fence.ErrStale) {
			t.Errorf("token %d while a transaction is open: got %v, want an error of the database", token, err)
		}
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	want("after the commit", 5, 5)

	if tx, err = enter(8); err != nil {
		t.Fatal(err)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	want("after a rollback", 5, 5)
	if _, err := enter(4); !errors.Is(err, fence.ErrStale) {
		t.Errorf("smaller token: got %v, want ErrStale", err)
	}
	want("after a refusal", 5, 5)
	if tx, err = enter(6); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	want("at the end", 6, 5, 6)
}

// Many writers, each with its own connections as a process has: the tokens of the log never fall.
//
// Promise: 12
func TestTableAdmitsTokensInOrderFromManyWriters(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "shop.db")
	first, f := shop(t, path)
	var writers sync.WaitGroup
	for i := range 6 {
		db := open(t, path, patient)
		writers.Go(func() {
			for token := fence.Token(1 + i); token <= 60; token += 6 {
				if err := write(t.Context(), db, f, token); err != nil && !errors.Is(err, fence.ErrStale) {
					t.Errorf("token %d: %v", token, err)
				}
			}
		})
	}
	writers.Wait()
	log := written(t, first)
	for i := 1; i < len(log); i++ {
		if log[i] < log[i-1] {
			t.Errorf("token %d admitted after %d", log[i], log[i-1])
		}
	}
	if len(log) == 0 {
		t.Error("got an empty log")
	}
}

func TestTableRemembersForAGate(t *testing.T) {
	t.Parallel()
	db, f := shop(t, filepath.Join(t.TempDir(), "shop.db"))
	nothing := func(context.Context) error { return nil }
	if err := fence.NewGate(f.Store(db)).Do(t.Context(), "stock", 8, nothing); err != nil {
		t.Fatal(err)
	}
	if err := fence.NewGate(f.Store(db)).Do(t.Context(), "stock", 7, nothing); !errors.Is(err, fence.ErrStale) {
		t.Errorf("smaller token after a restart: got %v, want ErrStale", err)
	}
}
