package dashboard

// Signing in with OpenID Connect.

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
)

const (
	signedInPath = "/signed-in" // to which an issuer sends browsers back
	signInPath   = "/sign-in"   // to sign in again after signing out
	signOutPath  = "/sign-out"

	beginTime  = 10 * time.Minute // for a sign-in at the issuer
	viewTime   = time.Hour        // after which a viewer signs in again, mostly without noticing
	issuerTime = 10 * time.Second // for what is asked of the issuer for one viewer
	retryTime  = 5 * time.Second  // between attempts to reach an issuer

	maxIssuer = 1 << 20 // bytes of an answer of the issuer
	maxAsking = 8       // sign-ins that ask the issuer at the same time
	maxTo     = 1000    // bytes of the address of a page to come back to
)

// OIDCConfig says which issuer tells who a viewer is, and which of its users may see the pages.
type OIDCConfig struct {
	Issuer   string   // its URL
	Client   string   // the id under which it knows the dashboard
	Secret   string   // of that client; "" if it has none
	Redirect string   // the URL by which browsers reach the dashboard's /signed-in
	Scopes   []string // to ask for, besides openid, profile and email
	Allow    []Claim  // a viewer has one of them

	// Complain is told of sign-ins that fail, not of each if there are many.
	Complain func(format string, args ...any)
}

// Claim is something that an issuer says of a user: such as that groups has the value ops. A list has all its values.
type Claim struct{ Name, Value string }

// OIDC signs viewers in with OpenID Connect: the code flow with PKCE. What it must remember of a sign-in, and of a
// viewer, is in cookies that only this process can read or make: strangers fill no memory. Its methods may be called
// from several goroutines.
type OIDC struct {
	cfg      OIDCConfig
	refusals refusals
	base     string // what comes before the paths of the dashboard, in a browser
	host     string // the name in it
	path     string // the path in it, with a slash at the end
	secure   bool   // browsers reach it by TLS alone
	suffix   string // of the names of cookies, which dashboards on several ports of a machine share
	client   *http.Client
	seal     cipher.AEAD
	leaving  http.Handler  // signOut
	line     places        // of sign-ins that ask the issuer or wait for that
	asking   chan struct{} // one is in it for each that asks

	mu   sync.Mutex // guards last
	last *attempt   // to reach the issuer; nil if there was none
}

// NewOIDC checks the configuration. It does not ask the issuer: that is done for the first sign-in, or before.
func NewOIDC(cfg OIDCConfig) (*OIDC, error) {
	if u, err := url.Parse(cfg.Issuer); err != nil || !safe(u) || strings.ContainsAny(cfg.Issuer, "?#") {
		return nil, fmt.Errorf("the issuer must be an https URL, as in the field issuer of its "+
			"/.well-known/openid-configuration: %q", cfg.Issuer)
	}
	redirect, err := url.Parse(cfg.Redirect)
	switch {
	case err != nil || !safe(redirect) || strings.ContainsAny(cfg.Redirect, "?#"):
		return nil, fmt.Errorf("the redirect must be an https URL that browsers reach this dashboard by, "+
			"such as https://locks.example.com%s: %q", signedInPath, cfg.Redirect)
	case !strings.HasSuffix(cfg.Redirect, signedInPath):
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
	sum := sha256.Sum256([]byte(cfg.Issuer + "\n" + cfg.Client + "\n" + cfg.Redirect))
	o := &OIDC{
		cfg: cfg, refusals: refusals{complain: cfg.Complain}, base: strings.TrimSuffix(cfg.Redirect, signedInPath),
		host:   strings.TrimSuffix(redirect.Hostname(), "."),
		path:   strings.TrimSuffix(redirect.EscapedPath(), signedInPath) + "/",
		secure: redirect.Scheme == "https", suffix: "_" + hex.EncodeToString(sum[:4]), seal: seal,
		client: &http.Client{
			Timeout: issuerTime, Transport: careful{http.DefaultTransport},
			CheckRedirect: func(_ *http.Request, via []*http.Request) error {
				if via[0].Method != http.MethodGet { // the secret goes nowhere else
					return http.ErrUseLastResponse
				}
				return nil
			},
		},
		asking: make(chan struct{}, maxAsking),
	}
	o.leaving = http.NewCrossOriginProtection().Handler(http.HandlerFunc(o.signOut))
	return o, nil
}

// Host is the name by which browsers reach the dashboard.
func (o *OIDC) Host() string { return o.host }

// safe reports whether others on the way can neither read nor change what goes to a URL.
func safe(u *url.URL) bool {
	return u.Hostname() != "" && u.User == nil &&
		(u.Scheme == "https" || u.Scheme == "http" && command.IsLocal(u.Hostname()))
}

// careful asks only what cannot be changed on the way, and reads at most maxIssuer bytes of an answer. What the issuer
// says, and where it leads to, decides which viewers are let in.
type careful struct{ http.RoundTripper }

func (c careful) RoundTrip(r *http.Request) (*http.Response, error) {
	if !safe(r.URL) {
		return nil, fmt.Errorf("%s is no https URL", r.URL.Redacted())
	}
	resp, err := c.RoundTripper.RoundTrip(r)
	if err == nil {
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(resp.Body, maxIssuer), resp.Body}
	}
	return resp, err
}

// attempt is one to reach the issuer. done is closed when it has ended.
type attempt struct {
	done chan struct{}

	at       time.Time
	err      error
	provider *oidc.Provider
	flow     oauth2.Config
}

// reach returns the issuer's endpoints and keys. It asks for them until it has got them once, for all that want them at
// the same time together.
func (o *OIDC) reach(ctx context.Context) (*attempt, error) {
	o.mu.Lock()
	a := o.last
	if a == nil || a.ended() && a.err != nil && time.Since(a.at) > retryTime {
		a = &attempt{done: make(chan struct{})}
		o.last = a
		go o.try(context.WithoutCancel(ctx), a) // others wait, too; it ends within the client's Timeout
	}
	o.mu.Unlock()
	select {
	case <-a.done:
		return a, a.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (a *attempt) ended() bool {
	select {
	case <-a.done:
		return true
	default:
		return false
	}
}

// try makes the attempt.
func (o *OIDC) try(ctx context.Context, a *attempt) {
	defer close(a.done)
	defer func() { a.at = time.Now() }()
	a.provider, a.err = oidc.NewProvider(oidc.ClientContext(ctx, o.client), o.cfg.Issuer)
	if a.err != nil {
		return
	}
	var says struct {
		Methods []string `json:"token_endpoint_auth_methods_supported"`
	}
	if a.err = a.provider.Claims(&says); a.err != nil {
		return
	}
	a.flow = oauth2.Config{
		ClientID: o.cfg.Client, ClientSecret: o.cfg.Secret, Endpoint: a.provider.Endpoint(),
		RedirectURL: o.cfg.Redirect, Scopes: append([]string{oidc.ScopeOpenID, "profile", "email"}, o.cfg.Scopes...),
	}
	if u, err := url.Parse(a.flow.Endpoint.AuthURL); err != nil || !safe(u) {
		a.err = fmt.Errorf("its authorization_endpoint is no https URL: %q", a.flow.Endpoint.AuthURL)
	}
	// Left to itself, oauth2 tries one way after the other, and some issuers take no code a second time. An issuer that
	// does not say what it takes takes the header (OpenID Connect Discovery 1.0, section 3).
	a.flow.Endpoint.AuthStyle = oauth2.AuthStyleInHeader
	post := slices.Contains(says.Methods, "client_secret_post") && !slices.Contains(says.Methods, "client_secret_basic")
	if post || o.cfg.Secret == "" {
		a.flow.Endpoint.AuthStyle = oauth2.AuthStyleInParams
	}
}

// Try reaches the issuer, and complains if it cannot: before the first viewer finds out.
func (o *OIDC) Try(ctx context.Context) {
	if _, err := o.reach(ctx); err != nil && ctx.Err() == nil {
		o.cfg.Complain("the OpenID Connect issuer cannot be asked, so viewers cannot sign in yet: %v", err)
	}
}

// The cookies. A name that begins with __Host- no other host can set.
const (
	beginCookie  = "turnstile_begin"
	viewerCookie = "turnstile_viewer"
	outCookie    = "turnstile_out" // of a browser whose user has signed out
)

func (o *OIDC) cookie(kind string) string {
	if o.secure && o.path == "/" {
		return "__Host-" + kind + o.suffix
	}
	return kind + o.suffix
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

// serve serves the addresses of signing in and out, and reports whether it has. in says that the browser's user has
// signed in.
func (o *OIDC) serve(w http.ResponseWriter, r *http.Request, in bool, from string) bool {
	switch {
	case r.URL.Path == signedInPath:
		o.finish(w, r, from)
	case r.URL.Path == signOutPath && r.Method == http.MethodPost:
		o.leaving.ServeHTTP(w, r)
	case in && (r.URL.Path == signInPath || r.URL.Path == signOutPath):
		http.Redirect(w, r, o.base+"/", http.StatusFound)
	default:
		return false
	}
	return true
}

// begin sends a browser to the issuer.
func (o *OIDC) begin(w http.ResponseWriter, r *http.Request, from string) {
	if strings.HasSuffix(r.URL.Path, signedInPath) { // it would come back here for ever
		plain(w, http.StatusNotFound, "The proxy in front must take the path off that the dashboard has there.")
		return
	}
	if out := new(seen); o.read(r, outCookie, out) && r.URL.Path != signInPath {
		// Otherwise another page that is open would sign in again: the issuer needs no click for that.
		door(w, http.StatusOK, doorPage{
			Title: "Signed out", Text: "The issuer may still know this browser. If others use it, sign out there, too.",
			Href: o.base + signInPath, Link: "Sign in",
		})
		return
	}
	issuer, err := o.reach(r.Context())
	if err != nil {
		w.Header().Set("Refresh", "30") // a screen on the wall goes on by itself
		o.fail(w, http.StatusBadGateway, from, "The issuer cannot be asked.", err)
		return
	}
	b := begun{
		State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier(), To: r.URL.RequestURI(),
		Until: time.Now().Add(beginTime),
	}
	own := r.URL.Path == signInPath || r.URL.Path == signOutPath
	if own || len(b.To) > maxTo || !strings.HasPrefix(b.To, "/") {
		b.To = "/"
	}
	o.write(w, beginCookie, b, beginTime)
	to := issuer.flow.AuthCodeURL(b.State, oidc.Nonce(b.Nonce), oauth2.S256ChallengeOption(b.Verifier))
	if r.Header.Get("Sec-Fetch-Site") == "same-origin" {
		// It may come from a form of a page that was left open, whose policy (form-action) lets it lead nowhere else,
		// not even by a redirect.
		w.Header().Set("Refresh", "0; url="+to)
		door(w, http.StatusOK, doorPage{
			Title: "Signing in", Text: "The issuer is asked who you are.", Href: to, Link: "Go there",
		})
		return
	}
	http.Redirect(w, r, to, http.StatusFound)
}

// finish serves a browser that comes back from the issuer.
func (o *OIDC) finish(w http.ResponseWriter, r *http.Request, from string) {
	var b begun
	q := r.URL.Query()
	began := o.read(r, beginCookie, &b)
	same := began && time.Now().Before(b.Until) &&
		subtle.ConstantTimeCompare([]byte(b.State), []byte(q.Get("state"))) == 1
	switch _, in := o.viewer(r); {
	case in && !same: // in another tab, or before
		http.Redirect(w, r, o.base+"/", http.StatusFound)
		return
	case r.Method != http.MethodGet:
		plain(w, http.StatusBadRequest, "A browser comes here from the issuer.")
		return
	case !same:
		if began { // another tab has begun later, and may end first
			w.Header().Set("Refresh", "3; url="+o.base+"/")
		}
		plain(w, http.StatusBadRequest, "This sign-in has expired, or another one was begun. Open "+o.base+"/ again; "+
			"the browser must accept its cookies.")
		return
	}
	if q.Has("error") {
		err := fmt.Errorf("%q %q", q.Get("error"), q.Get("error_description"))
		o.fail(w, http.StatusForbidden, from, "The issuer refuses.", err)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), issuerTime)
	defer cancel()
	claims, err := o.exchange(ctx, q.Get("code"), b, from)
	switch {
	case errors.Is(err, errManySignIns):
		w.Header().Set("Retry-After", "5")
		plain(w, http.StatusServiceUnavailable, err.Error()+": try again")
		return
	case err != nil:
		o.fail(w, http.StatusBadGateway, from, "What the issuer answers is of no use.", err)
		return
	}
	name := claims.name()
	if !claims.haveOne(o.cfg.Allow) {
		err := fmt.Errorf("%q has none of the claims that are allowed", name)
		o.fail(w, http.StatusForbidden, from, "You may not see this dashboard.", err)
		return
	}
	o.write(w, beginCookie, begun{}, -1)
	o.write(w, outCookie, seen{}, -1)
	o.write(w, viewerCookie, seen{Name: name, Until: time.Now().Add(viewTime)}, 0)
	http.Redirect(w, r, o.base+b.To, http.StatusFound)
}

// fail tells a browser that a sign-in has failed, and who runs the dashboard why.
func (o *OIDC) fail(w http.ResponseWriter, status int, from, text string, err error) {
	o.refusals.tell(fmt.Sprintf("a sign-in from %q failed: %s", from, clean(err.Error())))
	plain(w, status, text+" The dashboard's log says why. Open "+o.base+"/ to try again.")
}

var errManySignIns = errors.New("too many sign in at the same time")

// signOut makes a browser forget its viewer. A copy of the cookie stays good until its hour is over, or the
// dashboard is restarted.
func (o *OIDC) signOut(w http.ResponseWriter, r *http.Request) {
	o.write(w, viewerCookie, seen{}, -1)
	o.write(w, outCookie, seen{}, 0)
	http.Redirect(w, r, o.base+"/", http.StatusSeeOther)
}

// exchange returns what the issuer says of the user for whom it has given a code.
func (o *OIDC) exchange(ctx context.Context, code string, b begun, from string) (claims, error) {
	if !o.line.take(from) {
		return nil, errManySignIns
	}
	defer o.line.leave(from)
	select {
	case o.asking <- struct{}{}:
		defer func() { <-o.asking }()
	case <-ctx.Done():
		return nil, errManySignIns
	}
	issuer, err := o.reach(ctx)
	if err != nil {
		return nil, err
	}
	ctx = oidc.ClientContext(ctx, o.client)
	answer, err := issuer.flow.Exchange(ctx, code, oauth2.VerifierOption(b.Verifier))
	if err != nil {
		return nil, err
	}
	raw, ok := answer.Extra("id_token").(string)
	if !ok {
		return nil, errors.New("it has no id_token")
	}
	token, err := issuer.provider.Verifier(&oidc.Config{ClientID: o.cfg.Client}).Verify(ctx, raw)
	switch {
	case err != nil:
		return nil, err
	case subtle.ConstantTimeCompare([]byte(token.Nonce), []byte(b.Nonce)) != 1:
		return nil, errors.New("its nonce is not the one of this sign-in")
	case token.Subject == "":
		return nil, errors.New("it does not say whose it is")
	}
	c, err := readClaims(token)
	if err != nil || c.haveOne(o.cfg.Allow) || issuer.provider.UserInfoEndpoint() == "" {
		return c, err
	}
	// Many issuers tell there what scopes ask for (OpenID Connect Core 1.0, section 5.4).
	info, err := issuer.provider.UserInfo(ctx, oauth2.StaticTokenSource(answer))
	if err != nil {
		return nil, err
	}
	if info.Subject != token.Subject {
		return nil, errors.New("its user info is that of another user")
	}
	all, err := readClaims(info)
	if err != nil {
		return nil, err
	}
	maps.Copy(all, c) // what is signed counts
	return all, nil
}

// write sets a cookie that only this process can read, for a time; 0: until the browser is closed; less: it goes.
func (o *OIDC) write(w http.ResponseWriter, kind string, value any, lasts time.Duration) {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false) // browsers drop cookies above 4 KB
	if err := enc.Encode(value); err != nil {
		return // cannot happen: every field marshals
	}
	age := int(lasts / time.Second)
	if lasts < 0 {
		age = -1
	}
	sealed := o.seal.Seal(nil, nil, text.Bytes(), []byte(kind))
	http.SetCookie(w, &http.Cookie{
		Name: o.cookie(kind), Value: base64.RawURLEncoding.EncodeToString(sealed),
		Path: o.path, Secure: o.secure, MaxAge: age, HttpOnly: true, SameSite: http.SameSiteLaxMode,
	})
}

// read reads such a cookie, and reports whether there is one.
func (o *OIDC) read(r *http.Request, kind string, value any) bool {
	c, err := r.Cookie(o.cookie(kind))
	if err != nil {
		return false
	}
	sealed, err := base64.RawURLEncoding.DecodeString(c.Value)
	if err != nil {
		return false
	}
	text, err := o.seal.Open(nil, nil, sealed, []byte(kind))
	return err == nil && json.Unmarshal(text, value) == nil
}
