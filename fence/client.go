package fence

import (
	"net/http"
)

// SetHeader puts the token into a request that is about to be sent.
func SetHeader(r *http.Request, token Token) { r.Header.Set(Header, FormatToken(token)) }

// Transport is an http.RoundTripper that puts a token into every request that it passes on, for clients which make their requests
// themselves. It lasts as long as its hold: the next hold needs another one, while the transport below can be the same.
//
//	client := &http.Client{Transport: &fence.Transport{Token: hold.Token()}}
type Transport struct {
	Token Token             // of the hold under which the requests are made
	Base  http.RoundTripper // sends the requests; http.DefaultTransport if nil
	_     struct{}          // fields by name only, so that more can be added
}

// RoundTrip sends r with the token, in place of one that it may carry, and returns the answer of Base. It sends nothing, and returns ErrBadToken, if
// Token is none. It may be used by any number of goroutines.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	base := t.Base
	if base == nil {
		base = http.DefaultTransport
	}
	if err := checkToken(t.Token); err != nil {
		if r.Body != nil {
			_ = r.Body.Close() // as every RoundTripper must, and nobody is told how it went
		}
		return nil, err
	}
	r = r.Clone(r.Context()) // the caller's is not ours to change
	SetHeader(r, t.Token)
	return base.RoundTrip(r)
}

// Refusal returns a *StaleError, whose resource is the request's path, if an answer is that of HTTP to a token that is too small, and nil for every
// other, a 412 of the service's own included. The body is left as it is, for the caller to close.
func Refusal(res *http.Response) error {
	if res.StatusCode != http.StatusPreconditionFailed {
		return nil
	}
	newest, err := ParseToken(res.Header.Get(NewestHeader))
	if err != nil {
		return nil //nolint:nilerr // without that header the refusal is not the fence's
	}
	stale := &StaleError{Newest: newest}
	if res.Request != nil {
		stale.Resource = res.Request.URL.Path
		stale.Token, _ = ParseToken(res.Request.Header.Get(Header)) // zero if the transport below has set it
	}
	return stale
}
