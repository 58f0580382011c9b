// Command fenced writes a text to a service under a lock. The service refuses the text if another worker has acquired
// the lock in the meantime, so a worker that was stopped for too long can do no harm.
//
// Try it with a server on 127.0.0.1:2181 (turnstile serve), each command in a shell of its own:
//
//	go run ./examples/fenced serve
//	go run ./examples/fenced write first      # has the lock; press Ctrl-Z and not Enter
//	go run ./examples/fenced write second     # gets the lock when the first one's session has expired; press Enter
//
// Then type "fg" in the first worker's shell and press Enter: its write is late, and the service refuses it. The text
// that the service has is at http://127.0.0.1:8037/.
package main

// The service and its client.

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/seed-a3166700/turnstile/fence"
	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zk"
)

const address = "127.0.0.1:8037"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	if err != nil && !errors.Is(err, context.Cause(ctx)) { // to be stopped is no failure
		log.Fatal(err)
	}
	stop()
}

func run(ctx context.Context, args []string) error {
	switch {
	case len(args) == 1 && args[0] == "serve":
		return serve(ctx)
	case len(args) == 2 && args[0] == "write":
		return write(ctx, "127.0.0.1:2181", "http://"+address, args[1], os.Stdin, os.Stdout)
	default:
		return errors.New("usage: fenced serve | fenced write TEXT")
	}
}

func serve(ctx context.Context) error {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	srv := &http.Server{Handler: newBoard(), ReadHeaderTimeout: time.Minute}
	stop := context.AfterFunc(ctx, func() { _ = srv.Close() })
	defer stop()
	if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// newBoard returns a service that keeps one text. Any client may read it. To write it, a client sends the lock's token.
func newBoard() http.Handler {
	b := &board{}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /", b.read)
	// The text is kept in memory, so the largest token can be, too. A service with durable data gives the gate a store.
	gate := fence.NewGate(nil)
	mux.Handle("PUT /", fence.HTTP(gate, nil, http.HandlerFunc(b.write)))
	return mux
}

type board struct {
	mu   sync.Mutex // guards text
	text string
}

func (b *board) read(w http.ResponseWriter, _ *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	fmt.Fprintln(w, b.text)
}

func (b *board) write(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.text = string(text)
}

// write takes the lock, waits for a line of in, and writes text to the service at url.
func write(ctx context.Context, servers, url, text string, in io.Reader, out io.Writer) error {
	client, err := zk.Open(ctx, zk.Config{Servers: servers, Timeout: 10 * time.Second, Logger: slog.Default()})
	if err != nil {
		return err
	}
	defer client.Close()
	m, err := lock.NewMutex(client, "/locks/fenced", lock.Config{Label: "fenced"})
	if err != nil {
		return err
	}
	hold, err := m.Lock(ctx)
	if err != nil {
		return err
	}
	defer hold.Unlock()

	fmt.Fprintf(out, "has the lock, token %d; press Enter to write\n", hold.Token())
	if _, err := bufio.NewReader(in).ReadString('\n'); err != nil {
		return err
	}
	// A careful worker would check hold.Context() here, but could be stopped right after the check. Only the service
	// can refuse a late write, so this worker does not check.
	if err := put(ctx, url, text, hold.Token()); err != nil {
		return err
	}
	fmt.Fprintln(out, "wrote", text)
	return nil
}

// put sends text to the service with the lock's token. It returns fence.ErrStale if another client has acquired the
// lock since.
func put(ctx context.Context, url, text string, token lock.Token) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, url, strings.NewReader(text))
	if err != nil {
		return err
	}
	fence.SetHeader(req, token)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if err := fence.Refusal(res); err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("the service says %s", res.Status)
	}
	return nil
}
