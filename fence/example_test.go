package fence_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/seed-a3166700/turnstile/fence"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// The fence has seen token 8, so it refuses a late write of the holder that had token 7.
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

// A service behind a gate refuses the second client, whose token is older.
func ExampleHTTP() {
	write := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "written") })
	service := httptest.NewServer(fence.HTTP(fence.NewGate(nil), nil, write))
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

// A gate in front of work in this process: token 7 comes after token 8, so its work does not run.
func ExampleGate() {
	gate := fence.NewGate(nil)
	for _, token := range []fence.Token{8, 7} {
		err := gate.Do(context.Background(), "stock", token, func(ctx context.Context) error {
			token, _ := fence.FromContext(ctx)
			fmt.Println("working under token", token)
			return nil
		})
		fmt.Println(err)
	}
	// Output:
	// working under token 8
	// <nil>
	// fence: the lock has passed to a later holder: token 7 for "stock" is older than 8
}

// A transaction that is committed only if the fence admits its token.
func ExampleTable() {
	stock, err := fence.NewTable(fence.PostgreSQL, "app.fence")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(stock.Schema())
	// With a *sql.DB and a hold:
	//
	//	err = stock.Do(ctx, db, "stock", hold.Token(), func(tx *sql.Tx) error {
	//		_, err := tx.ExecContext(ctx, "UPDATE stock SET amount = 10")
	//		return err
	//	})

	// Output:
	// CREATE TABLE IF NOT EXISTS app.fence (resource VARCHAR(255) NOT NULL PRIMARY KEY, token BIGINT NOT NULL)
}

// A znode is the fence of writes to the same ensemble.
func ExampleNode() {
	ctx := context.Background()
	srv, err := zktest.Start()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer srv.Close()
	client, err := zk.Open(ctx, srv.Config(10*time.Second))
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
	for _, token := range []fence.Token{8, 7} { // hold.Token()
		_, err := stock.Write(ctx, sess, token, zk.CreateOp(fmt.Sprint("/stock-", token), nil, zk.Persistent))
		fmt.Println(err)
	}
	// Output:
	// <nil>
	// fence: the lock has passed to a later holder: token 7 for "/fences/stock" is older than 8
}
