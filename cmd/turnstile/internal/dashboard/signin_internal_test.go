package dashboard

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/crypto/bcrypt"
)

// userFile writes a file of users: names and passwords.
func userFile(tb testing.TB, name string, users ...string) {
	tb.Helper()
	var b strings.Builder
	for i := 0; i < len(users); i += 2 {
		hash, err := bcrypt.GenerateFromPassword([]byte(users[i+1]), bcrypt.MinCost)
		if err != nil {
			tb.Fatal(err)
		}
		fmt.Fprintf(&b, "%s:%s\n", users[i], strings.Replace(string(hash), "$2a$", "$2y$", 1)) // as htpasswd writes
	}
	if err := os.WriteFile(name+".new", []byte("# users\n\n"+b.String()), 0o600); err != nil {
		tb.Fatal(err)
	}
	if err := os.Rename(name+".new", name); err != nil {
		tb.Fatal(err)
	}
}

// as asks for a page as a user.
func as(d *Dashboard, user, password, path string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, "http://localhost"+path, http.NoBody)
	r.SetBasicAuth(user, password)
	w := httptest.NewRecorder()
	d.ServeHTTP(w, r)
	return w
}

func TestOnlyUsersSeeThePages(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // in which the passwords take no time to check
		file := filepath.Join(t.TempDir(), "users")
		userFile(t, file, "ann", "secret of ann", "bö", "")
		var mu sync.Mutex
		var complaints []string
		users, err := ReadUsers(file, func(format string, args ...any) {
			mu.Lock()
			defer mu.Unlock()
			complaints = append(complaints, fmt.Sprintf(format, args...))
		})
		if err != nil {
			t.Fatal(err)
		}
		w, s := ordinary()
		d := board(t, w, s, Config{Users: users, Changes: true})
		for _, path := range append(allPages, "/style.css", "/live.js") {
			for name, got := range map[string]*httptest.ResponseRecorder{
				"no one": get(d, path), "another": as(d, "bob", "secret of ann", path),
				"another password": as(d, "ann", "Secret of ann", path), "no name": as(d, "", "", path),
			} {
				asked := strings.HasPrefix(got.Header().Get("WWW-Authenticate"), "Basic ")
				if got.Code != http.StatusUnauthorized || !asked || got.Body.Len() > 100 {
					t.Errorf("%s: %s sees %d %s", path, name, got.Code, got.Body)
				}
			}
			if got := as(d, "ann", "secret of ann", path); got.Code == http.StatusUnauthorized {
				t.Errorf("%s: ann sees %d", path, got.Code)
			}
		}
		if len(users.known) != 1 {
			t.Errorf("%d proofs are kept, want ann's", len(users.known))
		}
		for _, path := range []string{"/livez", "/readyz"} {
			if got := get(d, path); got.Code != http.StatusOK {
				t.Errorf("%s: a probe gets %d", path, got.Code)
			}
			if got := ask(d, http.MethodPost, path, ""); got.Code != http.StatusUnauthorized {
				t.Errorf("%s: a POST gets %d %s", path, got.Code, got.Body)
			}
		}
		if len(complaints) != 1 || !strings.Contains(complaints[0], `the last for "bob" from "192.0.2.1:`) {
			t.Errorf("of many wrong passwords it tells %q", complaints)
		}
		if got := as(d, "bö", "", "/"); got.Code != http.StatusOK || !strings.Contains(got.Body.String(), "bö") {
			t.Errorf("a name that is not ASCII: %d", got.Code)
		}

		userFile(t, file, "ann", "another", "cid", "x")
		for user, want := range map[[2]string]int{
			{"ann", "secret of ann"}: 401, {"ann", "another"}: 200, {"bö", ""}: 401, {"cid", "x"}: 200,
		} {
			if got := as(d, user[0], user[1], "/"); got.Code != want {
				t.Errorf("after a change %q get %d, want %d", user, got.Code, want)
			}
		}
		for _, broken := range []func() error{
			func() error { return os.WriteFile(file, []byte("ann:{SHA}abc\n"), 0o600) },
			func() error { return os.WriteFile(file, make([]byte, maxUserFile+1), 0o600) },
			func() error { return os.Remove(file) },
		} {
			complaints = nil
			if err := broken(); err != nil {
				t.Fatal(err)
			}
			for range 3 {
				if got := as(d, "cid", "x", "/"); got.Code != http.StatusOK {
					t.Errorf("with a broken file cid gets %d", got.Code)
				}
			}
			if len(complaints) != 1 || !strings.Contains(complaints[0], "the former users stay") {
				t.Errorf("complaints: %q", complaints)
			}
		}
		userFile(t, file)
		if got := as(d, "cid", "x", "/"); got.Code != http.StatusUnauthorized {
			t.Errorf("one whose line was removed, the last, gets %d", got.Code)
		}
		userFile(t, file, "dan", "y")
		if got := as(d, "dan", "y", "/"); got.Code != http.StatusOK || as(d, "cid", "x", "/").Code == http.StatusOK {
			t.Errorf("a file that is back is not used: %d", got.Code)
		}
	})
}

func TestProgramsSignInWithTokens(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "users")
		token := func(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) }
		write := func(lines ...string) {
			if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		write("probe:"+token("old"), "probe:"+strings.ToUpper(token("new")))
		var complaints []string
		users, err := ReadUsers(file, func(format string, args ...any) {
			complaints = append(complaints, fmt.Sprintf(format, args...))
		})
		if err != nil {
			t.Fatal(err)
		}
		w, s := ordinary()
		d := board(t, w, s, Config{Users: users, Changes: true})
		for header, want := range map[string]int{
			"Bearer old": 200, "bearer new": 200, "Bearer": 401, "Bearer " + token("new"): 401, "Token new": 401,
			"Bearer new old": 401, "new": 401,
		} {
			if got := get(d, "/locks", "Authorization", header); got.Code != want {
				t.Errorf("%q: %d, want %d", header, got.Code, want)
			}
		}
		for _, password := range []string{"new", token("new")} {
			if got := as(d, "probe", password, "/"); got.Code != http.StatusUnauthorized {
				t.Errorf("the password %q: %d", password, got.Code)
			}
		}
		told := `wrong name, password or token, the last a token from "192.0.2.1:`
		if len(complaints) != 1 || !strings.Contains(complaints[0], told) {
			t.Errorf("it tells %q", complaints)
		}
		r := httptest.NewRequest(http.MethodGet, "http://localhost/", http.NoBody)
		r.Header.Set("Authorization", "Bearer new")
		d.signedIn(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			userFile(t, file, "ann", "secret") // who was let in stays known, also if the file changes meanwhile
			if got := d.viewer(r); got != "probe at 192.0.2.1:1234" {
				t.Errorf("the viewer is %q", got)
			}
		})).ServeHTTP(httptest.NewRecorder(), r)
		if got := get(d, "/", "Authorization", "Bearer new"); got.Code != http.StatusUnauthorized {
			t.Errorf("a token that was removed: %d", got.Code)
		}
		write("ann:"+token("same"), "bob:"+token("same"))
		_, err = readUsers(file)
		if err == nil || !strings.Contains(err.Error(), `line 2: the token of "bob" is there already, for "ann"`) {
			t.Errorf("the same token twice: %v", err)
		}
	})
}

// A flood of wrong passwords does not keep out who has signed in, and takes half of the processors at most.
func TestPasswordsAreCheckedInTurns(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "users")
	userFile(t, file, "ann", "secret")
	users, err := ReadUsers(file, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	w, s := ordinary()
	d := board(t, w, s, Config{Users: users})
	if got := as(d, "ann", "secret", "/"); got.Code != http.StatusOK {
		t.Fatal(got.Code)
	}
	for range cap(users.turns) {
		users.turns <- struct{}{}
	}
	if got := as(d, "ann", "secret", "/"); got.Code != http.StatusOK {
		t.Errorf("one who has signed in gets %d", got.Code)
	}
	r := httptest.NewRequest(http.MethodGet, "http://localhost/", http.NoBody)
	r.SetBasicAuth("ann", "guess")
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	got := httptest.NewRecorder()
	d.ServeHTTP(got, r.WithContext(ctx))
	if got.Code != http.StatusServiceUnavailable || got.Header().Get("Retry-After") == "" {
		t.Errorf("a guess gets %d", got.Code)
	}
	for n := range maxWaiting {
		users.line.take(strconv.Itoa(n))
	}
	if got := as(d, "ann", "guess", "/"); got.Code != http.StatusServiceUnavailable {
		t.Errorf("a guess behind many gets %d", got.Code)
	}
	<-users.turns
	users.line.leave("0")
	if got := as(d, "ann", "guess", "/"); got.Code != http.StatusUnauthorized {
		t.Errorf("a guess gets %d", got.Code)
	}
	for i := range 2 * maxKnown {
		users.remember(strconv.Itoa(i), true)
	}
	if len(users.known) > maxKnown {
		t.Errorf("%d proofs are kept", len(users.known))
	}
}

func TestFilesOfUsersThatAreWrongAreRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	hash := func(cost int) string {
		h, err := bcrypt.GenerateFromPassword([]byte("x"), bcrypt.MinCost)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Replace(string(h), "$04$", fmt.Sprintf("$%02d$", cost), 1)
	}
	for text, want := range map[string]string{
		"":                                  "has no user",
		"# ann\n\n":                         "has no user",
		"ann\n":                             `line 1: the hash of "ann" is not one of bcrypt: make it`,
		"\nann:$apr1$a$b\n":                 `line 2: the hash of "ann" is not one of bcrypt`,
		"ann:secret\n":                      "is not one of bcrypt",
		":" + hash(4):                       "want NAME:HASH",
		"ann:" + hash(15):                   `the hash of "ann" has cost 15, want at most 14`,
		"a:" + hash(4) + "\na:" + hash(4):   `line 2: "a" is there twice`,
		strings.Repeat("x", 1<<17):          "too long",
		strings.Repeat("\n", maxUserFile+1): "has more than",
	} {
		file := filepath.Join(dir, "users")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadUsers(file, t.Logf); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: got %v, want %q", text, err, want)
		}
	}
	if _, err := ReadUsers(filepath.Join(dir, "none"), t.Logf); err == nil {
		t.Error("a file that is not there is read")
	}
}

// Only a proxy that is trusted says who a viewer is.
func TestViewersAreWhoTheirProxySays(t *testing.T) {
	t.Parallel()
	w, s := ordinary()
	proxies := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/24"), netip.MustParsePrefix("::1/128")}
	d := board(t, w, s, Config{Proxies: proxies})
	for _, test := range []struct{ from, user, list, want string }{
		{"10.0.0.7:1", "ann", "192.0.2.9", "ann at 192.0.2.9"},
		{"[::ffff:10.0.0.7]:1", "ann", "spoofed, 192.0.2.9", "ann at 192.0.2.9"},
		{"[::1]:1", "", "", "[::1]:1"},
		{"[::1]:1", "", "192.0.2.9, ", "[::1]:1"},
		{"10.0.1.7:1", "ann", "192.0.2.9", "10.0.1.7:1"},
		{"@", "ann", "192.0.2.9", "@"},
	} {
		r := httptest.NewRequest(http.MethodGet, "http://localhost/", http.NoBody)
		r.RemoteAddr = test.from
		r.Header.Set("X-Forwarded-User", test.user)
		if test.list != "" {
			r.Header.Set("X-Forwarded-For", test.list)
		}
		if got := d.viewer(r); got != test.want {
			t.Errorf("%+v: got %q", test, got)
		}
		forged := r.Clone(t.Context())
		forged.Header.Add("X-Forwarded-User", "boss")
		if got := d.viewer(forged); strings.Contains(got, "ann") || strings.Contains(got, "boss") {
			t.Errorf("%+v: with two names: %q", test, got)
		}
		got := httptest.NewRecorder()
		d.ServeHTTP(got, r)
		if shown := strings.Contains(got.Body.String(), "Signed in as"); shown != strings.HasPrefix(test.want, "ann") {
			t.Errorf("%+v: it is shown: %t", test, shown)
		}
	}
}
