package fence_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"

	"github.com/seed-a3166700/turnstile/fence"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// A file that is written under a lock: token 8 has been seen, so the holder that had token 7 comes too late.
func ExampleFile() {
	dir, err := os.MkdirTemp("", "fence")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	ctx := context.Background() // hold.Context(), so that a lost lock ends the wait
	report := fence.NewFile(filepath.Join(dir, "report"))

	fmt.Println(report.Write(ctx, 8, []byte("now"))) // hold.Token()
	fmt.Println(report.Write(ctx, 8, []byte("now, and more")))
	err = report.Write(ctx, 7, []byte("then"))
	fmt.Println(strings.ReplaceAll(err.Error(), dir, "."))
	// Output:
	// <nil>
	// <nil>
	// fence: the lock has passed to a later holder: token 7 for "./report" is older than 8
}

// A service that is written to by the holders of a lock, and two of them.
func ExampleHTTP() {
	service := httptest.NewServer(fence.HTTP(fence.NewGate(nil), nil, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "written")
	})))
	defer service.Close()

	for _, token := range []fence.Token{8, 7} {
		client := &http.Client{Transport: &fence.Transport{Token: token}}
		res, err := client.Post(service.URL+"/stock", "text/plain", strings.NewReader("10"))
		if err != nil {
			fmt.Println(err)
			return
		}
		body, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if err := fence.Refusal(res); err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Printf("%s\n", body)
	}
	// Output:
	// written
	// fence: the lock has passed to a later holder: token 7 for "/stock" is older than 8
}

// Work that is done by the holders of a lock, in one process.
func ExampleGate() {
	ctx := context.Background()
	gate := fence.NewGate(nil)
	for _, token := range []fence.Token{8, 7} {
		err := gate.Do(ctx, "stock", token, func(ctx context.Context) error {
			shown, _ := fence.FromContext(ctx)
			fmt.Println("let in with token", shown)
			return nil
		})
		if errors.Is(err, fence.ErrStale) {
			fmt.Println(err)
		}
	}
	// Output:
	// let in with token 8
	// fence: the lock has passed to a later holder: token 7 for "stock" is older than 8
}

// A znode that is written by the holders of a lock, through any session.
func ExampleNode() {
	ctx := context.Background()
	srv, err := zktest.Start() // your program connects to its ensemble
	if err != nil {
		fmt.Println(err)
		return
	}
	defer srv.Close()
	client, err := zk.Open(ctx, zk.Config{Servers: srv.Addr()})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	sess, err := client.Session(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}

	stock, err := fence.NewNode("/fences/stock", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = stock.Write(ctx, sess, 8, zk.CreateOp("/stock", []byte("10"), zk.Persistent))
	fmt.Println(err)
	_, err = stock.Write(ctx, sess, 7, zk.CreateOp("/late", []byte("9"), zk.Persistent))
	fmt.Println(err)
	// Output:
	// <nil>
	// fence: the lock has passed to a later holder: token 7 for "/fences/stock" is older than 8
}

// A table that is written by the holders of a lock: the token is checked in the transaction that writes.
func ExampleTable() {
	table, err := fence.NewTable(fence.PostgreSQL, "")
	if err != nil {
		fmt.Println(err)
		return
	}
	take := func(ctx context.Context, db *sql.DB, token fence.Token) error { // with hold.Token()
		return table.Do(ctx, db, "stock", token, func(tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, "UPDATE stock SET n = n - 1")
			return err
		})
	}
	_ = take
	fmt.Println(table.Schema())
	// Output:
	// CREATE TABLE IF NOT EXISTS turnstile_fence (resource VARCHAR(255) NOT NULL PRIMARY KEY, token BIGINT NOT NULL)
}
