// Package roundtrip sends HTTP requests to the instances of a registered service.
//
//	provider, err := registry.OpenProvider("users", discovery.ProviderConfig{})
//	...
//	client := &http.Client{Transport: &roundtrip.Transport{Provider: provider}}
//	resp, err := client.Get("http://users/list")
package roundtrip

// Transport, which picks an instance for each request and tells the provider how it went.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"

	"github.com/seed-a3166700/turnstile/discovery"
)

// Picker picks instances. A *discovery.Provider is one.
type Picker interface {
	// Pick returns an instance other than those of the given uses.
	Pick(ctx context.Context, except ...*discovery.Use) (*discovery.Use, error)
}

// Transport is an http.RoundTripper that replaces the scheme and the host of each request's URL by those of an instance
// that its Provider picks. The Host header stays as the caller set it. The instance counts as used until the response's
// body is closed.
//
// An instance has failed, which may eject it, if it cannot be reached, if it does not answer before the request's
// deadline, or if it answers 502, 503 or 504. A request that its caller cancels is no failure. After a failure to
// connect, the request goes to another instance, because nothing of it was sent. So it does after other failures of the
// connection if its method is GET, HEAD, OPTIONS or TRACE, or if it has an Idempotency-Key. In both cases its body must
// be readable again (http.Request.GetBody). Answers of a server are returned as they are.
//
// A Transport may be used by any number of goroutines.
type Transport struct {
	Provider Picker            // required
	Base     http.RoundTripper // sends the requests; http.DefaultTransport if nil
	Tries    int               // how many instances a request is sent to at most; 3 if zero
}

// RoundTrip implements http.RoundTripper. It returns discovery.ErrNoInstance if no instance may be used, and the error
// of the last instance if all that it tried failed.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if t.Provider == nil {
		closeBody(req)
		return nil, errors.New("roundtrip: Transport.Provider is nil; set it to a *discovery.Provider")
	}
	if req.Context().Err() != nil { // no instance is to blame
		closeBody(req)
		return nil, fmt.Errorf("roundtrip: %s: %w", req.URL.Host, context.Cause(req.Context()))
	}
	tries := t.Tries
	if tries == 0 {
		tries = 3
	}
	var (
		tried []*discovery.Use
		last  error
		body  = req.Body
	)
	for range max(tries, 1) {
		use, err := t.Provider.Pick(req.Context(), tried...)
		if err != nil {
			if body != nil {
				_ = body.Close()
			}
			if last != nil && errors.Is(err, discovery.ErrNoInstance) {
				return nil, last
			}
			return nil, fmt.Errorf("roundtrip: %s: %w", req.URL.Host, err)
		}
		tried = append(tried, use)
		resp, err := t.send(req, body, use)
		if err == nil {
			return resp, nil
		}
		last = err
		if req.Context().Err() != nil || !repeatable(req, err) {
			return nil, err
		}
		if body, err = again(req); err != nil {
			return nil, last
		}
	}
	if body != nil {
		_ = body.Close()
	}
	return nil, last
}

// send sends the request to one instance. It closes the body, as every RoundTripper does.
func (t *Transport) send(req *http.Request, body io.ReadCloser, use *discovery.Use) (*http.Response, error) {
	base := t.Base
	if base == nil {
		base = http.DefaultTransport
	}
	sent := req.Clone(req.Context())
	sent.Body = body
	sent.URL.Scheme = "http"
	if use.Instance.TLSPort != 0 {
		sent.URL.Scheme = "https"
	}
	sent.URL.Host = use.Instance.HostPort()
	if sent.Host == "" {
		sent.Host = req.URL.Host
	}
	resp, err := base.RoundTrip(sent)
	if err != nil {
		failure := err
		if errors.Is(req.Context().Err(), context.Canceled) {
			failure = nil // the caller's doing
		}
		use.Done(failure)
		return nil, fmt.Errorf("roundtrip: %s at %s: %w", use.Instance.Service, sent.URL.Host, err)
	}
	var failure error
	switch resp.StatusCode {
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		failure = errors.New(resp.Status)
	}
	resp.Body = &used{ReadCloser: resp.Body, done: sync.OnceFunc(func() { use.Done(failure) })}
	if w, ok := resp.Body.(*used).ReadCloser.(io.Writer); ok { // after a change of protocols
		resp.Body = &usedConn{used: resp.Body.(*used), Writer: w}
	}
	return resp, nil
}

// repeatable reports whether the request may be sent to another instance after this error.
func repeatable(req *http.Request, err error) bool {
	if req.Body != nil && req.Body != http.NoBody && req.GetBody == nil {
		return false
	}
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		return true // nothing was sent
	}
	switch req.Method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return true
	}
	_, has := req.Header["Idempotency-Key"]
	return has
}

// again returns the request's body, to be read once more.
func again(req *http.Request) (io.ReadCloser, error) {
	if req.Body == nil || req.Body == http.NoBody {
		return req.Body, nil
	}
	return req.GetBody()
}

func closeBody(req *http.Request) {
	if req.Body != nil {
		_ = req.Body.Close()
	}
}

// used is the body of a response. Closing it ends the use of the instance.
type used struct {
	io.ReadCloser
	done func()
}

func (u *used) Close() error {
	defer u.done()
	return u.ReadCloser.Close()
}

// usedConn is used, for a connection that has changed to another protocol.
type usedConn struct {
	*used
	io.Writer
}
