//go:build linux

package cli_test

// turnstile dashboard.

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"

	"github.com/seed-a3166700/turnstile/internal/test/peer"
	"github.com/seed-a3166700/turnstile/internal/test/request"
	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/queue"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// until fetches a page until it is as wanted.
func until(t *testing.T, url string, status int, want string) {
	t.Helper()
	began := time.Now()
	for {
		got, body := request.Fetch(t, http.MethodGet, url)
		if got == status && strings.Contains(body, want) {
			return
		}
		if time.Since(began) > patience {
			t.Fatalf("%s: %d, and no %q: %s", url, got, want, body)
		}
		time.Sleep(10 * time.Millisecond) // real: it is another process
	}
}

// A dashboard shows what happens, says so when no server answers, and ends with a signal.
func TestDashboardShowsWhatHappens(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	dashboardShows(t, srv.Addr(), func() { srv.Cut() }, func() { srv.Heal() })
}

func TestDashboardOfApacheZooKeeper(t *testing.T) {
	t.Parallel()
	server := peer.ZooKeeper(t, longSessions)
	dashboardShows(t, server.ConnectString(), func() { server.Kill(0) }, func() { server.Restart(0) })
}

func dashboardShows(t *testing.T, connect string, down, up func()) {
	t.Helper()
	long := []string{"--connect", connect, "--session-timeout", "30s"}
	run := func(args ...string) *running { return start(t, slices.Insert(args, 1, long...)...) }
	holder := run("lock", "--label", "<b>\x1b", "/jobs/17", "--", "puppet")
	holder.ready()
	waiter := run("lock", "/jobs/17", "--", "puppet")
	r := run("dashboard", "--json", "--allow-changes", "--listen", "127.0.0.1:0", "/jobs")
	var ready struct{ URL string }
	if err := json.Unmarshal([]byte(r.line()), &ready); err != nil {
		t.Fatal(err)
	}
	for page, want := range map[string]string{
		"": "1 waiting", "locks": `(&lt;b&gt;\x1b)`, "lock?path=/jobs/17": "Holder", "waits": "1 blocked",
		"leaders": "no election", "queues": "no queue", "sessions": "127.0.0.1:", "servers": "standalone",
		"readyz": "ok", "livez": "ok",
	} {
		until(t, ready.URL+page, 200, want)
	}
	run("elect", "/jobs/leader", "--", "puppet").ready()
	until(t, ready.URL+"leaders", 200, "/jobs/<wbr>leader")
	start(t, "queue", "put", "--connect", connect, "/jobs/queue", "body").wantCode(0)
	until(t, ready.URL+"queue?path=/jobs/queue", 200, "Oldest")
	holder.signal(syscall.SIGTERM)
	holder.wantCode(3)
	waiter.ready()
	until(t, ready.URL+"lock?path=/jobs/17", 200, "of the holder seen")
	down()
	until(t, ready.URL+"readyz", 503, "no server is connected")
	until(t, ready.URL+"locks", 200, "No server of the ensemble answers")
	up()
	until(t, ready.URL+"locks", 200, ">Live<")
	r.signal(syscall.SIGTERM)
	r.wantCode(0)
}

func TestDashboardIsForThisMachine(t *testing.T) {
	t.Parallel()
	for _, listen := range []string{"0.0.0.0:0", ":0", "[::]:0", "192.0.2.1:0", "example.com:80", "8080"} {
		r := start(t, "dashboard", "--connect", "127.0.0.1:1", "--listen", listen)
		r.wantCode(64)
		if listen != "8080" && !strings.Contains(r.stderr.String(), "--insecure") {
			t.Errorf("%s: %s", listen, r.stderr.String())
		}
	}
	for _, name := range []string{"", "a:80", "http://a", "a b"} {
		start(t, "dashboard", "--connect", "127.0.0.1:1", "--host", name).wantCode(64)
	}
	srv := newServer(t)
	r := start(t, "dashboard", "--connect", srv.Addr(), "--listen", "0.0.0.0:0", "--insecure")
	if line := r.line(); !strings.HasPrefix(line, "serving http://") {
		t.Error(line)
	}
	r.signal(syscall.SIGINT)
	r.wantCode(0)
}

// With a password and a certificate it listens for other machines, too.
func TestDashboardWithAPasswordAndACertificate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := writeCertificates(dir); err != nil {
		t.Fatal(err)
	}
	hash, err := bcrypt.GenerateFromPassword([]byte("open sesame"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "users")
	if err := os.WriteFile(file, []byte("ann:"+string(hash)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	srv := newServer(t)
	cert := []string{"--listen-cert", dir + "/server.pem", "--listen-key", dir + "/server.key"}
	for want, args := range map[string][]string{
		"add --listen-cert and --listen-key for encryption, listen": {"--listen", ":0", "--user-file", file},
		"add --user-file for a password (or --oidc-issuer), listen": append(cert, "--listen", ":0"),
		"for --oidc-issuer, which is missing":                       {"--oidc-client", "board"},
		"the issuer must be an https URL":                           {"--oidc-issuer", "id.example.com"},
		"a claim must be NAME=VALUE, such as groups=ops: \"ops=\"": {
			"--oidc-issuer", "https://id.example.com", "--oidc-client", "board", "--oidc-allow", "ops",
			"--oidc-redirect", "https://locks.example.com/signed-in",
		},
		"--oidc-secret-file: open /none": {
			"--oidc-issuer", "https://id.example.com", "--oidc-secret-file", "/none",
		},
		"--user-file: stat /none":                       {"--user-file", "/none"},
		"--listen-cert, --listen-key: ":                 cert[:2],
		"--trust-proxy must be an address or a network": {"--trust-proxy", "proxy.example.com"},
	} {
		r := start(t, append([]string{"dashboard", "--connect", srv.Addr()}, args...)...)
		r.wantCode(64)
		r.wantStderr(want)
	}
	args := []string{"dashboard", "--connect", srv.Addr(), "--listen", "0.0.0.0:0", "--user-file", file}
	r := start(t, append(args, cert...)...)
	_, port, err := net.SplitHostPort(strings.TrimSuffix(strings.TrimPrefix(r.line(), "serving https://"), "/"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	pem, err := os.ReadFile(filepath.Join(dir, "ca.pem"))
	if err != nil || !roots.AppendCertsFromPEM(pem) {
		t.Fatal(err)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	for user, want := range map[string]int{"": 401, "ann:guess": 401, "ann:open sesame": 200} {
		url := "https://127.0.0.1:" + port + "/locks"
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if name, password, ok := strings.Cut(user, ":"); ok {
			req.SetBasicAuth(name, password)
		}
		resp, err := transport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want || resp.ProtoMajor != 2 {
			t.Errorf("%q gets %s %s, want %d with HTTP/2", user, resp.Proto, resp.Status, want)
		}
	}
	r.signal(syscall.SIGTERM)
	r.wantCode(0)
}

// Dead letters of a real queue are put back in batches, and removed.
func TestDashboardChangesQueues(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	client := srv.Client(t, time.Minute)
	q, err := queue.New(client, "/mail", queue.Config{MaxAttempts: 1})
	if err != nil {
		t.Fatal(err)
	}
	reject := func(n int) {
		t.Helper()
		for range n {
			_, err := q.Put(t.Context(), queue.Message{Body: []byte("x")})
			if err != nil {
				t.Fatal(err)
			}
			item, err := q.Take(t.Context())
			if err == nil {
				err = item.Reject(t.Context(), "no")
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	reject(230)
	r := start(t, "dashboard", "--connect", srv.Addr(), "--allow-changes", "--listen", "127.0.0.1:0")
	base := strings.TrimPrefix(r.line(), "serving ")
	change := func(do string, fields ...string) {
		t.Helper()
		form := base + "changequeue?path=/mail&do=" + do
		until(t, form, 200, `name="ticket"`)
		_, body := request.Fetch(t, http.MethodGet, form)
		_, rest, _ := strings.Cut(body, `name="ticket" value="`)
		ticket, _, _ := strings.Cut(rest, `"`)
		v := url.Values{"ticket": {ticket}}
		for i := 0; i < len(fields); i += 2 {
			v.Set(fields[i], fields[i+1])
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, form, strings.NewReader(v.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK || !strings.HasSuffix(resp.Request.URL.Path, "/queue") {
			t.Fatalf("%s leads to %s: %s", do, resp.Request.URL, resp.Status)
		}
	}
	count := func() (n queue.Summary) {
		t.Helper()
		n, err := queue.Summarize(t.Context(), client, "/mail", 0)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	change("pause", "reason", "mail is down")
	until(t, base+"changes", 200, ">done<") // before that it is only asked for
	until(t, base+"queue?path=/mail", 200, "mail is down")
	if n := count(); n.Paused == nil || n.Paused.Reason != "mail is down" {
		t.Errorf("it is not paused: %+v", n)
	}
	change("requeue")
	until(t, base+"changes", 200, "230 dead letters")
	if n := count(); n.Dead != 0 || n.Ready != 230 {
		t.Errorf("after requeueing: %+v", n)
	}
	change("resume")
	until(t, base+"changes", 200, "Resume")
	reject(3)
	sess := srv.Session(t, time.Minute)
	unreadable := "/mail/dead"
	for range 2 { // a segment, and an item
		names, _, err := sess.Children(t.Context(), unreadable)
		if err != nil || len(names) == 0 {
			t.Fatalf("%s: %q, %v", unreadable, names, err)
		}
		unreadable += "/" + slices.Max(names)
	}
	acl := []zk.ACL{{Perms: zk.PermAll, ID: zk.ID{Scheme: "digest", ID: "u:x"}}}
	if _, err := sess.SetACL(t.Context(), unreadable, acl, -1); err != nil {
		t.Fatal(err)
	}
	change("purge", "confirm", "mail")
	until(t, base+"changes", 200, ">2 dead letters; not done: ")
	if n := count(); n.Dead != 1 || n.Paused != nil {
		t.Errorf("after removing: %+v", n)
	}
}

// A server has a dashboard of its own, if it is asked to.
func TestServeHasADashboard(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := writeCertificates(dir); err != nil {
		t.Fatal(err)
	}
	cert := []string{"--tls-cert", filepath.Join(dir, "server.pem"), "--tls-key", filepath.Join(dir, "server.key")}
	args := []string{
		"serve", "--json", "--in-memory", "--listen", "unix:" + dir + "/sock", "--tls-listen", "127.0.0.1:0",
		"--dashboard", "127.0.0.1:0",
	}
	r := start(t, append(args, cert...)...)
	var ready struct{ Dashboard string }
	if err := json.Unmarshal([]byte(r.line()), &ready); err != nil {
		t.Fatal(err)
	}
	holder := start(t, "lock", "--connect", "unix:"+dir+"/sock", "/jobs/17", "--", "puppet")
	holder.ready()
	until(t, ready.Dashboard+"locks", 200, "/jobs/<wbr>17")
	until(t, ready.Dashboard+"servers", 200, "standalone")
	if code, _ := request.Fetch(t, http.MethodPost, ready.Dashboard+"revoke"); code != http.StatusMethodNotAllowed {
		t.Errorf("it changes something: %d", code)
	}
	holder.signal(syscall.SIGTERM)
	holder.wantCode(3)
	r.signal(syscall.SIGTERM)
	r.wantCode(0)
	taken := strings.TrimSuffix(strings.TrimPrefix(ready.Dashboard, "http://"), "/")
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", taken)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, test := range []struct {
		code int
		want string
		args []string
	}{
		{64, "turnstile dashboard can ask for passwords", []string{"--dashboard", "0.0.0.0:0"}},
		{64, "must be host:port", []string{"--dashboard", "8080"}},
		{64, "needs an address without TLS", append(cert, "--dashboard", "127.0.0.1:0")},
		{64, "never idle", []string{"--dashboard", "127.0.0.1:0", "--idle-exit", "1m"}},
		{69, "address already in use", []string{"--dashboard", taken}},
	} {
		r := start(t, append([]string{"serve", "--in-memory", "--listen", "127.0.0.1:0"}, test.args...)...)
		r.wantCode(test.code)
		r.wantStderr(test.want)
	}
}

// busy makes an ensemble with something on each page, and returns when all of it is there.
func busy(t *testing.T, srv *zktest.Server) {
	t.Helper()
	sess := srv.Session(t, time.Minute)
	hold := func(paths string, more ...string) *running {
		args := append([]string{"lock", "--connect", srv.Addr(), "--session-timeout", "60s"}, more...)
		r := start(t, append(args, paths, "--", "puppet")...)
		return r
	}
	hold("/jobs/report", "--label", "nightly report").ready()
	hold("/jobs/report", "--label", "retry of 4711")
	hold("/jobs/report", "--label", "ops, by hand")
	hold("/deploy/production", "--label", "deploy 2.4.1").ready()
	hold("/deploy/production", "--label", "deploy 2.4.2")
	hold("/db/orders/schema", "--shared", "--label", "reader one").ready()
	hold("/db/orders/schema", "--label", "alter table")
	hold("/render/slots", "--permits", "1/2", "--label", "render a").ready()
	hold("/backup/eu-central-1/customers", "--label", "backup").ready()
	hold("/\u202e<b>&\"'/" + strings.Repeat("long", 60)).ready()
	start(t, "elect", "--connect", srv.Addr(), "/leaders/scheduler", "--", "puppet").ready()
	start(t, "elect", "--connect", srv.Addr(), "/leaders/scheduler", "--", "puppet")
	wantContenders(t, sess, "/jobs/report", 3)
	wantContenders(t, sess, "/leaders/scheduler", 2)
	client := srv.Client(t, time.Minute)
	q, err := queue.New(client, "/queues/mail", queue.Config{MaxAttempts: 1})
	if err != nil {
		t.Fatal(err)
	}
	for range 12 {
		if _, err := q.Put(t.Context(), queue.Message{Body: []byte("mail")}); err != nil {
			t.Fatal(err)
		}
	}
	_, err = q.Put(t.Context(), queue.Message{Body: []byte("later"), Delay: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	item, err := q.Take(t.Context())
	if err == nil {
		err = item.Fail(t.Context(), errors.New("no such mailbox"))
	}
	if err != nil {
		t.Fatal(err)
	}
	told := make(chan struct{}, 3)
	var holds []*lock.Hold
	var inner []*lock.Mutex
	paths := []string{"/accounts/alice", "/accounts/bob", "/accounts/carol"}
	for i, label := range []string{"invoice", "refund", "statement"} {
		client := srv.Client(t, time.Minute)
		cfg := lock.Config{Label: label, Hooks: lock.Hooks{Deadlock: func(lock.Event) { told <- struct{}{} }}}
		outer, err := lock.NewMutex(client, paths[i], cfg)
		if err != nil {
			t.Fatal(err)
		}
		next, err := lock.NewMutex(client, paths[(i+1)%3], cfg)
		if err != nil {
			t.Fatal(err)
		}
		h, err := outer.Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		holds, inner = append(holds, h), append(inner, next)
	}
	for i, h := range holds {
		go func() { _, _ = inner[i].Lock(h.Context()) }() // a deadlock, until the client is closed
	}
	for range 3 {
		<-told
	}
}

// All pages in a browser: accessible, in both colour schemes and at both widths, by keyboard alone, without scripts,
// and kept up to date in more tabs than a browser has connections.
//
// With TURNSTILE_PICTURES it only makes pictures of them, in that folder: make pictures.
func TestDashboardInABrowser(t *testing.T) {
	t.Parallel()
	const scripts = "../../../../test/browser"
	modules := peer.Browser(t, scripts)
	srv := zktest.Run(t)
	busy(t, srv)
	r := start(t, "dashboard", "--allow-changes", "--connect", srv.Addr(), "--listen", "127.0.0.1:0")
	url := strings.TrimPrefix(r.line(), "serving ")
	args := []string{scripts + "/dashboard.mjs", modules, url}
	if dir := os.Getenv("TURNSTILE_PICTURES"); dir != "" {
		for _, label := range []string{"report for EU", "report for US", "backfill", "report for Asia", "retry"} {
			start(t, "lock", "--connect", srv.Addr(), "--label", label, "/jobs/report", "--", "puppet")
			<-time.After(20 * time.Second) // real: so that there is a history to see
			line, err := lock.Inspect(t.Context(), srv.Client(t, time.Minute), "/jobs/report")
			if err != nil {
				t.Fatal(err)
			}
			if err := syscall.Kill(line[0].Owner.PID, syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
		}
		args = append(args, dir)
	}
	cmd := exec.CommandContext(t.Context(), "node", args...)
	cmd.Stderr = t.Output()
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		switch line := lines.Text(); line {
		case "do hold":
			start(t, "lock", "--connect", srv.Addr(), "/live/new", "--", "puppet")
			start(t, "lock", "--connect", srv.Addr(), "/live/new", "--", "puppet")
		case "do stop":
			r.signal(syscall.SIGTERM)
		default:
			t.Error(line)
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}
