package fence_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/fence"
)

// put sends one request with the given tokens as its header. It returns the status code and the newest token of the
// response.
func put(t *testing.T, url string, body io.Reader, tokens ...string) (code int, newest string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, url, body)
	if err != nil {
		t.Fatal(err)
	}
	for _, token := range tokens {
		req.Header.Add(fence.Header, token)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, res.Body)
	return res.StatusCode, res.Header.Get(fence.NewestHeader)
}

// Promise: 12
func TestRequestsAreAnsweredByTheirToken(t *testing.T) {
	t.Parallel()
	var seen []fence.Token
	srv := httptest.NewServer(fence.HTTP(fence.NewGate(nil), func(r *http.Request) string { return r.URL.Path },
		http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			token, _ := fence.FromContext(r.Context())
			seen = append(seen, token)
		})))
	defer srv.Close()
	for _, c := range []struct {
		path   string
		tokens []string
		code   int
		newest string
	}{
		{"/a", nil, http.StatusPreconditionRequired, ""},
		{"/a", []string{""}, http.StatusBadRequest, ""},
		{"/a", []string{"x"}, http.StatusBadRequest, ""},
		{"/a", []string{"5", "6"}, http.StatusBadRequest, ""},
		{"/a", []string{"5"}, http.StatusOK, ""},
		{"/a", []string{"5"}, http.StatusOK, ""},
		{"/a", []string{"9"}, http.StatusOK, ""},
		{"/a", []string{"8"}, http.StatusPreconditionFailed, "9"},
		{"/b", []string{"8"}, http.StatusOK, ""},
	} {
		if code, newest := put(t, srv.URL+c.path, nil, c.tokens...); code != c.code || newest != c.newest {
			t.Errorf("%s with tokens %q: got %d, newest %q, want %d, %q",
				c.path, c.tokens, code, newest, c.code, c.newest)
		}
	}
	if len(seen) != 4 {
		t.Errorf("got tokens %d in the handler, want 4", seen)
	}
}

// Promise: 12
func TestGateThatCannotRememberAnswersServiceUnavailable(t *testing.T) {
	t.Parallel()
	g := fence.NewGate(func(context.Context, string, fence.Token) error { return errors.New("disk full of secrets") })
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodPut, "/", nil)
	fence.SetHeader(r, 5)
	fence.HTTP(g, nil, http.NotFoundHandler()).ServeHTTP(w, r)
	if w.Code != http.StatusServiceUnavailable || strings.Contains(w.Body.String(), "secrets") {
		t.Errorf("got %d %s, want 503 without the store's error", w.Code, w.Body)
	}
}

// A holder that is stopped while it sends its request does not keep out the next holder.
//
// Promise: 12
func TestRequestThatIsStoppedInItsMiddleIsCutOffByALargerToken(t *testing.T) {
	t.Parallel()
	reading := make(chan struct{})
	ended := make(chan error, 1)
	next := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if token, _ := fence.FromContext(r.Context()); token == 6 {
			return
		}
		close(reading)
		_, err := io.ReadAll(r.Body)
		ended <- err
		if !errors.Is(context.Cause(r.Context()), fence.ErrStale) {
			t.Errorf("got cause %v in the request that was cut off, want ErrStale", context.Cause(r.Context()))
		}
		w.WriteHeader(http.StatusInternalServerError)
	})
	srv := httptest.NewServer(fence.HTTP(fence.NewGate(nil), nil, next))
	defer srv.Close()
	body, stopped := io.Pipe()
	defer stopped.Close()
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, srv.URL, body)
		if err != nil {
			t.Error(err)
			return
		}
		fence.SetHeader(req, 5)
		if res, err := http.DefaultClient.Do(req); err == nil { // an error is fine, too: the connection was cut
			res.Body.Close()
		}
	}()
	<-reading
	if code, _ := put(t, srv.URL, nil, "6"); code != http.StatusOK {
		t.Errorf("next holder: got %d, want 200", code)
	}
	if err := <-ended; err == nil {
		t.Error("got the whole body of the request that was cut off, want an error")
	}
	stopped.Close()
	<-sent
}

// A holder that is stopped while it receives its response does not keep out the next holder. Afterwards the
// connection, which may be a proxy's, still serves other clients' requests.
//
// Promise: 12
func TestAnswerThatNobodyReadsIsCutOffByALargerToken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := fence.NewGate(nil)
		w := &stuckWriter{header: make(http.Header), writing: make(chan struct{})}
		w.limit = sync.NewCond(&w.mu)
		done := make(chan struct{})
		go func() {
			defer close(done)
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPut, "/", nil)
			fence.SetHeader(r, 5)
			fence.HTTP(g, nil, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if _, err := w.Write([]byte("much")); !errors.Is(err, os.ErrDeadlineExceeded) {
					t.Errorf("got %v, want nil", err)
				}
			})).ServeHTTP(w, r)
		}()
		<-w.writing
		if err := g.Do(t.Context(), "", 6, nothing); err != nil {
			t.Error(err)
		}
		<-done
		if w.write != (time.Time{}) {
			t.Errorf("got write deadline %v after the request, want none", w.write)
		}
	})
}

// stuckWriter is a response that no client reads: a write waits until the deadline.
type stuckWriter struct {
	header  http.Header
	writing chan struct{} // closed by the first write

	mu    sync.Mutex // guards write
	limit *sync.Cond // signals that write has changed
	write time.Time  // the deadline
}

func (w *stuckWriter) Header() http.Header             { return w.header }
func (w *stuckWriter) WriteHeader(int)                 {}
func (w *stuckWriter) SetReadDeadline(time.Time) error { return nil }

func (w *stuckWriter) SetWriteDeadline(at time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.write = at
	w.limit.Broadcast()
	return nil
}

func (w *stuckWriter) Write([]byte) (int, error) {
	close(w.writing)
	w.mu.Lock()
	for w.write.IsZero() {
		w.limit.Wait()
	}
	deadline := w.write
	w.mu.Unlock()
	<-time.After(time.Until(deadline))
	return 0, os.ErrDeadlineExceeded
}
