// Command fenced writes a number to a service, under a lock. The service refuses it if the lock has meanwhile passed to somebody else, so a
// worker that was stopped for too long can do no harm.
//
// Try it with a server on 127.0.0.1:2181, each line in a shell of its own:
//
//	go run ./examples/fenced serve
//	go run ./examples/fenced write 1       # has the lock; stop it with Ctrl-Z instead of pressing Enter
//	go run ./examples/fenced write 2       # gets the lock when the first one's session has expired; press Enter
//
// Then "fg" the first and press Enter: its write is late, and is refused.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync"
	"time"

	"github.com/seed-a3166700/turnstile/fence"
	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zk"
)

const service = "127.0.0.1:8037"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, args []string) error {
	switch {
	case len(args) == 1 && args[0] == "serve":
		return serve(ctx)
	case len(args) == 2 && args[0] == "write":
		return write(ctx, "127.0.0.1:2181", "http://"+service, args[1], os.Stdin, os.Stdout)
	default:
		return errors.New("say fenced serve, or fenced write TEXT")
	}
}

func serve(ctx context.Context) error {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", service)
	if err != nil {
		return err
	}
	srv := &http.Server{Handler: newStock(), ReadHeaderTimeout: time.Minute}
	stop := context.AfterFunc(ctx, func() { _ = srv.Close() })
	defer stop()
	if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// stock is a service that keeps one text.
type stock struct {
	mu   sync.Mutex // guards text
	text string
}

// newStock returns the service, behind a fence.
func newStock() http.Handler { return fence.HTTP(fence.NewGate(nil), nil, &stock{}) }

func (s *stock) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Method == http.MethodPut {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		s.text = string(text)
	}
	fmt.Fprint(w, s.text)
}

// write takes the lock, waits for a line of in, and writes text to the service at url.
func write(ctx context.Context, servers, url, text string, in io.Reader, out io.Writer) error {
	client, err := zk.Open(ctx, zk.Config{Servers: servers, Timeout: 4 * time.Second})
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
	defer hold.Unlock(context.WithoutCancel(ctx))

	fmt.Fprintf(out, "has the lock, token %d; press Enter to write\n", hold.Token())
	if _, err := bufio.NewReader(in).ReadString('\n'); err != nil {
		return err
	}
	// A careful worker would look at hold.Context() once more, and could be stopped right after that. So it makes no difference to what
	// the service must be ready for, and this one does not look.
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, url, strings.NewReader(text))
	if err != nil {
		return err
	}
	fence.SetHeader(req, int64(hold.Token()))
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", res.Status, strings.TrimSpace(string(answer)))
	}
	fmt.Fprintf(out, "wrote %s\n", answer)
	return nil
}
