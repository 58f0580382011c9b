package dashboard

// Who may see the pages.

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/bcrypt"

	"github.com/seed-a3166700/turnstile/internal/certfile"
)

const (
	maxUserFile  = 1 << 20
	maxUserCost  = 14 // of bcrypt: one check takes a second
	maxWaiting   = 32 // for what takes long when viewers sign in
	maxKnown     = 1000
	knownTime    = 5 * time.Minute
	checkTime    = 10 * time.Second
	refusalTime  = 10 * time.Second // between two messages about wrong passwords and tokens
	maxForwarded = 200              // bytes of what a proxy tells of a viewer
)

// Users are those who may see a dashboard. They are in a file with a line for each, as "htpasswd -B" writes it, or for
// a program with the SHA-256 hash of a token. It is read again when it has changed. Its methods may be called from
// several goroutines at once.
type Users struct {
	file  string
	line  places        // of passwords that are checked or wait for that
	turns chan struct{} // one is in it for each check, which takes a processor for a while
	key   []byte        // of what hash and known are asked with

	refusals refusals

	mu    sync.Mutex // guards the fields below; held while the file is read
	stamp os.FileInfo
	accounts
	known map[string]time.Time // until when it need not be checked again that a password fits
}

// accounts are what a file of users says.
type accounts struct {
	hashes map[string][]byte            // of passwords, by name
	tokens map[[sha256.Size]byte]string // names, by the hash of their tokens
}

// ReadUsers reads a file of users. complain is told if it is wrong when it has changed; then the former users stay.
func ReadUsers(file string, complain func(format string, args ...any)) (*Users, error) {
	u := &Users{
		file: file, turns: make(chan struct{}, max(1, runtime.NumCPU()/2)), key: make([]byte, 32),
		known: make(map[string]time.Time), refusals: refusals{complain: complain},
	}
	_, _ = rand.Read(u.key) // it never fails
	var err error
	if u.stamp, err = os.Stat(file); err != nil {
		return nil, err
	}
	if u.accounts, err = readUsers(file); err == nil && len(u.hashes) == 0 && len(u.tokens) == 0 {
		err = fmt.Errorf("%s has no user who could sign in", file)
	}
	return u, err
}

func readUsers(file string) (accounts, error) {
	f, err := os.Open(file)
	if err != nil {
		return accounts{}, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxUserFile+1))
	if err != nil {
		return accounts{}, err
	}
	if len(text) > maxUserFile {
		return accounts{}, fmt.Errorf("%s has more than %d bytes", file, maxUserFile)
	}
	a := accounts{hashes: make(map[string][]byte), tokens: make(map[[sha256.Size]byte]string)}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, hash, _ := strings.Cut(line, ":")
		if err := a.add(name, hash); err != nil {
			return accounts{}, fmt.Errorf("%s, line %d: %w", file, n, err)
		}
	}
	if err := lines.Err(); err != nil {
		return accounts{}, fmt.Errorf("%s: %w", file, err)
	}
	return a, nil
}

// add adds a user with a password or a token. One who has several tokens can exchange them one after the other.
func (a accounts) add(name, hash string) error {
	if name == "" {
		return errors.New("want NAME:HASH, as htpasswd -nB NAME prints it")
	}
	if sum, err := hex.DecodeString(hash); err == nil && len(sum) == sha256.Size {
		if owner, ok := a.tokens[[sha256.Size]byte(sum)]; ok {
			return fmt.Errorf("the token of %q is there already, for %q", name, owner)
		}
		a.tokens[[sha256.Size]byte(sum)] = name
		return nil
	}
	cost, err := bcrypt.Cost([]byte(hash))
	switch {
	case err != nil:
		return fmt.Errorf("the hash of %q is not one of bcrypt: make it with htpasswd -nB, "+
			"or that of a token with sha256sum", name)
	case cost > maxUserCost:
		return fmt.Errorf("the hash of %q has cost %d, want at most %d", name, cost, maxUserCost)
	case a.hashes[name] != nil:
		return fmt.Errorf("%q is there twice", name)
	}
	a.hashes[name] = []byte(hash)
	return nil
}

// refresh reads the file again if it has changed. The caller holds u.mu.
func (u *Users) refresh() {
	now, err := os.Stat(u.file)
	if !certfile.Changed(now, u.stamp) {
		return
	}
	u.stamp = now // from before it is read, so that a change meanwhile is noticed; nil if it is not there
	var a accounts
	if err == nil {
		a, err = readUsers(u.file)
	}
	if err != nil {
		u.refusals.complain("the former users stay, because the changed file cannot be used: %v", err)
		return
	}
	u.accounts = a
}

// errBusy is returned when others' passwords are being checked all the time.
var errBusy = errors.New("too many passwords are being checked")

// allow reports whether a name and a password belong together. from is where they come from.
func (u *Users) allow(ctx context.Context, name, password, from string) (bool, error) {
	hash, there := u.hash(name)
	if hash == nil {
		return false, nil
	}
	proof := u.mac(name, password, string(hash))
	if there && u.remember(proof, false) {
		return true, nil
	}
	if !u.line.take(from) {
		return false, errBusy
	}
	defer u.line.leave(from)
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	select {
	case u.turns <- struct{}{}:
	case <-ctx.Done():
		return false, errBusy
	}
	fits := bcrypt.CompareHashAndPassword(hash, []byte(password)) == nil
	<-u.turns
	if !fits || !there {
		u.refuse(fmt.Sprintf("for %q", head(name, maxForwarded)), from)
		return false, nil
	}
	return u.remember(proof, true), nil
}

// bearer returns the token of a request, and whether it has one.
func bearer(r *http.Request) (string, bool) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return strings.TrimSpace(token), strings.EqualFold(scheme, "Bearer")
}

// owner returns the name of the user whose token it is. It is found by its hash, so the time tells nothing of tokens.
func (u *Users) owner(token string) (string, bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.refresh()
	name, ok := u.tokens[sha256.Sum256([]byte(token))]
	return name, ok
}

// hash returns the hash of a user's password. If there is no such user it is that of another one, always the same: who
// guesses names learns nothing from the time that it takes. It is nil if there is no user at all.
func (u *Users) hash(name string) (hash []byte, there bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.refresh()
	if hash, there = u.hashes[name]; there || len(u.hashes) == 0 {
		return hash, there
	}
	names := slices.Sorted(maps.Keys(u.hashes))
	return u.hashes[names[int(u.mac(name)[0])%len(names)]], false
}

// mac is what stands for several texts, and cannot be made without the key.
func (u *Users) mac(texts ...string) string {
	mac := hmac.New(sha256.New, u.key)
	_, _ = fmt.Fprintf(mac, "%q", texts) // to memory
	return string(mac.Sum(nil))
}

// remember reports whether a proof is known, or makes it known. It is known until it has not been used for a while.
func (u *Users) remember(proof string, fits bool) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	now := time.Now()
	if fits = fits || now.Before(u.known[proof]); fits {
		if len(u.known) >= maxKnown {
			clear(u.known)
		}
		u.known[proof] = now.Add(knownTime)
	}
	return fits
}

// refuse tells of a wrong password or token.
func (u *Users) refuse(what, from string) {
	u.refusals.tell(fmt.Sprintf("wrong name, password or token, the last %s from %q", what, from))
}

// refusals tells of those who were not let in, not of each if there are many.
type refusals struct {
	complain func(format string, args ...any)

	mu      sync.Mutex // guards the fields below
	refused int        // since the last message
	told    time.Time  // when that was
}

func (f *refusals) tell(last string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refused++
	if now := time.Now(); now.Sub(f.told) >= refusalTime {
		f.complain("%s (%d since the last message)", last, f.refused)
		f.refused, f.told = 0, now
	}
}

// places are those of requests that wait for something that takes long. One address has at most a quarter of them: all
// who come through a proxy that is not named (--trust-proxy) share these.
type places struct {
	mu    sync.Mutex // guards the fields below
	taken int
	by    map[string]int // how many an address has
}

// take takes a place for a request from an address, if there is one for it.
func (p *places) take(from string) bool {
	from = network(from)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken == maxWaiting || p.by[from] == maxWaiting/4 {
		return false
	}
	if p.by == nil {
		p.by = make(map[string]int)
	}
	p.taken++
	p.by[from]++
	return true
}

// leave gives the place back.
func (p *places) leave(from string) {
	from = network(from)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken--
	if p.by[from]--; p.by[from] == 0 {
		delete(p.by, from)
	}
}

// network returns the part of an address that one party has for itself: all but the port of IPv4, and of IPv6 as much
// as a site may be given (48 bits: RFC 6177).
func network(from string) string {
	addr, err := netip.ParseAddr(strings.Trim(from, "[]"))
	if err != nil {
		port, err := netip.ParseAddrPort(from)
		if err != nil {
			return from
		}
		addr = port.Addr()
	}
	if addr = addr.Unmap().WithZone(""); addr.Is4() {
		return addr.String()
	}
	prefix, _ := addr.Prefix(48) // it has so many bits
	return prefix.String()
}

// signedIn lets only users through, but for what probes ask.
func (d *Dashboard) signedIn(next http.Handler) http.Handler {
	users, issuer := d.cfg.Users, d.cfg.OIDC
	if users == nil && issuer == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Not a POST, for which there is no such probe, but a page that says so.
		ok := r.Method != http.MethodPost && (r.URL.Path == "/livez" || r.URL.Path == "/readyz")
		if issuer != nil { // for the page of those who have signed out; it tells nothing of what is there
			ok = ok || r.URL.Path == "/style.css" || r.URL.Path == "/icon.svg"
		}
		var err error
		name, password, named := r.BasicAuth()
		token, given := bearer(r)
		viewer, in := "", false
		if issuer != nil {
			viewer, in = issuer.viewer(r)
		}
		_, from := d.user(r)
		switch {
		case ok:
		case issuer != nil && issuer.serve(w, r, in, from):
			return
		case in: // before a password, which a browser may still send that knew one
			name, ok = viewer, true
		case users != nil && named:
			ok, err = users.allow(r.Context(), name, password, from)
		case users != nil && given:
			if name, ok = users.owner(token); !ok {
				users.refuse("a token", from)
			}
		}
		switch {
		case ok:
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), viewerKey{}, viewerOf{name, in})))
		case err != nil:
			w.Header().Set("Retry-After", "5")
			plain(w, http.StatusServiceUnavailable, err.Error()+": try again")
		case issuer != nil && mayBegin(r):
			issuer.begin(w, r, from)
		case issuer != nil: // for Basic, a browser would ask for a password
			w.Header().Set("WWW-Authenticate", `Bearer realm="turnstile"`)
			plain(w, http.StatusUnauthorized, "Nothing was done. Open the dashboard in another tab to sign in, then "+
				"reload this page. A program sends a password or a token of --user-file.")
		default:
			w.Header().Set("WWW-Authenticate", `Basic realm="turnstile", charset="UTF-8"`)
			plain(w, http.StatusUnauthorized, "Sign in with a name and a password, or with a token, of --user-file.")
		}
	})
}

// viewerKey is the key of who has sent a request, a viewerOf, in its context. It is looked up once: the file may change
// while the request is served.
type viewerKey struct{}

type viewerOf struct {
	name     string // that of one who has signed in
	atIssuer bool
}

// user returns the name of who sent a request, and from where it came. Of a proxy that is trusted it believes both.
func (d *Dashboard) user(r *http.Request) (name, from string) {
	from = r.RemoteAddr
	peer, err := netip.ParseAddrPort(from)
	trusted := func(proxy netip.Prefix) bool { return proxy.Contains(peer.Addr().Unmap()) }
	if err == nil && slices.ContainsFunc(d.cfg.Proxies, trusted) {
		if list := r.Header.Values("X-Forwarded-User"); len(list) == 1 { // of two, the client may have sent one
			name = head(list[0], maxForwarded)
		}
		if list := r.Header.Values("X-Forwarded-For"); len(list) > 0 {
			last := list[len(list)-1] // the proxy has added its end; what stands before that is the client's
			last = strings.TrimSpace(last[strings.LastIndexByte(last, ',')+1:])
			from = cmp.Or(head(last, maxForwarded), from)
		}
	}
	if d.cfg.Users != nil || d.cfg.OIDC != nil {
		v, _ := r.Context().Value(viewerKey{}).(viewerOf)
		name = v.name
	}
	return name, from
}

// viewer returns who sent a request, as text.
func (d *Dashboard) viewer(r *http.Request) string {
	name, from := d.user(r)
	if name == "" {
		return from
	}
	return name + " at " + from
}
