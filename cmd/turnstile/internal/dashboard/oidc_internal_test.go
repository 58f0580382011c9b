package dashboard

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/seed-a3166700/turnstile/internal/test/peer"
)

// issuer is an OpenID Connect issuer for tests, at which everybody is signed in already.
type issuer struct {
	*httptest.Server

	says   map[string]any // in its configuration, besides the ordinary
	inForm bool           // it takes the client's secret in the form alone
	claims map[string]any // of the token, besides the ordinary
	info   map[string]any // of the user info
	sign   func(claims []byte) string

	mu         sync.Mutex        // guards the fields below
	challenges map[string]string // of PKCE, by code
	nonces     map[string]string // by code
}

// signedBy returns what signs with a key.
func signedBy(t *testing.T, key *rsa.PrivateKey) func([]byte) string {
	return func(text []byte) string {
		with := jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: key, KeyID: "k"}}
		signer, err := jose.NewSigner(with, nil)
		if err != nil {
			t.Error(err)
			return ""
		}
		signed, err := signer.Sign(text)
		if err != nil {
			t.Error(err)
			return ""
		}
		raw, err := signed.CompactSerialize()
		if err != nil {
			t.Error(err)
		}
		return raw
	}
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	i := &issuer{sign: signedBy(t, key), challenges: make(map[string]string), nonces: make(map[string]string)}
	mux := http.NewServeMux()
	reply := func(w http.ResponseWriter, v any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(v)
	}
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		says := map[string]any{
			"issuer": i.URL, "authorization_endpoint": i.URL + "/authorize", "token_endpoint": i.URL + "/token",
			"jwks_uri": i.URL + "/keys", "id_token_signing_alg_values_supported": []string{"RS256"},
		}
		maps.Copy(says, i.says)
		reply(w, says)
	})
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) {
		public := jose.JSONWebKey{Key: &key.PublicKey, KeyID: "k", Use: "sig", Algorithm: "RS256"}
		reply(w, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{public}})
	})
	mux.HandleFunc("POST /token", func(w http.ResponseWriter, r *http.Request) {
		i.mu.Lock()
		defer i.mu.Unlock()
		code := r.FormValue("code")
		sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
		id, secret, _ := r.BasicAuth()
		if i.inForm {
			id, secret = r.PostFormValue("client_id"), r.PostFormValue("client_secret")
		}
		if i.challenges[code] != base64.RawURLEncoding.EncodeToString(sum[:]) || id != "board" || secret != "s3cret" {
			w.WriteHeader(http.StatusBadRequest)
			reply(w, map[string]string{"error": "invalid_grant"})
			return
		}
		claims := map[string]any{
			"iss": i.URL, "aud": "board", "sub": "42", "nonce": i.nonces[code],
			"exp": time.Now().Add(time.Minute).Unix(),
		}
		maps.Copy(claims, i.claims)
		text, err := json.Marshal(claims)
		if err != nil {
			t.Error(err)
			return
		}
		delete(i.challenges, code) // it takes a code once
		reply(w, map[string]any{"access_token": "a", "token_type": "Bearer", "id_token": i.sign(text)})
	})
	// Where a browser is asked. Its user has a button.
	mux.HandleFunc("GET /authorize", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<!doctype html><title>Issuer</title><link rel="icon" href="data:,">`+
			`<form method="post" action="/authorize?%s">`+
			`<button>Be ann</button></form>`, html.EscapeString(r.URL.RawQuery))
	})
	mux.HandleFunc("POST /authorize", func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		http.Redirect(w, r, q.Get("redirect_uri")+"?"+i.admit(q).Encode(), http.StatusSeeOther)
	})
	mux.HandleFunc("GET /info", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer a" {
			t.Errorf("the user info is asked for with %q", r.Header.Get("Authorization"))
		}
		reply(w, i.info)
	})
	i.Server = httptest.NewServer(mux)
	t.Cleanup(i.Close)
	return i
}

// visit is what the browser does that is sent to the issuer: it comes back with a code.
func (i *issuer) visit(t *testing.T, location string) url.Values {
	t.Helper()
	at, err := url.Parse(location)
	if err != nil || !strings.HasPrefix(location, i.URL+"/authorize?") {
		t.Fatalf("the browser is sent to %q, %v", location, err)
	}
	q := at.Query()
	for name, want := range map[string]string{
		"response_type": "code", "client_id": "board", "code_challenge_method": "S256",
		"redirect_uri": "https://locks.example.com/app/signed-in", "scope": "openid profile email",
	} {
		if q.Get(name) != want {
			t.Errorf("%s is %q, want %q", name, q.Get(name), want)
		}
	}
	return i.admit(q)
}

// admit returns what a browser brings back that came with q.
func (i *issuer) admit(q url.Values) url.Values {
	i.mu.Lock()
	defer i.mu.Unlock()
	code := rand.Text()
	i.challenges[code], i.nonces[code] = q.Get("code_challenge"), q.Get("nonce")
	return url.Values{"code": {code}, "state": {q.Get("state")}}
}

// browser keeps cookies.
type browser struct {
	d       *Dashboard
	cookies map[string]string
}

func (b *browser) open(path string, header ...string) *httptest.ResponseRecorder {
	return b.send(http.MethodGet, path, header...)
}

func (b *browser) send(method, path string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "http://locks.example.com"+path, http.NoBody)
	r.Header.Set("Accept", "text/html,*/*")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	for name, value := range b.cookies {
		r.AddCookie(&http.Cookie{Name: name, Value: value})
	}
	w := httptest.NewRecorder()
	b.d.ServeHTTP(w, r)
	for _, c := range w.Result().Cookies() {
		if c.MaxAge < 0 {
			delete(b.cookies, c.Name)
		} else {
			b.cookies[c.Name] = c.Value
		}
	}
	return w
}

// oidcBoard returns a dashboard that knows the issuer, and what it complains of.
func oidcBoard(t *testing.T, i *issuer, allow ...Claim) (*Dashboard, func() string) {
	t.Helper()
	return oidcBoardOf(t, i, Config{Changes: true}, allow...)
}

func oidcBoardOf(t *testing.T, i *issuer, cfg Config, allow ...Claim) (*Dashboard, func() string) {
	t.Helper()
	var mu sync.Mutex
	var told []string
	o, err := NewOIDC(OIDCConfig{
		Issuer: i.URL, Client: "board", Secret: "s3cret", Redirect: "https://locks.example.com/app/signed-in",
		Allow: allow,
		Complain: func(format string, args ...any) {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, fmt.Sprintf(format, args...))
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	w, s := ordinary()
	cfg.OIDC = o
	return board(t, w, s, cfg), func() string {
		mu.Lock()
		defer mu.Unlock()
		return strings.Join(told, "\n")
	}
}

func TestViewersSignInAtAnIssuer(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	i.claims = map[string]any{"groups": []string{"dev", "ops"}, "email": "ann@example.com", "email_verified": true}
	d, told := oidcBoard(t, i, Claim{"groups", "ops"})
	b := &browser{d: d, cookies: make(map[string]string)}
	for _, path := range append(allPages, "/live.js") {
		if got := b.open(path, "Accept", "*/*"); got.Code != http.StatusUnauthorized {
			t.Errorf("%s: a program without a token gets %d", path, got.Code)
		}
	}
	if got := b.open("/locks", partHeader, "1"); got.Code != http.StatusUnauthorized {
		t.Errorf("a page's script gets %d: it cannot follow to the issuer", got.Code)
	}
	if got := b.open("/livez"); got.Code != http.StatusOK {
		t.Errorf("a probe gets %d", got.Code)
	}
	began := b.open("/lock?path=/a&x=%2F")
	for _, c := range began.Result().Cookies() {
		if !c.HttpOnly || !c.Secure || c.SameSite != http.SameSiteLaxMode || c.Path != "/app/" || c.MaxAge != 600 {
			t.Errorf("the cookie is %v", c)
		}
	}
	back := i.visit(t, began.Header().Get("Location"))
	ended := b.open("/signed-in?" + back.Encode())
	for _, c := range ended.Result().Cookies() {
		if !c.HttpOnly || !c.Secure || c.SameSite != http.SameSiteLaxMode || c.Path != "/app/" || c.MaxAge > 0 {
			t.Errorf("the cookie is %v", c)
		}
	}
	if to := ended.Header().Get("Location"); to != "https://locks.example.com/app/lock?path=/a&x=%2F" {
		t.Fatalf("got %d to %q %s, want the page", ended.Code, to, ended.Body)
	}
	if got := b.open("/locks"); got.Code != http.StatusOK || !strings.Contains(got.Body.String(), "ann@example.com") {
		t.Errorf("got %d, want a page that knows ann", got.Code)
	}
	if got := b.open("/signed-in?" + back.Encode()); got.Header().Get("Location") != "https://locks.example.com/app/" {
		t.Errorf("a second visit gets %d to %q", got.Code, got.Header().Get("Location"))
	}
	if told() != "" {
		t.Errorf("it complains of %q", told())
	}
	// Another process cannot read the cookies, nor one that was changed or is of another kind.
	other, _ := oidcBoard(t, i, Claim{"groups", "ops"})
	if got := (&browser{d: other, cookies: maps.Clone(b.cookies)}).open("/locks"); got.Code != http.StatusFound {
		t.Errorf("another process lets the viewer in: %d", got.Code)
	}
	kind := d.cfg.OIDC.cookie(viewerCookie)
	changed := []byte(b.cookies[kind])
	changed[20] ^= 1
	for _, value := range []string{"", "x", string(changed), began.Result().Cookies()[0].Value} {
		if got := (&browser{d: d, cookies: map[string]string{kind: value}}).open("/"); got.Code != http.StatusFound {
			t.Errorf("the cookie %q gets %d", value, got.Code)
		}
	}
}

func TestViewersSignOut(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	i.claims = map[string]any{"groups": "ops"}
	d, _ := oidcBoardOf(t, i, Config{}, Claim{"groups", "ops"})
	b := &browser{d: d, cookies: make(map[string]string)}
	const base = "https://locks.example.com/app"
	signIn := func(from, to string) {
		t.Helper()
		back := i.visit(t, from)
		if got := b.open("/signed-in?" + back.Encode()).Header().Get("Location"); got != base+to {
			t.Errorf("one who has signed in comes to %q, want %q", got, to)
		}
	}
	wantTo := func(what string, got *httptest.ResponseRecorder, status int, to string) {
		t.Helper()
		if got.Code != status || got.Header().Get("Location") != to {
			t.Errorf("%s: %d to %q, want %d to %q", what, got.Code, got.Header().Get("Location"), status, to)
		}
	}
	post := func(path string, header ...string) *httptest.ResponseRecorder {
		return b.send(http.MethodPost, path, header...)
	}
	signIn(b.open("/locks").Header().Get("Location"), "/locks")
	if got := b.open("/locks"); !strings.Contains(got.Body.String(), `action="sign-out"`) {
		t.Fatalf("got %d without a button to sign out: %s", got.Code, got.Body)
	}
	wantTo("another site signs out", post("/sign-out", "Sec-Fetch-Site", "cross-site"), http.StatusForbidden, "")
	wantTo("another POST", post("/locks"), http.StatusMethodNotAllowed, "")
	wantTo("signing in again", b.open("/sign-in"), http.StatusFound, base+"/")
	wantTo("the address of signing out", b.open("/sign-out"), http.StatusFound, base+"/")
	wantTo("still there", b.open("/locks"), http.StatusOK, "")

	// It signs in again when its user says so, not when another page of it is loaded again.
	wantTo("signing out", post("/sign-out"), http.StatusSeeOther, base+"/")
	for _, path := range []string{"/", "/locks", "/sign-out"} {
		got := b.open(path)
		wantTo("signed out", got, http.StatusOK, "")
		text := got.Body.String()
		if !strings.Contains(text, "Signed out") || !strings.Contains(text, base+"/sign-in") {
			t.Errorf("%s shows %s", path, text)
		}
	}
	for _, path := range []string{"/style.css", "/icon.svg"} { // for the look of that page
		wantTo(path, b.open(path, "Accept", "*/*"), http.StatusOK, "")
	}
	wantTo("signing out twice", post("/sign-out"), http.StatusSeeOther, base+"/")
	signIn(b.open("/sign-in").Header().Get("Location"), "/")
	wantTo("signed in", b.open("/locks"), http.StatusOK, "")

	// A form of an open page may lead to no other site: not by a redirect.
	clear(b.cookies)
	got := b.open("/locks?q=x", "Sec-Fetch-Site", "same-origin")
	to, ok := strings.CutPrefix(got.Header().Get("Refresh"), "0; url=")
	if got.Code != http.StatusOK || !ok || !strings.Contains(html.UnescapeString(got.Body.String()), to) {
		t.Fatalf("a form gets %d, %q: %s", got.Code, got.Header().Get("Refresh"), got.Body)
	}
	signIn(to, "/locks?q=x")
	clear(b.cookies)
	signIn(b.open("/sign-out").Header().Get("Location"), "/")

	w, s := ordinary()
	got = ask(board(t, w, s, Config{}), http.MethodPost, "/sign-out", "")
	wantTo("without an issuer", got, http.StatusMethodNotAllowed, "")
}

// One address alone cannot keep others from signing in.
func TestPlacesAreSharedByAddresses(t *testing.T) {
	t.Parallel()
	var p places
	for n := range maxWaiting / 4 {
		if !p.take(fmt.Sprintf("[2001:db8::%d]:%d", n, 1000+n)) {
			t.Fatalf("one network has %d places", n)
		}
	}
	for _, from := range []string{"[2001:db8::ffff]:1", "2001:db8:0:ffff::", "[2001:db8::]"} {
		if p.take(from) {
			t.Errorf("one network has more than a quarter: %s", from)
		}
	}
	for n, from := range []string{"10.0.0.1:1", "10.0.0.1:2", "10.0.0.1", "::ffff:10.0.0.1", "2001:db8:1::", "?"} {
		if !p.take(from) {
			t.Errorf("there is none for %s, the %d.", from, n)
		}
	}
	if p.by["10.0.0.1"] != 4 {
		t.Errorf("they are those of %v", p.by)
	}
	for n := range maxWaiting - maxWaiting/4 - 6 {
		p.take(strconv.Itoa(n))
	}
	if p.take("one more") {
		t.Error("there are too many")
	}
	p.leave("[2001:db8::9]:9")
	if !p.take("one more") {
		t.Error("what one leaves, no other can take")
	}
	for from, n := range p.by {
		for range n {
			p.leave(from)
		}
	}
	if p.taken != 0 || len(p.by) != 0 {
		t.Errorf("%d are left: %v", p.taken, p.by)
	}
}

// A browser that signs in, signs out, and comes back with a form, at an issuer of another site.
func TestSignInInABrowser(t *testing.T) {
	t.Parallel()
	const scripts = "../../../../test/browser"
	modules := peer.Browser(t, scripts)
	i := newIssuer(t)
	i.URL = strings.Replace(i.URL, "127.0.0.1", "localhost", 1)
	i.claims = map[string]any{"groups": "ops", "email": "ann@example.com", "email_verified": true}
	w, s := ordinary()
	web := httptest.NewUnstartedServer(nil)
	at := "http://" + web.Listener.Addr().String()
	o, err := NewOIDC(OIDCConfig{
		Issuer: i.URL, Client: "board", Secret: "s3cret", Redirect: at + signedInPath,
		Allow: []Claim{{"groups", "ops"}}, Complain: t.Errorf,
	})
	if err != nil {
		t.Fatal(err)
	}
	web.Config.Handler = board(t, w, s, Config{OIDC: o})
	web.Start()
	defer web.Close()
	out, err := exec.CommandContext(t.Context(), "node", scripts+"/signin.mjs", modules, at+"/").CombinedOutput()
	if err != nil || len(out) > 0 {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestOnlyThoseWithAClaimSignIn(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		allow  Claim
		claims map[string]any
		ok     bool
	}{
		{Claim{"groups", "ops"}, map[string]any{"groups": "ops"}, true},
		{Claim{"groups", "ops"}, map[string]any{"groups": []string{"devops"}}, false},
		{Claim{"groups", "ops"}, nil, false},
		{Claim{"email", "a@b.c"}, map[string]any{"email": "a@b.c", "email_verified": true}, true},
		{Claim{"email", "a@b.c"}, map[string]any{"email": "a@b.c"}, false},
		{Claim{"email", "a@b.c"}, map[string]any{"email": "a@b.c", "email_verified": "true"}, false},
		{Claim{"sub", "42"}, nil, true},
		{Claim{"level", "12345678"}, map[string]any{"level": 12345678}, true},
		{Claim{"admin", "true"}, map[string]any{"admin": true}, true},
		{Claim{"groups", "map[a:ops]"}, map[string]any{"groups": map[string]string{"a": "ops"}}, false},
		{Claim{"groups", "<nil>"}, map[string]any{"groups": []any{nil}}, false},
		{Claim{"sub", "42"}, map[string]any{"sub": ""}, false},
		{Claim{"sub", "42"}, map[string]any{"aud": "another"}, false},
		{Claim{"sub", "42"}, map[string]any{"iss": "https://another.example.com"}, false},
		{Claim{"sub", "42"}, map[string]any{"exp": time.Now().Add(-time.Hour).Unix()}, false},
		{Claim{"sub", "42"}, map[string]any{"nonce": "another"}, false},
	} {
		t.Run(fmt.Sprint(c.allow, c.claims), func(t *testing.T) {
			t.Parallel()
			i := newIssuer(t)
			i.claims = c.claims
			d, told := oidcBoard(t, i, Claim{"groups", "none"}, c.allow)
			b := &browser{d: d, cookies: make(map[string]string)}
			back := i.visit(t, b.open("/").Header().Get("Location"))
			got := b.open("/signed-in?" + back.Encode())
			kept := b.cookies[d.cfg.OIDC.cookie(viewerCookie)] != ""
			if in := got.Code == http.StatusFound; in != c.ok || in != kept {
				t.Errorf("got %d %s, want in %v", got.Code, got.Body, c.ok)
			}
			if c.ok != (told() == "") {
				t.Errorf("it complains of %q", told())
			}
		})
	}
}

// What comes back must belong to what this browser has begun.
func TestSignInThatAnotherHasBegunIsRefused(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	d, told := oidcBoard(t, i, Claim{"sub", "42"})
	mine, theirs := &browser{d: d, cookies: make(map[string]string)}, &browser{d: d, cookies: make(map[string]string)}
	back := i.visit(t, theirs.open("/").Header().Get("Location"))
	mine.open("/")
	for name, q := range map[string]url.Values{
		"another's": back, "no state": {"code": back["code"]}, "none": nil,
	} {
		if got := mine.open("/signed-in?" + q.Encode()); got.Code != http.StatusBadRequest {
			t.Errorf("%s: got %d %s", name, got.Code, got.Body)
		}
	}
	// A code of another sign-in fits neither this one's verifier nor its nonce.
	own := i.visit(t, mine.open("/").Header().Get("Location"))
	own["code"] = back["code"]
	if got := mine.open("/signed-in?" + own.Encode()); got.Code != http.StatusBadGateway || len(mine.cookies) != 1 {
		t.Errorf("another's code: got %d %s", got.Code, got.Body)
	}
	denied := i.visit(t, mine.open("/").Header().Get("Location"))
	denied.Set("error", "access_denied")
	denied.Set("error_description", strings.Repeat("no\x1b[2J ", 1000))
	if got := mine.open("/signed-in?" + denied.Encode()); got.Code != http.StatusForbidden || got.Body.Len() > 200 {
		t.Errorf("a refusal: got %d %q", got.Code, got.Body)
	}
	if strings.Count(told(), "\n") > 0 { // once in a while
		t.Errorf("it complains of %q", told())
	}
	d, told = oidcBoard(t, i, Claim{"sub", "42"})
	mine = &browser{d: d, cookies: make(map[string]string)}
	denied.Set("state", i.visit(t, mine.open("/").Header().Get("Location")).Get("state"))
	mine.open("/signed-in?" + denied.Encode())
	if got := told(); !strings.Contains(got, "access_denied") || len(got) > 1000 || strings.Contains(got, "\x1b") {
		t.Errorf("it complains of %q", got)
	}
	for _, method := range []string{http.MethodHead, http.MethodPost} {
		if got := ask(d, method, "/signed-in?"+denied.Encode(), ""); got.Code != http.StatusBadRequest {
			t.Errorf("%s: got %d", method, got.Code)
		}
	}
}

func TestIssuerThatCannotBeReachedIsAskedAgain(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	answers := i.Config.Handler
	var down sync.Mutex
	down.Lock()
	i.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !down.TryLock() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		down.Unlock()
		answers.ServeHTTP(w, r)
	})
	d, told := oidcBoard(t, i, Claim{"sub", "42"})
	b := &browser{d: d, cookies: make(map[string]string)}
	if got := b.open("/"); got.Code != http.StatusBadGateway || !strings.Contains(told(), "503") {
		t.Errorf("got %d %s and %q", got.Code, got.Body, told())
	}
	d.cfg.OIDC.Try(t.Context())
	if !strings.Contains(told(), "viewers cannot sign in yet") {
		t.Errorf("it complains of %q", told())
	}
	down.Unlock()
	if got := b.open("/"); got.Code != http.StatusBadGateway {
		t.Errorf("got %d: it is asked again without a pause", got.Code)
	}
	d.cfg.OIDC.last.at = time.Now().Add(-2 * retryTime)
	i.visit(t, b.open("/").Header().Get("Location"))
}

func TestBadConfigurationsOfAnIssuerAreRefused(t *testing.T) {
	t.Parallel()
	good := OIDCConfig{
		Issuer: "https://id.example.com/realms/x", Client: "board", Redirect: "https://locks.example.com/signed-in",
		Allow: []Claim{{"groups", "ops"}}, Complain: t.Logf,
	}
	if o, err := NewOIDC(good); err != nil || o.Host() != "locks.example.com" {
		t.Fatal(o, err)
	}
	for want, change := range map[string]func(*OIDCConfig){
		"an https URL, as":         func(c *OIDCConfig) { c.Issuer = "http://id.example.com" },
		"an https URL, as in":      func(c *OIDCConfig) { c.Issuer = "id.example.com" },
		"the issuer must be":       func(c *OIDCConfig) { c.Issuer = "https://id.example.com/?x" },
		"browsers reach":           func(c *OIDCConfig) { c.Redirect = "http://locks.example.com/signed-in" },
		"must be an https URL th":  func(c *OIDCConfig) { c.Redirect = "" },
		"must end with /signed-in": func(c *OIDCConfig) { c.Redirect = "https://locks.example.com/callback" },
		"an https URL that":        func(c *OIDCConfig) { c.Redirect = "https://locks.example.com/signed-in#" },
		"by a client id":           func(c *OIDCConfig) { c.Client = "" },
		"by a claim of theirs":     func(c *OIDCConfig) { c.Allow = nil },
		"groups=ops: \"ops=\"":     func(c *OIDCConfig) { c.Allow = []Claim{{"ops", ""}} },
	} {
		cfg := good
		change(&cfg)
		if _, err := NewOIDC(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
}

// What an issuer says does not count if others can change it on the way, or have signed it.
func TestIssuerThatCannotBeTrustedLetsNobodyIn(t *testing.T) {
	t.Parallel()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	encode := base64.RawURLEncoding.EncodeToString
	for name, change := range map[string]func(*issuer){
		"another key": func(i *issuer) { i.sign = signedBy(t, key) },
		"no signature": func(i *issuer) {
			i.sign = func(text []byte) string { return encode([]byte(`{"alg":"none"}`)) + "." + encode(text) + "." }
		},
		"no token":        func(i *issuer) { i.sign = func([]byte) string { return "" } },
		"keys in clear":   func(i *issuer) { i.says = map[string]any{"jwks_uri": "http://id.example.com/keys"} },
		"tokens in clear": func(i *issuer) { i.says = map[string]any{"token_endpoint": "http://id.example.com/token"} },
		"another's info": func(i *issuer) {
			i.says, i.claims = map[string]any{"userinfo_endpoint": i.URL + "/info"}, map[string]any{"sub": "43"}
			i.info = map[string]any{"sub": "42"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := newIssuer(t)
			change(i)
			d, told := oidcBoard(t, i, Claim{"sub", "42"})
			b := &browser{d: d, cookies: make(map[string]string)}
			back := i.visit(t, b.open("/").Header().Get("Location"))
			if got := b.open("/signed-in?" + back.Encode()); got.Code != http.StatusBadGateway || told() == "" {
				t.Errorf("got %d %s and %q", got.Code, got.Body, told())
			}
		})
	}
	i := newIssuer(t)
	i.says = map[string]any{"authorization_endpoint": "http://id.example.com/authorize"}
	d, told := oidcBoard(t, i, Claim{"sub", "42"})
	b := &browser{d: d, cookies: make(map[string]string)}
	if got := b.open("/"); got.Code != http.StatusBadGateway || !strings.Contains(told(), "authorization_endpoint") {
		t.Errorf("got %d %s and %q", got.Code, got.Body, told())
	}
}

func TestClaimsOfTheUserInfoCount(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	i.says = map[string]any{
		"userinfo_endpoint": i.URL + "/info", "token_endpoint_auth_methods_supported": []string{"client_secret_post"},
	}
	i.inForm = true
	i.claims = map[string]any{"preferred_username": "ann"}
	i.info = map[string]any{"sub": "42", "groups": []string{"ops"}, "preferred_username": "bob"}
	d, told := oidcBoard(t, i, Claim{"groups", "ops"})
	b := &browser{d: d, cookies: make(map[string]string)}
	back := i.visit(t, b.open("/").Header().Get("Location"))
	b.open("/signed-in?" + back.Encode())
	// A name that users choose does not stand alone.
	got := b.open("/")
	if got.Code != http.StatusOK || !strings.Contains(got.Body.String(), "ann (42)") || told() != "" {
		t.Errorf("got %d and %q, want a page that knows ann (42)", got.Code, told())
	}
}

func TestSignInsEnd(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	d, _ := oidcBoard(t, i, Claim{"sub", "42"})
	o := d.cfg.OIDC
	b := &browser{d: d, cookies: make(map[string]string)}
	for _, c := range []struct {
		kind  string
		value func(until time.Time) any
		path  string
		want  map[bool]int // whether it has ended
	}{
		{
			viewerCookie, func(until time.Time) any { return seen{"ann", until} }, "/",
			map[bool]int{true: 302, false: 200},
		},
		{
			beginCookie, func(until time.Time) any { return begun{State: "s", To: "/", Until: until} },
			"/signed-in?state=s&error=denied",
			map[bool]int{true: 400, false: 403},
		},
	} {
		for ended, want := range c.want {
			until := time.Now().Add(time.Minute)
			if ended {
				until = time.Now().Add(-time.Millisecond)
			}
			w := httptest.NewRecorder()
			o.write(w, c.kind, c.value(until), 0)
			b.cookies = map[string]string{o.cookie(c.kind): w.Result().Cookies()[0].Value}
			if got := b.open(c.path); got.Code != want {
				t.Errorf("%s, ended %v: got %d, want %d", c.kind, ended, got.Code, want)
			}
		}
	}
	for path, want := range map[string]string{"//x": "//x", "/locks?" + strings.Repeat("&", 999): "/"} {
		b.cookies = make(map[string]string)
		back := i.visit(t, b.open(path).Header().Get("Location"))
		got := b.open("/signed-in?" + back.Encode()).Header().Get("Location")
		if got != "https://locks.example.com/app"+want {
			t.Errorf("from %.20q it comes back to %q", path, got)
		}
	}
	if got := b.open("/app/signed-in?state=x"); got.Code != http.StatusOK && got.Code != http.StatusNotFound {
		t.Errorf("a path that a proxy has left on: got %d", got.Code)
	}
}

func TestPasswordsAndChangesBesideAnIssuer(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "users")
	userFile(t, file, "probe", "secret")
	users, err := ReadUsers(file, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	i := newIssuer(t)
	i.claims = map[string]any{"email": "ann@example.com", "email_verified": true}
	cfg := Config{Users: users, Changes: true, Proxies: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0")}}
	d, _ := oidcBoardOf(t, i, cfg, Claim{"sub", "42"})
	if got := as(d, "probe", "secret", "/"); got.Code != http.StatusOK {
		t.Errorf("a password beside an issuer gets %d", got.Code)
	}
	got := as(d, "probe", "guess", "/")
	if asked := got.Header().Get("WWW-Authenticate"); got.Code != 401 || strings.HasPrefix(asked, "Basic") {
		t.Errorf("got %d, asked for %q: a browser would ask for a password", got.Code, asked)
	}
	b := &browser{d: d, cookies: make(map[string]string)}
	basic := "Basic " + base64.StdEncoding.EncodeToString([]byte("probe:guess"))
	back := i.visit(t, b.open("/", "Authorization", basic).Header().Get("Location"))
	b.open("/signed-in?"+back.Encode(), "Authorization", basic)
	page := b.open("/", "Authorization", basic, "X-Forwarded-User", "bob").Body.String()
	if !strings.Contains(page, "ann@example.com") || strings.Contains(page, "bob") {
		t.Errorf("one who has signed in, and sends an old password: %s", page)
	}
	post := func(site string, cookies map[string]string) int {
		r := httptest.NewRequest(http.MethodPost, "http://locks.example.com/stop", strings.NewReader("id=x"))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Accept", "text/html")
		r.Header.Set("Sec-Fetch-Site", site)
		for name, value := range cookies {
			r.AddCookie(&http.Cookie{Name: name, Value: value})
		}
		w := httptest.NewRecorder()
		d.ServeHTTP(w, r)
		return w.Code
	}
	if got := post("same-origin", nil); got != http.StatusUnauthorized {
		t.Errorf("a change by one who has not signed in gets %d", got)
	}
	if got := post("cross-site", b.cookies); got != http.StatusForbidden {
		t.Errorf("a change from another site gets %d", got)
	}
	if got := post("same-origin", b.cookies); got == http.StatusUnauthorized || got == http.StatusForbidden {
		t.Errorf("a change by one who has signed in gets %d", got)
	}
}
