package fence

// What clients of HTTP need.

import (
	"net/http"
)

// SetHeader sets the header of r that carries the token.
func SetHeader(r *http.Request, token Token) {
	if r.Header == nil {
		r.Header = make(http.Header)
	}
	r.Header.Set(Header, FormatToken(token))
}

// Transport is an http.RoundTripper that sets the token's header on every request. Use a new Transport for each hold;
// they may share their Base.
//
//	client := &http.Client{Transport: &fence.Transport{Token: hold.Token()}}
type Transport struct {
	Token Token             // of the hold
	Base  http.RoundTripper // sends the requests; http.DefaultTransport if nil
	_     struct{}          // use field names, so that fields can be added
}

// RoundTrip sends a copy of r with the token, which replaces a token that r may carry, and returns Base's response. It
// sends nothing and returns ErrBadToken if Token is invalid. It is safe for concurrent use.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	base := t.Base
	if base == nil {
		base = http.DefaultTransport
	}
	if err := checkToken(t.Token); err != nil {
		if r.Body != nil {
			_ = r.Body.Close() // a RoundTripper must close the body, and returns the more useful error
		}
		return nil, err
	}
	r = r.Clone(r.Context()) // a RoundTripper must not change the caller's request
	SetHeader(r, t.Token)
	return base.RoundTrip(r)
}

// Refusal returns a *StaleError, with the request's path as its resource, if res is the response of HTTP to a stale
// token. It returns nil for every other response, including a 412 of the service itself. The caller still closes the
// body.
func Refusal(res *http.Response) error {
	if res.StatusCode != http.StatusPreconditionFailed {
		return nil
	}
	newest, err := ParseToken(res.Header.Get(NewestHeader))
	if err != nil {
		return nil //nolint:nilerr // without that header the response is the service's own
	}
	stale := &StaleError{Newest: newest}
	if res.Request != nil {
		stale.Resource = res.Request.URL.Path
		stale.Token, _ = ParseToken(res.Request.Header.Get(Header)) // zero if a transport has set it on a copy
	}
	return stale
}
