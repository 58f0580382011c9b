package sqlite_test

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-a3166700/turnstile/fence"
)

// writerEnv carries a database's path. If it is set, the test binary writes with token 5, prints a line before it
// commits, and waits.
const writerEnv = "TURNSTILE_FENCE_DATABASE"

func TestMain(m *testing.M) {
	path := os.Getenv(writerEnv)
	if path == "" {
		os.Exit(m.Run())
	}
	fmt.Println(stayInside(context.Background(), path))
	os.Exit(1)
}

func stayInside(ctx context.Context, path string) error {
	db, err := sql.Open("sqlite", dsn(path, 60_000))
	if err != nil {
		return err
	}
	defer db.Close()
	f, err := fence.NewTable(fence.SQLite, "")
	if err != nil {
		return err
	}
	return f.Do(ctx, db, "stock", 5, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, "INSERT INTO log (token) VALUES (5)"); err != nil {
			return err
		}
		fmt.Println("inside")
		_, err := bufio.NewReader(os.Stdin).ReadString('\n')
		return err
	})
}

// A process that is killed in its transaction does not keep out others, and neither its write nor its token takes
// effect.
//
// Promise: 12
func TestWriterThatIsKilledInItsTransactionLeavesNothing(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "shop.db")
	db, f := shop(t, path)
	if err := write(t.Context(), db, f, 3); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	writer := exec.CommandContext(t.Context(), self)
	writer.Env = append(os.Environ(), writerEnv+"="+path)
	writer.Stderr = t.Output()
	if _, err := writer.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := writer.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := writer.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "inside\n" {
		t.Fatalf("got %q, %v from the writer, want inside", line, err)
	}

	err = write(t.Context(), open(t, path, 0), f, 6)
	if err == nil || errors.Is(err, fence.ErrStale) || !strings.Contains(err.Error(), "locked") {
		t.Errorf("got %v while another process writes, want the database's error that it is locked", err)
	}
	if err := writer.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = writer.Wait() // killed
	if got, err := f.Newest(t.Context(), db, "stock"); got != 3 || err != nil {
		t.Errorf("got newest %d, %v, want 3", got, err)
	}
	if err := write(t.Context(), db, f, 4); err != nil {
		t.Errorf("got %v after the writer was killed, want nil", err)
	}
	if got := written(t, db); len(got) != 2 || got[1] != 4 {
		t.Errorf("got %d written, want 3 and 4", got)
	}
}
