package fence_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/seed-a3166700/turnstile/fence"
)

// Promise: 12
func TestClientShowsItsTokenAndKnowsARefusal(t *testing.T) {
	t.Parallel()
	next := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("If-Match") != "" {
			w.WriteHeader(http.StatusPreconditionFailed) // the service's own refusal
		}
	})
	srv := httptest.NewServer(fence.HTTP(fence.NewGate(nil), nil, next))
	defer srv.Close()
	send := func(token fence.Token, etag string) (int, error) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, srv.URL+"/stock", strings.NewReader("10"))
		if err != nil {
			t.Fatal(err)
		}
		if etag != "" {
			req.Header.Set("If-Match", etag)
		}
		client := &http.Client{Transport: &fence.Transport{Token: token}}
		res, err := client.Do(req)
		if err != nil {
			return 0, err
		}
		defer res.Body.Close()
		if req.Header.Get(fence.Header) != "" {
			t.Error("got a token in the caller's own request, want none")
		}
		return res.StatusCode, fence.Refusal(res)
	}
	if code, err := send(7, ""); code != http.StatusOK || err != nil {
		t.Errorf("got %d, %v, want 200", code, err)
	}
	if code, err := send(7, "x"); code != http.StatusPreconditionFailed || err != nil {
		t.Errorf("the service's own refusal: got %d, %v, want 412 without an error", code, err)
	}
	_, err := send(6, "")
	wantStale(t, err, 6, 7)
	if stale, ok := errors.AsType[*fence.StaleError](err); ok && stale.Resource != "/stock" {
		t.Errorf("got resource %q, want /stock", stale.Resource)
	}
	if _, err := send(0, ""); !errors.Is(err, fence.ErrBadToken) {
		t.Errorf("token 0: got %v, want ErrBadToken", err)
	}
}

// The transport replaces a token that the request already carries, such as a request that is passed on.
func TestTransportReplacesAnotherToken(t *testing.T) {
	t.Parallel()
	var got []string
	base := roundTrip(func(r *http.Request) (*http.Response, error) {
		got = r.Header.Values(fence.Header)
		return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: r}, nil
	})
	req := httptest.NewRequest(http.MethodPut, "http://stock/", nil)
	fence.SetHeader(req, 5)
	res, err := (&fence.Transport{Token: 6, Base: base}).RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if len(got) != 1 || got[0] != "6" {
		t.Errorf("sent tokens %q, want 6", got)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestRequestWithoutHeadersGetsTheToken(t *testing.T) {
	t.Parallel()
	r := &http.Request{URL: &url.URL{Scheme: "http", Host: "x"}}
	sent := ""
	transport := &fence.Transport{Token: 5, Base: roundTrip(func(r *http.Request) (*http.Response, error) {
		sent = r.Header.Get(fence.Header)
		return &http.Response{Body: http.NoBody}, nil
	})}
	res, err := transport.RoundTrip(r)
	if err != nil || sent != "5" || r.Header != nil {
		t.Errorf("got %v, token %q and the caller's headers %v, want 5 in a copy", err, sent, r.Header)
	}
	_ = res.Body.Close()
	if fence.SetHeader(r, 6); r.Header.Get(fence.Header) != "6" {
		t.Errorf("got headers %v, want the token 6", r.Header)
	}
}
