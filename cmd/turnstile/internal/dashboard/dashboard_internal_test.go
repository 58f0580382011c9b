package dashboard

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/ensemble"
	"github.com/seed-a3166700/turnstile/internal/survey"
	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zktest"
)

func TestPagesShowWhatIsThere(t *testing.T) {
	t.Parallel()
	synctest.Test(t, showWhatIsThere) // so that no second passes, and pages show the ages that they should
}

func showWhatIsThere(t *testing.T) {
	t.Helper()
	w, s := ordinary()
	d := board(t, w, s, Config{Changes: true, Root: "/app"})
	for _, c := range []struct {
		path   string
		wanted []string
	}{
		{"/", []string{
			"Overview", "zk1:2181,zk2:2181", "/app", ">Live<", "/jobs/<wbr>report", "Deadlock<", "1 possible",
			"zk3:2181", "no answer", "7 ready", "60 dead", "paused",
			"too short a tick", "set another one",
		}},
		{"/locks", []string{"/jobs/<wbr>report", "ann", ">2<", "1m29s", "/jobs/<wbr>alone", "dan", ">election<"}},
		{"/locks?q=report", []string{"/jobs/<wbr>report", "1 path"}},
		{"/locks?q=eve", []string{"/leaders/<wbr>main", "1 path"}},
		{"/locks?kind=election", []string{"/leaders/<wbr>main", "1 path"}},
		{"/lock?path=/jobs/report", []string{
			"Holder", "ann", "bob", "cid", "0x100", "stuck since noon", `href="revoke?node=%2Fjobs%2Freport%2F0`,
			"layout curator",
		}},
		{"/lock?path=/gone", []string{"no lock at this path now"}},
		{"/waits", []string{"Deadlock<", "Possible deadlock<", "red pid 5", "/a/<wbr>two", "ann", "2 blocked", "<cir"}},
		{"/leaders", []string{"/leaders/<wbr>main", "eve", "1m30s"}},
		{"/queues", []string{"/queues/<wbr>mail", ">7<", ">60<", ">12<", ">0.4<", "of another program", "paused"}},
		{"/queue?path=/queues/mail", []string{
			"ops pid 4: quiet", "worker0 pid 1", ">2 more: turnstile queue consumers",
			"/queues/mail failed", "10 more", "item49", ">12<", ">0.4<",
			`href="items?kind=ready&amp;path=%2Fqueues%2Fmail"`,
		}},
		{"/queue?path=/queues/old", []string{"its items are not read"}},
		{"/queue?path=/gone", []string{"no queue at this path"}},
		{"/sessions", []string{"0x77", "10.0.0.7:1234", "waits", "holds", "cons is not told", "0x100", "bob"}},
		{"/sessions?q=0x77", []string{"0x77", "1 session<"}},
		{"/servers", []string{"leader", "0.20 ms", "connection refused", ">7<", "connected to it"}},
		{"/tree", []string{"6 bytes", "world:anyone:cdrwa", ">one</a>", "&lt;b&gt;", "1 more are not read"}},
		{"/changes", []string{"Nothing was changed here."}},
		{"/nothing", []string{"No such page"}},
		{"/revoke?path=/jobs/report&node=/jobs/report/0&token=1", []string{`name="ticket"`, "ann", "report</span>"}},
		{"/revoke?path=/jobs/report&node=/jobs/report/0&token=9", []string{"does not hold the lock any more"}},
	} {
		got := get(d, c.path)
		if want := map[bool]int{true: 404, false: 200}[c.path == "/nothing"]; got.Code != want {
			t.Errorf("%s: %d", c.path, got.Code)
		}
		body := got.Body.String()
		for _, want := range c.wanted {
			if !strings.Contains(body, want) {
				t.Errorf("%s does not show %q:\n%s", c.path, want, body)
			}
		}
		part := get(d, c.path, partHeader, "1").Body.String()
		if strings.Contains(part, "<html") || !strings.Contains(part, `<main id="main"`) {
			t.Errorf("%s: the part is\n%s", c.path, part)
		}
	}
}

// What is empty says so, and what cannot be known says why.
func TestPagesSayWhatIsMissing(t *testing.T) {
	t.Parallel()
	empty := &survey.Snapshot{Mode: survey.Live, Listed: 1}
	cut := &survey.Snapshot{Mode: survey.Cut, Listed: 1}
	sampled := &survey.Snapshot{
		Mode: survey.Sampled, Listed: 1, Partial: "after 30s",
		Denied: survey.Missed{Count: 12, Paths: []string{"/secret"}},
	}
	for _, c := range []struct {
		snapshot     *survey.Snapshot
		path, wanted string
	}{
		{empty, "/", "Nobody waits."},
		{empty, "/locks", "Nothing is held, and nobody waits."},
		{empty, "/locks?q=x", "Nothing matches."},
		{empty, "/waits", "Nobody waits."},
		{empty, "/leaders", "There is no election."},
		{empty, "/queues", "There is no queue."},
		{empty, "/sessions", "No session is known."},
		{empty, "/servers", "No server is known."},
		{nil, "/", "Reading"},
		{cut, "/", "Not connected"},
		{cut, "/locks", "No server of the ensemble answers"},
		{cut, "/sessions", "have not been asked yet"},
		{sampled, "/locks", "Sampled"},
		{sampled, "/", "after 30s"},
		{sampled, "/", "12 paths may not be read"},
		{sampled, "/", "/secret"},
		{sampled, "/", "and 11 more"},
		{&survey.Snapshot{Mode: survey.Live}, "/", "There is no path / now."},
	} {
		w := new(world)
		d := board(t, w, c.snapshot, Config{})
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // it does not wait for what comes late
		d.collector.servers.get(ctx, d.collector)
		got := get(d, c.path).Body.String()
		if !strings.Contains(got, c.wanted) {
			t.Errorf("%s does not show %q:\n%s", c.path, c.wanted, got)
		}
	}
}

// Names and texts of others cannot become a part of the page, hide something, or make it large.
func TestTextOfOthersIsText(t *testing.T) {
	t.Parallel()
	odd := "\x1b[2J\u202e<script>alert(1)</script>\"'><img src=x onerror=alert(1)>\u200b\u2028{{.}}\xff" +
		strings.Repeat("long ", 20000)
	path := "/" + odd + "/x"
	const shortQueue = "/q\x1b\u202e<b>"
	w := &world{
		queues: map[string]ensemble.Queue{
			"/q" + odd: {Ready: 1, Dead: 1, Paused: odd}, shortQueue: {Ready: 1, Dead: 1, Paused: odd},
		},
		items: map[string]ensemble.Item{"x": {
			ID: odd, State: "dead", Reason: odd, Group: odd, Consumer: odd, Body: []byte(odd)[:ensemble.MaxData],
			Failures: []ensemble.Failure{{Reason: odd}}, Headers: []ensemble.Header{{Name: odd, Value: odd}},
		}},
		lacks:    []string{odd},
		findings: []ensemble.Finding{{Text: odd, Remedy: odd}},
		servers: []ensemble.Server{
			{Address: odd, Mode: odd, Version: odd, Latency: odd}, {Address: odd, Err: errors.New(odd)},
		},
		records: []lock.Record{{
			Request: lock.Revocation{Reason: odd, By: lock.Owner{Host: odd, Label: odd}},
			Holders: []lock.RecordHolder{{Data: odd}},
		}},
		sessions: []ensemble.Session{{ID: 1, Address: odd, Server: odd}},
		deadlocks: []lock.FoundDeadlock{{
			Confirmed: true, Steps: []lock.DeadlockStep{{Path: path, Owner: lock.Owner{Host: odd}}, {Path: path}},
		}},
	}
	s := &survey.Snapshot{
		Mode: survey.Sampled, Listed: 1, Server: odd, Partial: odd,
		Denied: survey.Missed{Count: 1, Paths: []string{odd}},
	}
	short := "/\x1b\u202e<b>"
	w.add(s, short, survey.Lock, odd, odd, odd)
	w.add(s, path, survey.Lock, odd, odd)
	w.add(s, "/e"+odd, survey.Election, odd, odd)
	s.Entries[0].Layout = odd
	s.Entries = append(s.Entries, survey.Entry{Path: "/q" + odd, Kind: survey.Queue})
	s.Entries = append(s.Entries, survey.Entry{Path: shortQueue, Kind: survey.Queue})
	slices.SortFunc(s.Entries, func(a, b survey.Entry) int { return strings.Compare(a.Path, b.Path) })
	d := board(t, w, s, Config{Changes: true, Data: true})
	later := *s
	later.Entries = later.Entries[1:]
	d.collector.take(&later, time.Now()) // so that there is a change
	d.collector.take(s, time.Now())
	d.cfg.Ensemble, d.cfg.Root = odd, "/"+odd
	q := url.Values{"path": {short}}.Encode()
	pages := append([]string{
		"/lock?" + q, "/lock?" + url.Values{"path": {path}}.Encode(), "/locks?" + url.Values{"q": {odd}}.Encode(),
		"/queue?" + url.Values{"path": {"/q" + odd}}.Encode(),
		"/changequeue?" + url.Values{"path": {"/q" + odd}, "do": {"purge"}}.Encode(),
		"/changequeue?" + url.Values{"path": {shortQueue}, "do": {"purge"}}.Encode(),
		"/queue?" + url.Values{"path": {shortQueue}}.Encode(),
		"/items?" + url.Values{"path": {shortQueue}, "kind": {odd}}.Encode(),
		"/items?" + url.Values{"path": {shortQueue}, "kind": {"dead"}}.Encode(),
		"/items?" + url.Values{"path": {"/q" + odd}, "kind": {"dead"}}.Encode(),
		"/item?" + url.Values{"path": {shortQueue}, "id": {"x"}}.Encode(),
		"/item?" + url.Values{"path": {shortQueue}, "id": {odd}}.Encode(),
		"/revoke?" + q + "&token=1&node=" + url.QueryEscape(short+"/0"),
		"/sessions?" + url.Values{"q": {"\x1b"}}.Encode(),
	}, allPages...)
	for _, page := range pages {
		got := get(d, page)
		body := got.Body.String()
		if len(body) > 100_000 {
			t.Errorf("%.40s has %d bytes", page, len(body))
		}
		for _, bad := range []string{"<script>", "<img", "<b>", `"'>`} {
			if strings.Contains(body, bad) {
				t.Errorf("%.40s has %q:\n%s", page, bad, body)
			}
		}
		if i := strings.IndexFunc(body, func(r rune) bool {
			return r != '\n' && (!unicode.IsGraphic(r) || r == unicode.ReplacementChar)
		}); i >= 0 {
			t.Errorf("%.40s has %q", page, body[max(0, i-60):i+20])
		}
	}
	// The links still lead there.
	href := regexp.MustCompile(`href="(lock\?path=%2F%1B[^"]*)"`).FindStringSubmatch(get(d, "/locks").Body.String())
	if href == nil || !strings.Contains(get(d, "/"+href[1]).Body.String(), "Holder") {
		t.Errorf("the link is %q", href)
	}
}

func TestAnswersHaveTheirHeaders(t *testing.T) {
	t.Parallel()
	w, s := ordinary()
	d := board(t, w, s, Config{Changes: true})
	files := []string{"/style.css", "/live.js", "/icon.svg", "/livez", "/readyz", "/a/b"}
	for _, path := range append(files, allPages...) {
		got := get(d, path)
		for name, want := range map[string]string{
			"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; " +
				"img-src 'self' data:; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
			"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
			"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
		} {
			if got.Header().Get(name) != want {
				t.Errorf("%s: %s is %q", path, name, got.Header().Get(name))
			}
		}
		body := got.Body.String()
		if strings.Contains(body, " style=") || strings.Contains(body, "<style") || strings.Contains(body, " onclick") {
			t.Errorf("%s has what the policy forbids", path)
		}
		if kind := got.Header().Get("Content-Type"); kind == "" || strings.HasPrefix(kind, "text/html") &&
			got.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %v", path, got.Header())
		}
	}
	packed := get(d, "/locks", "Accept-Encoding", "gzip")
	if packed.Header().Get("Content-Encoding") != "gzip" {
		t.Fatal("it is not compressed")
	}
	z, err := gzip.NewReader(packed.Body)
	if err != nil {
		t.Fatal(err)
	}
	if plain, err := io.ReadAll(z); err != nil || !bytes.Contains(plain, []byte("/jobs/")) {
		t.Fatal(err)
	}
	// Its length would tell of the secret.
	if get(d, allPages[len(allPages)-1], "Accept-Encoding", "gzip").Header().Get("Content-Encoding") != "" {
		t.Error("a page with a secret is compressed")
	}
}

func TestOtherMethodsAreRefused(t *testing.T) {
	t.Parallel()
	w, s := ordinary()
	for _, changes := range []bool{false, true} {
		d := board(t, w, s, Config{Changes: changes})
		for _, method := range []string{"POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "X"} {
			for _, path := range []string{"/", "/locks", "/revoke", "/nothing"} {
				got := ask(d, method, path, "")
				allowed := changes && method == http.MethodPost
				if !allowed && got.Code != http.StatusMethodNotAllowed || allowed && got.Code == http.StatusOK {
					t.Errorf("with changes %t: %s %s: %d", changes, method, path, got.Code)
				}
			}
		}
		for _, path := range allPages {
			got := ask(d, http.MethodHead, path, "")
			if changes && got.Code != get(d, path).Code {
				t.Errorf("HEAD %s: %d", path, got.Code)
			}
		}
		if got := get(d, allPages[len(allPages)-1]); changes != (got.Code == http.StatusOK) {
			t.Errorf("with changes %t the form has %d", changes, got.Code)
		}
	}
}

// Another site cannot have its own name lead here.
func TestOnlyOwnNamesAreAnswered(t *testing.T) {
	t.Parallel()
	w, s := ordinary()
	d := board(t, w, s, Config{Hosts: []string{"locks.example.com"}})
	for host, known := range map[string]bool{
		"localhost": true, "localhost:8080": true, "LOCALHOST.": true, "127.0.0.1:80": true,
		"[::1]:80": true, "[::1]": true,
		"locks.example.com": true, "Locks.Example.Com:443": true, "10.1.2.3:8080": true,
		"evil.example.com": false, "locks.example.com.evil.com": false, "10.1.2.4": false, "": false,
		"127.0.0.1.evil.com": false,
		"localhost.evil.com": false,
	} {
		r := httptest.NewRequest(http.MethodGet, "http://localhost/", http.NoBody)
		r.Host = host
		local := &net.TCPAddr{IP: net.IPv4(10, 1, 2, 3), Port: 8080}
		r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.Addr(local)))
		got := httptest.NewRecorder()
		d.ServeHTTP(got, r)
		if want := map[bool]int{true: 200, false: http.StatusMisdirectedRequest}[known]; got.Code != want {
			t.Errorf("%q: got %d, want %d", host, got.Code, want)
		}
	}
}

// A viewer of a page on which nothing happens gets little, however old what it shows becomes.
func TestNothingNewIsNotSentAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, s := ordinary()
		for i := range s.Entries {
			for k := range s.Entries[i].Holders {
				s.Entries[i].Holders[k].Since = time.Now()
			}
			if s.Entries[i].First != nil {
				s.Entries[i].First.Since = time.Now()
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		d := board(t, w, s, Config{})
		go func() { _ = d.collector.run(ctx) }() // ends with ctx
		time.Sleep(stripTime + time.Second)      // in a bubble: drawings are of ten minutes
		for _, path := range allPages {
			first := get(d, path, partHeader, "1")
			tag := first.Header().Get("ETag")
			same := 0
			for range 20 {
				time.Sleep(2 * time.Second) // in a bubble
				got := get(d, path, partHeader, "1", "If-None-Match", tag)
				if got.Code == http.StatusNotModified && got.Body.Len() == 0 {
					same++
				}
				if got.Header().Get("ETag") != "" {
					tag = got.Header().Get("ETag")
				}
			}
			// The longest wait grows, and is drawn so on the overview: a step is ten seconds.
			least := 20
			if strings.HasPrefix(path, "/?") || path == "/" {
				least = 14
			}
			if same < least {
				t.Errorf("%s was the same %d times of 20", path, same)
			}
		}
	})
}

// All viewers share what is read, and nothing is read while nobody looks. A viewer that leaves ends nothing.
func TestViewersShareWhatIsRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, s := ordinary()
		d := board(t, w, s, Config{})
		time.Sleep(time.Hour) // in a bubble
		if n := w.asks(); n != 0 {
			t.Errorf("asked %d times while nobody looked", n)
		}
		for range 4 {
			var viewers sync.WaitGroup
			for i := range 100 {
				viewers.Go(func() {
					r := httptest.NewRequest(http.MethodGet, "http://localhost"+allPages[i%len(allPages)], http.NoBody)
					ctx, leave := context.WithCancel(r.Context())
					if i%3 == 0 {
						leave()
					}
					defer leave()
					d.ServeHTTP(httptest.NewRecorder(), r.WithContext(ctx))
				})
			}
			viewers.Wait()
			time.Sleep(time.Second) // in a bubble
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		for what, most := range map[string]int{
			"deadlocks": 4, "sessions": 1, "servers": 1, "line": 6, "queue": 8, "findings": 1,
		} {
			if got := w.asked[what]; got == 0 || got > most {
				t.Errorf("%s: asked %d times, want at most %d", what, got, most)
			}
		}
	})
}

// A server that hangs does not hang the pages.
func TestPagesDoNotWaitForServers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, s := ordinary()
		d := board(t, w, s, Config{})
		source := w.source()
		source.Servers = func(ctx context.Context) []ensemble.Server {
			<-ctx.Done()
			return nil
		}
		d.source = source
		d.collector.servers.read = func(ctx context.Context, _ []ensemble.Server) []ensemble.Server {
			return source.Servers(ctx)
		}
		began := time.Now()
		if got := get(d, "/servers").Body.String(); !strings.Contains(got, "not been asked yet") {
			t.Error(got)
		}
		if d := time.Since(began); d > firstRead {
			t.Errorf("it took %v", d) // in a bubble
		}
	})
}

// form returns the ticket that the form of a page has.
func form(t *testing.T, body string) string {
	t.Helper()
	found := regexp.MustCompile(`name="ticket" value="([^"]+)"`).FindStringSubmatch(body)
	if found == nil {
		t.Fatalf("there is no ticket:\n%s", body)
	}
	return found[1]
}

func TestRevocationIsConfirmed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, s := ordinary()
		d := board(t, w, s, Config{Changes: true})
		const (
			page  = "/revoke?path=/jobs/report&node=/jobs/report/0&token=1"
			other = "/revoke?path=/jobs/alone&node=/jobs/alone/0&token=1"
		)
		otherNode := strings.Replace(page, "report/0", "report/1", 1)
		otherToken := strings.Replace(page, "token=1", "token=2", 1)
		ticket := func(path string) string { return form(t, get(d, path).Body.String()) }
		for name, got := range map[string]*httptest.ResponseRecorder{
			"without a ticket":      send(d, page, "reason", "x"),
			"with a made-up ticket": send(d, page, "reason", "x", "ticket", "AAAA"),
			"without a reason":      send(d, page, "ticket", ticket(page)),
			"with another's ticket": send(d, page, "reason", "x", "ticket", ticket(other)),
			"with another node":     send(d, otherNode, "reason", "x", "ticket", ticket(page)),
			"with another token":    send(d, otherToken, "reason", "x", "ticket", ticket(page)),
			"with a long reason":    send(d, page, "reason", strings.Repeat("x", 5000), "ticket", ticket(page)),
			"by force, unconfirmed": send(d, page, "force", "yes", "confirm", "Report", "ticket", ticket(page)),
			"from another site": ask(d, http.MethodPost, page, "reason=x&ticket="+ticket(page),
				"Content-Type", "application/x-www-form-urlencoded", "Origin", "http://evil.example.com"),
			"from another site, says the browser": ask(d, http.MethodPost, page, "reason=x&ticket="+ticket(page),
				"Content-Type", "application/x-www-form-urlencoded", "Sec-Fetch-Site", "cross-site"),
			"with too much": ask(d, http.MethodPost, page, "reason="+strings.Repeat("x", 1<<20),
				"Content-Type", "application/x-www-form-urlencoded"),
		} {
			if got.Code < 400 && !strings.Contains(got.Body.String(), "does not hold the lock any more") {
				t.Errorf("%s: %d", name, got.Code)
			}
		}
		old := ticket(page)
		time.Sleep(ticketTime + time.Second) // in a bubble
		if got := send(d, page, "reason", "x", "ticket", old); got.Code != http.StatusUnprocessableEntity {
			t.Errorf("with an old ticket: %d", got.Code)
		}
		if len(w.revoked) != 0 {
			t.Fatalf("revoked: %q", w.revoked)
		}
		one := ticket(page)
		got := send(d, page, "reason", " stuck <b> ", "ticket", one)
		if got.Code != http.StatusSeeOther || got.Header().Get("Location") != "lock?path=%2Fjobs%2Freport" {
			t.Errorf("%d %v", got.Code, got.Header())
		}
		if got := send(d, page, "reason", "again", "ticket", one); got.Code != http.StatusUnprocessableEntity ||
			!strings.Contains(got.Body.String(), `value="again"`) {
			t.Errorf("with a used ticket: %d %s", got.Code, got.Body)
		}
		got = send(d, page, "force", "yes", "confirm", "report", "ticket", ticket(page))
		if got.Code != http.StatusSeeOther {
			t.Errorf("by force: %d %s", got.Code, got.Body)
		}
		synctest.Wait()
		slices.Sort(w.revoked)
		want := "[/jobs/reportmap[/jobs/report/0:1]forced in the dashboardtrue " +
			"/jobs/reportmap[/jobs/report/0:1]stuck <b>false]"
		if fmt.Sprint(w.revoked) != want {
			t.Errorf("got %q, want %q", w.revoked, want)
		}
		for _, page := range []string{"/lock?path=/jobs/report", "/changes"} {
			shown := get(d, page).Body.String()
			for _, want := range []string{
				"Asked ann to release it", "it has released it", "stuck &lt;b&gt;", "by force", "192.0.2.1",
			} {
				if !strings.Contains(shown, want) {
					t.Errorf("%s does not show %q:\n%s", page, want, shown)
				}
			}
		}
		if got := get(d, "/lock?path=/jobs/alone").Body.String(); strings.Contains(got, "stuck &lt;b&gt;") {
			t.Error("a lock shows the revocation of another")
		}
		if got := get(board(t, w, s, Config{}), "/changes"); got.Code != http.StatusNotFound {
			t.Errorf("a dashboard that changes nothing has a page of changes: %d", got.Code)
		}
	})
}

// Forms that nobody sends are forgotten.
func TestTicketsAreBounded(t *testing.T) {
	t.Parallel()
	c := changes{tickets: make(map[string]issued)}
	last := ""
	for range 3 * maxTickets {
		last = c.issue(ticket{path: "/a"}, 7)
	}
	if len(c.tickets) > maxTickets {
		t.Errorf("there are %d", len(c.tickets))
	}
	if count, ok := c.redeem(last, ticket{path: "/a"}); !ok || count != 7 {
		t.Error("the last one is not taken")
	}
}

// many returns an ensemble with so many locks, and ten waiters for each.
func many(locks int) (*world, *survey.Snapshot) {
	w, s := new(world), &survey.Snapshot{Mode: survey.Live, Listed: locks}
	now := time.Now()
	w.lines = make(map[string][]lock.Contender)
	for i := range locks {
		path := fmt.Sprintf("/jobs/%05d/lock", i)
		list := make([]lock.Contender, 11)
		for k := range list {
			list[k] = lock.Contender{
				Path: fmt.Sprintf("%s/%d", path, k), Holder: k == 0, Known: true, Session: int64(i*11 + k + 1),
				Owner: lock.Owner{Host: "host", PID: i}, Since: now.Add(-time.Duration(i+20-k) * time.Second), Token: 1,
			}
		}
		w.lines[path] = list
		s.Entries = append(s.Entries, survey.Entry{Path: path, Kind: survey.Lock, Summary: lock.Summary{
			Holders: list[:1], Holding: 1, First: &list[1], Waiting: 10, Groups: 1,
		}})
	}
	return w, s
}

func TestManyLocksMakeNoLargePages(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // in which large pages take no time
		w, s := many(10_000)
		d := board(t, w, s, Config{})
		for range 3 {
			d.collector.mu.Lock()
			d.collector.series.add(s, d.collector.facts, time.Now().Add(time.Hour))
			d.collector.mu.Unlock()
		}
		for path, want := range map[string]string{
			"/": "run turnstile doctor", "/?span=day": "9992 more",
			"/locks": "9900 more", "/locks?n=500": "9500 more", "/locks?n=1000000": "9000 more",
			"/locks?q=12345": "1 path", "/waits": "9800 more locks", "/waits?": "109 more are", // one page
			"/sessions": "2100 more", "/lock?path=/jobs/00001/lock": "Holder",
		} {
			body := get(d, path).Body.String()
			if len(body) > 1_000_000 {
				t.Errorf("%s: %d bytes", path, len(body))
			}
			if !strings.Contains(body, want) && path != "/locks?q=12345" {
				t.Errorf("%s does not show %q: %.3000s", path, want, body)
			}
		}
		if n := len(d.collector.series.locks); n != maxSeries {
			t.Errorf("the history is of %d locks, want %d", n, maxSeries)
		}
		if w.asked["line"] > 401 {
			t.Errorf("%d lines were read", w.asked["line"])
		}
	})
}

func BenchmarkPages(b *testing.B) {
	w, s := many(10_000)
	d := board(b, w, s, Config{})
	for _, path := range []string{"/", "/locks", "/locks?q=99", "/waits", "/sessions"} {
		for _, part := range []string{"", "1"} {
			b.Run(path+" "+part, func(b *testing.B) {
				n := 0
				for b.Loop() {
					n = get(d, path, partHeader, part, "Accept-Encoding", "gzip").Body.Len()
				}
				b.ReportMetric(float64(n), "bytes")
			})
		}
	}
}

func TestServeEndsWithItsContext(t *testing.T) {
	t.Parallel()
	w, s := ordinary()
	d := New(t.Context(), w.source(), Config{Root: "/", Audit: t.Logf})
	d.collector.take(s, time.Now())
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan error, 1)
	go func() { done <- d.Serve(ctx, l) }()
	resp, err := http.Get("http://" + l.Addr().String() + "/locks")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Error(resp.Status)
	}
	cancel(io.ErrUnexpectedEOF)
	if err := <-done; err != io.ErrUnexpectedEOF { //nolint:errorlint // it is the cause itself
		t.Error(err)
	}
	if d.collector.begin(func() {}) {
		t.Error("something begins after the end")
	}
}

// A browser that opened a connection ahead may ask on it for as long as it keeps it: Chromium for ten seconds.
func TestConnectionOpenedAheadIsKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, s := ordinary()
		d := New(t.Context(), w.source(), Config{Root: "/", Audit: t.Logf})
		d.collector.take(s, time.Now())
		var network zktest.Net
		l, err := network.Listen("127.0.0.1:8080")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- d.Serve(ctx, l) }()
		conn, err := network.Dial(ctx, "tcp", "127.0.0.1:8080")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Second) // in a bubble
		_ = conn.SetDeadline(time.Now().Add(time.Minute))
		if _, err = io.WriteString(conn, "GET /live.js HTTP/1.0\r\nHost: 127.0.0.1:8080\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if answer, err := io.ReadAll(conn); err != nil || !bytes.HasPrefix(answer, []byte("HTTP/1.0 200 OK")) {
			t.Errorf("%.100q, %v", answer, err)
		}
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

func TestFirstOfAListAreThoseOfTheSortedList(t *testing.T) {
	t.Parallel()
	type entry struct{ key, at int }
	v := rand.New(rand.NewPCG(1, 2))
	for size := range 40 {
		list := make([]entry, size)
		for i := range list {
			list[i] = entry{v.IntN(10), i} // with many that are equal
		}
		fits := func(e *entry) bool { return e.key != 3 }
		order := func(a, b entry) int { return cmp.Compare(a.key, b.key) }
		want := slices.DeleteFunc(slices.Clone(list), func(e entry) bool { return !fits(&e) })
		slices.SortStableFunc(want, order)
		want = want[:min(len(want), 8)]
		if got := first(list, 8, fits, order); !slices.Equal(got, want) {
			t.Errorf("of %v: got %v, want %v", list, got, want)
		}
	}
}
