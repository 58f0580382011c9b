package dashboard

// Signing in with OpenID Connect.

import (
	"cmp"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

const (
	signedInPath = "/signed-in" // to which an issuer sends browsers back

	beginCookie  = "turnstile_begin"
	viewerCookie = "turnstile_viewer"

	beginTime  = 10 * time.Minute // for a sign-in at the issuer
	viewTime   = 8 * time.Hour    // after which a viewer signs in again
	issuerTime = 10 * time.Second // for an answer of the issuer

	maxIssuer = 1 << 20 // bytes of an answer of the issuer
	maxAsking = 8       // requests to the issuer at the same time
	maxTo     = 1000    // bytes of the address of a page to come back to
)

// OIDCConfig says which issuer tells who a viewer is, and which of its users may see the pages.
type OIDCConfig struct {
	Issuer   string  // its URL
	Client   string  // the id under which it knows the dashboard
	Secret   string  // of that client; "" if it has none
	Redirect string  // the URL by which browsers reach the dashboard's /signed-in
	Allow    []Claim // a viewer has one of them

	// Complain is told of sign-ins that fail, not of each if there are many.
	Complain func(format string, args ...any)
}

// Claim is something that an issuer says of a user: such as that groups has the value ops. A list has all its values.
type Claim struct{ Name, Value string }

// OIDC signs viewers in with OpenID Connect: the code flow with PKCE. What it must remember of a sign-in, and of a
// viewer, is in cookies that only this process can read or make. Its methods may be called from several goroutines.
type OIDC struct {
	cfg      OIDCConfig
	refusals refusals
	base     string // what comes before the paths of the dashboard, in a browser
	host     string // the name in it
	path     string // the path in it, with a slash at the end
	secure   bool   // browsers reach it by TLS alone
	client   *http.Client
	seal     cipher.AEAD
	asking   chan struct{} // one is in it for each sign-in that asks the issuer
	provider chan *oidc.Provider
}

// NewOIDC checks the configuration. It does not ask the issuer: that is done for the first sign-in.
func NewOIDC(cfg OIDCConfig) (*OIDC, error) {
	if err := checkIssuer(cfg.Issuer); err != nil {
		return nil, err
	}
	redirect, err := url.Parse(cfg.Redirect)
	switch {
	case err != nil || !safe(redirect) || redirect.RawQuery != "" || redirect.Fragment != "":
		return nil, fmt.Errorf("the redirect must be an https URL that browsers reach this dashboard by, "+
			"such as https://locks.example.com%s: %q", signedInPath, cfg.Redirect)
	case !strings.HasSuffix(redirect.Path, signedInPath):
		return nil, fmt.Errorf("the path of the redirect must end with %s: %q", signedInPath, cfg.Redirect)
	case cfg.Client == "":
		return nil, errors.New("the issuer must know this dashboard by a client id")
	case len(cfg.Allow) == 0:
		return nil, errors.New("it must be said who of the issuer's users may see the pages, by a claim of theirs")
	}
	for _, c := range cfg.Allow {
		if c.Name == "" || c.Value == "" {
			return nil, fmt.Errorf("a claim must be NAME=VALUE, such as groups=ops: %q", c.Name+"="+c.Value)
		}
	}
	key := make([]byte, 32)
	_, _ = rand.Read(key) // it never fails
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	seal, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, err
	}
	o := &OIDC{
		cfg: cfg, refusals: refusals{complain: cfg.Complain}, base: strings.TrimSuffix(cfg.Redirect, signedInPath),
		host: redirect.Hostname(), path: strings.TrimSuffix(redirect.Path, signedInPath) + "/",
		secure: redirect.Scheme == "https",
		client: &http.Client{Timeout: issuerTime, Transport: bounded{http.DefaultTransport}}, seal: seal,
		asking: make(chan struct{}, maxAsking), provider: make(chan *oidc.Provider, 1),
	}
	o.provider <- nil
	return o, nil
}

// Host is the name by which browsers reach the dashboard.
func (o *OIDC) Host() string { return o.host }

// checkIssuer returns an error if it is not the URL of an issuer.
func checkIssuer(issuer string) error {
	u, err := url.Parse(issuer)
	if err != nil || !safe(u) || u.RawQuery != "" || u.Fragment != "" {
		return fmt.Errorf("the issuer must be an https URL, as in the field issuer of its "+
			"/.well-known/openid-configuration: %q", issuer)
	}
	return nil
}

// safe reports whether others on the way can neither read nor change what goes to a URL.
func safe(u *url.URL) bool {
	ip, err := netip.ParseAddr(u.Hostname())
	local := u.Hostname() == "localhost" || err == nil && ip.IsLoopback()
	return u.Host != "" && u.User == nil && (u.Scheme == "https" || u.Scheme == "http" && local)
}

// bounded reads at most maxIssuer bytes of an answer.
type bounded struct{ http.RoundTripper }

func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := b.RoundTripper.RoundTrip(r)
	if err == nil {
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(resp.Body, maxIssuer), resp.Body}
	}
	return resp, err
}

// begun is what is remembered of a sign-in while the browser is at the issuer.
type begun struct {
	State    string    `json:"state"`
	Nonce    string    `json:"nonce"`
	Verifier string    `json:"verifier"`
	To       string    `json:"to"` // the page to come back to
	Until    time.Time `json:"until"`
}

// seen is what is remembered of a viewer.
type seen struct {
	Name  string    `json:"name"`
	Until time.Time `json:"until"`
}

// viewer returns the name of the viewer who has sent a request, and false if none has signed in.
func (o *OIDC) viewer(r *http.Request) (string, bool) {
	var s seen
	ok := o.read(r, viewerCookie, &s) && time.Now().Before(s.Until)
	return s.Name, ok
}

// mayBegin reports whether a request is that of a browser for a page: it can be sent to the issuer, and comes back.
func mayBegin(r *http.Request) bool {
	return (r.Method == http.MethodGet || r.Method == http.MethodHead) && r.Header.Get(partHeader) == "" &&
		strings.Contains(r.Header.Get("Accept"), "text/html")
}

// begin sends a browser to the issuer.
func (o *OIDC) begin(w http.ResponseWriter, r *http.Request) {
	provider, err := o.discover(r.Context())
	if err != nil {
		o.fail(w, http.StatusBadGateway, "the issuer cannot be asked: "+err.Error())
		return
	}
	b := begun{
		State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier(), To: r.URL.RequestURI(),
		Until: time.Now().Add(beginTime),
	}
	if len(b.To) > maxTo || !strings.HasPrefix(b.To, "/") {
		b.To = "/"
	}
	o.write(w, beginCookie, b, beginTime)
	http.Redirect(w, r, o.flow(provider).AuthCodeURL(b.State, oidc.Nonce(b.Nonce),
		oauth2.S256ChallengeOption(b.Verifier)), http.StatusFound)
}

// finish serves a browser that comes back from the issuer.
func (o *OIDC) finish(w http.ResponseWriter, r *http.Request) {
	var b begun
	q := r.URL.Query()
	same := o.read(r, beginCookie, &b) && time.Now().Before(b.Until) &&
		subtle.ConstantTimeCompare([]byte(b.State), []byte(q.Get("state"))) == 1
	if _, ok := o.viewer(r); ok && !same { // in another tab, or before
		http.Redirect(w, r, o.base+"/", http.StatusFound)
		return
	}
	if !same || r.Method != http.MethodGet {
		plain(w, http.StatusBadRequest, "This sign-in has expired, or another one was begun: open the dashboard again.")
		return
	}
	o.write(w, beginCookie, begun{}, -1)
	if q.Has("error") {
		o.fail(w, http.StatusForbidden, fmt.Sprintf("the issuer says %q %q", q.Get("error"), q.Get("error_description")))
		return
	}
	claims, err := o.exchange(r.Context(), q.Get("code"), b)
	if err != nil {
		o.fail(w, http.StatusBadGateway, "the issuer's answer is of no use: "+err.Error())
		return
	}
	name := claims.name()
	if !slices.ContainsFunc(o.cfg.Allow, claims.have) {
		o.fail(w, http.StatusForbidden, fmt.Sprintf("%q has none of the claims that are allowed", name))
		return
	}
	o.write(w, viewerCookie, seen{Name: name, Until: time.Now().Add(viewTime)}, 0)
	http.Redirect(w, r, o.base+b.To, http.StatusFound)
}

// fail tells a browser, and who runs the dashboard, why a sign-in has failed.
func (o *OIDC) fail(w http.ResponseWriter, status int, why string) {
	why = clean(why)
	o.refusals.tell("a sign-in failed: " + why)
	plain(w, status, "You are not signed in: "+why+". Open the dashboard again to try once more.")
}

// exchange returns what the issuer says of the user for whom it has given a code.
func (o *OIDC) exchange(ctx context.Context, code string, b begun) (claims, error) {
	select {
	case o.asking <- struct{}{}:
		defer func() { <-o.asking }()
	default:
		return nil, errors.New("too many sign in at the same time")
	}
	provider, err := o.discover(ctx)
	if err != nil {
		return nil, err
	}
	ctx = oidc.ClientContext(ctx, o.client)
	answer, err := o.flow(provider).Exchange(ctx, code, oauth2.VerifierOption(b.Verifier))
	if err != nil {
		return nil, err
	}
	raw, ok := answer.Extra("id_token").(string)
	if !ok {
		return nil, errors.New("it has no id_token")
	}
	token, err := provider.Verifier(&oidc.Config{ClientID: o.cfg.Client}).Verify(ctx, raw)
	if err != nil {
		return nil, err
	}
	if subtle.ConstantTimeCompare([]byte(token.Nonce), []byte(b.Nonce)) != 1 {
		return nil, errors.New("its nonce is not the one of this sign-in")
	}
	var c claims
	err = token.Claims(&c)
	return c, err
}

// discover returns the issuer's endpoints and keys. It asks for them until it has got them once.
func (o *OIDC) discover(ctx context.Context) (*oidc.Provider, error) {
	var p *oidc.Provider
	select {
	case p = <-o.provider:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { o.provider <- p }()
	if p != nil {
		return p, nil
	}
	// The provider keeps the context, with which it asks for keys later: it must not end with this request.
	found, err := oidc.NewProvider(oidc.ClientContext(context.WithoutCancel(ctx), o.client), o.cfg.Issuer)
	if err != nil {
		return nil, err
	}
	p = found
	return p, nil
}

// flow is the code flow at the issuer.
func (o *OIDC) flow(p *oidc.Provider) *oauth2.Config {
	return &oauth2.Config{
		ClientID: o.cfg.Client, ClientSecret: o.cfg.Secret, Endpoint: p.Endpoint(), RedirectURL: o.cfg.Redirect,
		Scopes: []string{oidc.ScopeOpenID, "profile", "email"},
	}
}

// write sets a cookie that only this process can read, for a time; 0: until the browser is closed, less: not at all.
func (o *OIDC) write(w http.ResponseWriter, name string, value any, lasts time.Duration) {
	text, err := json.Marshal(value)
	if err != nil {
		return // cannot happen: every field marshals
	}
	sealed := o.seal.Seal(nil, nil, text, []byte(name))
	age := int(lasts / time.Second)
	if lasts < 0 {
		age = -1
	}
	http.SetCookie(w, &http.Cookie{
		Name: name, Value: base64.RawURLEncoding.EncodeToString(sealed), Path: o.path, Secure: o.secure,
		MaxAge: age, HttpOnly: true, SameSite: http.SameSiteLaxMode,
	})
}

// read reads such a cookie, and reports whether there is one.
func (o *OIDC) read(r *http.Request, name string, value any) bool {
	c, err := r.Cookie(name)
	if err != nil {
		return false
	}
	sealed, err := base64.RawURLEncoding.DecodeString(c.Value)
	if err != nil {
		return false
	}
	text, err := o.seal.Open(nil, nil, sealed, []byte(name))
	return err == nil && json.Unmarshal(text, value) == nil
}

// claims are what an issuer says of a user.
type claims map[string]any

// name is who the user is, in the record of changes. What users can choose for themselves comes last.
func (c claims) name() string {
	text := func(name string) string { s, _ := c[name].(string); return s }
	email := ""
	if c.have(Claim{"email", text("email")}) {
		email = text("email")
	}
	return head(cmp.Or(email, text("preferred_username"), text("sub")), maxForwarded)
}

// have reports whether a user has a claim. An address counts only if the issuer has verified it.
func (c claims) have(want Claim) bool {
	if want.Name == "email" && c["email_verified"] != true {
		return false
	}
	switch has := c[want.Name].(type) {
	case nil:
		return false
	case []any:
		return slices.ContainsFunc(has, func(v any) bool { return fmt.Sprint(v) == want.Value })
	default:
		return fmt.Sprint(has) == want.Value
	}
}
