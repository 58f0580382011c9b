package roundtrip_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/discovery"
	"github.com/seed-a3166700/turnstile/discovery/roundtrip"
)

// hosts returns a picker that knows these host:ports.
func hosts(t *testing.T, s discovery.Strategy, all ...string) *discovery.Fixed {
	t.Helper()
	var instances []discovery.Instance
	for i, hostPort := range all {
		host, port, err := net.SplitHostPort(hostPort)
		if err != nil {
			t.Fatal(err)
		}
		n, err := strconv.Atoi(port)
		if err != nil {
			t.Fatal(err)
		}
		instances = append(instances, discovery.Instance{Service: "s", ID: strconv.Itoa(i), Address: host, Port: n})
	}
	f, err := discovery.NewFixed(instances, discovery.ProviderConfig{Strategy: s})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func serve(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	return u.Host
}

// unreachable refuses connections. A port that was free a moment ago may belong to another test's server by now.
const unreachable = "127.0.0.1:1"

// through returns a Transport with connections of its own. The end of any test's server closes the default one's.
func through(t *testing.T, p roundtrip.Picker) *roundtrip.Transport {
	t.Helper()
	tr := &http.Transport{}
	t.Cleanup(tr.CloseIdleConnections)
	return &roundtrip.Transport{Base: tr, Provider: p}
}

func send(t *testing.T, tr *roundtrip.Transport, method, body string) (*http.Response, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://s/path?q=1", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return tr.RoundTrip(req)
}

func TestRequestKeepsItsPathBodyAndHost(t *testing.T) {
	t.Parallel()
	at := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = io.WriteString(w, r.Method+" "+r.Host+r.RequestURI+" "+string(body))
	})
	resp, err := send(t, through(t, hosts(t, discovery.RoundRobin, at)), http.MethodPost, "hello")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil || string(got) != "POST s/path?q=1 hello" {
		t.Errorf("%s, %v", got, err)
	}
}

// Promise: 17
func TestInstanceThatCannotBeReachedIsPassedOver(t *testing.T) {
	t.Parallel()
	at := serve(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) })
	tr := through(t, hosts(t, discovery.RoundRobin, unreachable, at, unreachable))
	for range 3 { // nothing was sent, so even a POST goes on
		resp, err := send(t, tr, http.MethodPost, "hello")
		if err != nil {
			t.Fatal(err)
		}
		got, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if string(got) != "hello" {
			t.Errorf("the second instance got %q", got)
		}
	}
}

// Promise: 17
func TestPostThatMayHaveBeenDoneIsNotRepeated(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	broken := func(w http.ResponseWriter, _ *http.Request) {
		calls.Add(1)
		conn, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			_ = conn.Close()
		}
	}
	tr := through(t, hosts(t, discovery.RoundRobin, serve(t, broken), serve(t, broken)))
	if resp, err := send(t, tr, http.MethodPost, "x"); err == nil {
		_ = resp.Body.Close()
		t.Error("no error")
	}
	if n := calls.Load(); n != 1 {
		t.Errorf("a POST was sent %d times", n)
	}
	calls.Store(0)
	if resp, err := send(t, tr, http.MethodGet, ""); err == nil {
		_ = resp.Body.Close()
		t.Error("no error")
	}
	if n := calls.Load(); n != 2 {
		t.Errorf("a GET was sent %d times, to 2 instances", n)
	}
}

func TestAllInstancesFail(t *testing.T) {
	t.Parallel()
	tr := through(t, hosts(t, discovery.RoundRobin, unreachable, unreachable))
	_, err := send(t, tr, http.MethodGet, "") //nolint:bodyclose // none
	if _, ok := errors.AsType[*net.OpError](err); !ok {
		t.Errorf("%v", err)
	}
	tr = through(t, hosts(t, discovery.RoundRobin))
	if _, err := send(t, tr, http.MethodGet, ""); !errors.Is(err, discovery.ErrNoInstance) { //nolint:bodyclose // none
		t.Errorf("%v instead of ErrNoInstance", err)
	}
}

// Promise: 17
func TestInstanceIsUsedUntilTheBodyIsClosed(t *testing.T) {
	t.Parallel()
	ok := func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Context().Value(http.LocalAddrContextKey).(net.Addr).String())
	}
	tr := through(t, hosts(t, discovery.LeastOutstanding, serve(t, ok), serve(t, ok)))
	open := map[string]*http.Response{}
	for range 2 {
		resp, err := send(t, tr, http.MethodGet, "") //nolint:bodyclose // below
		if err != nil {
			t.Fatal(err)
		}
		where, _ := io.ReadAll(resp.Body)
		open[string(where)] = resp
	}
	if len(open) != 2 {
		t.Fatal("two open requests went to the same instance")
	}
	for where, resp := range open {
		_ = resp.Body.Close()
		next, err := send(t, tr, http.MethodGet, "")
		if err != nil {
			t.Fatal(err)
		}
		got, _ := io.ReadAll(next.Body)
		if string(got) != where {
			t.Errorf("went to %s instead of %s, which is idle", got, where)
		}
		_ = next.Body.Close()
		return
	}
}

// Promise: 17
func TestServerThatAnswers503IsEjected(t *testing.T) {
	t.Parallel()
	var good, bad atomic.Int32
	tr := through(t, hosts(t, discovery.RoundRobin,
		serve(t, func(http.ResponseWriter, *http.Request) { good.Add(1) }),
		serve(t, func(w http.ResponseWriter, _ *http.Request) {
			bad.Add(1)
			w.WriteHeader(http.StatusServiceUnavailable)
		}),
	))
	for range 20 {
		resp, err := send(t, tr, http.MethodGet, "")
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
	}
	if good.Load() != 18 || bad.Load() != 2 {
		t.Errorf("%d requests to the good instance, %d to the bad one", good.Load(), bad.Load())
	}
}

// Promise: 17
func TestCancelledRequestDoesNotBlameTheInstance(t *testing.T) {
	t.Parallel()
	arrived := make(chan struct{}, 10)
	slow := func(_ http.ResponseWriter, r *http.Request) { arrived <- struct{}{}; <-r.Context().Done() }
	p := hosts(t, discovery.RoundRobin, serve(t, slow), serve(t, slow))
	tr := through(t, p)
	for range 6 {
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-arrived; cancel() }()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://s/", nil)
		if err != nil {
			t.Fatal(err)
		}
		if resp, err := tr.RoundTrip(req); err == nil {
			_ = resp.Body.Close()
			t.Fatal("no error")
		}
	}
	first, err := p.Pick(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Pick(t.Context(), first); err != nil {
		t.Errorf("an instance is out: %v", err)
	}
}

// base is a http.RoundTripper.
type base func(*http.Request) (*http.Response, error)

func (f base) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

func answer(req *http.Request) *http.Response {
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: req}
}

// Promise: 17
func TestInstanceThatDoesNotAnswerInTimeHasFailed(t *testing.T) {
	t.Parallel()
	p := hosts(t, discovery.RoundRobin, "slow:1", "good:1")
	slow := 0
	tr := &roundtrip.Transport{Provider: p, Base: base(func(req *http.Request) (*http.Response, error) {
		if req.URL.Host == "slow:1" {
			slow++
			<-req.Context().Done()
			return nil, req.Context().Err()
		}
		return answer(req), nil
	})}
	for slow < 2 {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://s/", nil)
		if err != nil {
			t.Fatal(err)
		}
		if resp, err := tr.RoundTrip(req); err == nil {
			_ = resp.Body.Close()
		} else if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		cancel()
	}
	for range 4 {
		if use, err := p.Pick(t.Context()); err != nil || use.Instance.Address != "good" {
			t.Fatalf("the instance that does not answer is still used: %v", err)
		}
	}
}

// Promise: 17
func TestRequestWhoseContextHasEndedIsNotSent(t *testing.T) {
	t.Parallel()
	tr := &roundtrip.Transport{
		Provider: hosts(t, discovery.RoundRobin, "a:1", "b:1"),
		Base: base(func(req *http.Request) (*http.Response, error) {
			t.Errorf("sent to %s", req.URL.Host)
			return nil, req.Context().Err()
		}),
	}
	ctx, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	body := &counted{Reader: strings.NewReader("x")}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://s/", body)
	if err != nil {
		t.Fatal(err)
	}
	_, err = tr.RoundTrip(req) //nolint:bodyclose // none
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	if !body.closed {
		t.Error("the body is open")
	}
}

// counted is a request's body, which knows whether it was closed.
type counted struct {
	io.Reader
	closed bool
}

func (c *counted) Close() error { c.closed = true; return nil }

// TestRequestStaysAsItIsAndAllBodiesAreClosed: http.RoundTripper demands both, whatever becomes of the request.
//
// Promise: 17
func TestRequestStaysAsItIsAndAllBodiesAreClosed(t *testing.T) {
	t.Parallel()
	broken := errors.New("the connection broke")
	dial := &net.OpError{Op: "dial", Err: broken}
	for _, test := range []struct {
		name, method string
		header       string
		results      []error // of the instances, in order
		sent         int
		want         error
		unreadable   bool // the body cannot be read again
		failsAgain   bool // GetBody fails
		none         bool // there are no instances
	}{
		{name: "answer", method: http.MethodPost, results: []error{nil}, sent: 1},
		{name: "no instance", method: http.MethodPost, none: true, want: discovery.ErrNoInstance},
		{name: "dial fails", method: http.MethodPost, results: []error{dial, nil}, sent: 2},
		{name: "breaks", method: http.MethodPost, results: []error{broken}, sent: 1, want: broken},
		{
			name: "idempotent", method: http.MethodPost, header: "Idempotency-Key",
			results: []error{broken, nil}, sent: 2,
		},
		{name: "put", method: http.MethodPut, results: []error{broken}, sent: 1, want: broken},
		{name: "trace", method: http.MethodTrace, results: []error{broken, nil}, sent: 2},
		{name: "all break", method: http.MethodGet, results: []error{broken, dial, broken}, sent: 3, want: broken},
		{name: "unreadable", method: http.MethodGet, unreadable: true, results: []error{dial}, sent: 1, want: broken},
		{name: "fails again", method: http.MethodGet, failsAgain: true, results: []error{dial}, sent: 1, want: broken},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var bodies []*counted
			body := func() (io.ReadCloser, error) {
				bodies = append(bodies, &counted{Reader: strings.NewReader("hello")})
				return bodies[len(bodies)-1], nil
			}
			first, _ := body()
			req, err := http.NewRequestWithContext(t.Context(), test.method, "http://s:99/path?q=1", first)
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case test.failsAgain:
				req.GetBody = func() (io.ReadCloser, error) { return nil, errors.New("cannot be read again") }
			case !test.unreadable:
				req.GetBody = body
			}
			if test.header != "" {
				req.Header.Set(test.header, "1")
			}
			var all []string
			if !test.none {
				all = []string{"a:1", "b:1", "c:1", "d:1"}
			}
			before := fmt.Sprint(req.URL, req.Host, req.Header, req.Method)
			sent := 0
			tr := &roundtrip.Transport{
				Provider: hosts(t, discovery.RoundRobin, all...),
				Base: base(func(r *http.Request) (*http.Response, error) {
					if got, _ := io.ReadAll(r.Body); string(got) != "hello" {
						t.Errorf("attempt %d sends %q", sent, got)
					}
					_ = r.Body.Close()
					r.Header.Set("Changed", "by the next transport")
					result := test.results[sent]
					sent++
					return answer(r), result
				}),
			}
			resp, err := tr.RoundTrip(req)
			if !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
			if err == nil {
				_ = resp.Body.Close()
			}
			if sent != test.sent {
				t.Errorf("sent %d times, want %d", sent, test.sent)
			}
			for i, b := range bodies {
				if !b.closed {
					t.Errorf("body %d of %d is open", i, len(bodies))
				}
			}
			if after := fmt.Sprint(req.URL, req.Host, req.Header, req.Method); after != before || req.Body != first {
				t.Errorf("got %s, want %s", after, before)
			}
		})
	}
}

func TestRequestGoesToTheInstance(t *testing.T) {
	t.Parallel()
	p, err := discovery.NewFixed(
		[]discovery.Instance{{Service: "s", ID: "1", Address: "::1", Port: 1, TLSPort: 2}}, discovery.ProviderConfig{})
	if err != nil {
		t.Fatal(err)
	}
	tr := &roundtrip.Transport{Provider: p, Base: base(func(req *http.Request) (*http.Response, error) {
		if got := req.URL.String(); got != "https://[::1]:2/path" || req.Host != "s" {
			t.Errorf("sent to %s for %s", got, req.Host)
		}
		return answer(req), nil
	})}
	for _, host := range []string{"s", ""} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://s/path", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = host
		resp, err := tr.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
	}
}

func TestAnswersOfGatewaysAreFailures(t *testing.T) {
	t.Parallel()
	for code, failure := range map[int]bool{
		http.StatusOK: false, http.StatusNotFound: false, http.StatusInternalServerError: false,
		http.StatusBadGateway: true, http.StatusServiceUnavailable: true, http.StatusGatewayTimeout: true,
	} {
		p := hosts(t, discovery.Sticky, "a:1", "b:1")
		sent := map[string]bool{}
		tr := &roundtrip.Transport{Provider: p, Base: base(func(req *http.Request) (*http.Response, error) {
			sent[req.URL.Host] = true
			resp := answer(req)
			resp.StatusCode = code
			return resp, nil
		})}
		for range 4 {
			resp, err := send(t, tr, http.MethodGet, "")
			if err != nil || resp.StatusCode != code {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
		}
		if (len(sent) > 1) != failure {
			t.Errorf("status %d: sent to %v", code, sent)
		}
	}
}

func TestCancelledRequestIsNotSentAgain(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	sent := 0
	tr := &roundtrip.Transport{
		Provider: hosts(t, discovery.RoundRobin, "a:1", "b:1"),
		Base: base(func(req *http.Request) (*http.Response, error) {
			sent++
			cancel()
			return nil, req.Context().Err()
		}),
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://s/", nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = tr.RoundTrip(req) //nolint:bodyclose // none
	if !errors.Is(err, context.Canceled) || sent != 1 {
		t.Errorf("sent %d times; %v", sent, err)
	}
}

// conn is the body of a response that changes the protocol.
type conn struct {
	io.ReadCloser
	strings.Builder
}

func TestProtocolsCanBeChanged(t *testing.T) {
	t.Parallel()
	c := &conn{ReadCloser: http.NoBody}
	tr := &roundtrip.Transport{
		Provider: hosts(t, discovery.RoundRobin, "a:1"),
		Base: base(func(req *http.Request) (*http.Response, error) {
			resp := answer(req)
			resp.StatusCode, resp.Body = http.StatusSwitchingProtocols, c
			return resp, nil
		}),
	}
	resp, err := send(t, tr, http.MethodGet, "")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	w, ok := resp.Body.(io.Writer)
	if !ok {
		t.Fatal("the body is no connection any more")
	}
	if _, err := io.WriteString(w, "hello"); err != nil || c.String() != "hello" {
		t.Errorf("%s, %v", c.String(), err)
	}
}
