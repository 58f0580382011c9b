// Package dashboard serves web pages about an ensemble: its locks, who waits, leaders, queues, sessions and servers.
//
// The pages are made here, work without a script, and are kept up to date by one that asks for the page again every
// two seconds, while its tab is visible. It gets 304 Not Modified as long as nothing has changed, so a viewer costs
// some 300 bytes a second, and each answer ends at once: browsers open six connections to a host at most, and a tab
// whose events were a stream would take one of them for itself. The seventh would hang.
package dashboard

// The server.

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"embed"
	"encoding/hex"
	"errors"
	"log"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/ensemble"
)

// Config says how a dashboard is.
type Config struct {
	Ensemble string   // its name, which all pages show
	Root     string   // the path below which it looks
	Hosts    []string // names by which it may be called, besides localhost and addresses of this machine
	Changes  bool     // allow to revoke locks, and to change queues
	Data     bool     // show the data of nodes, and bodies and headers of items

	Users   *Users         // who may sign in; nil if all may see the pages
	OIDC    *OIDC          // how viewers may sign in as well; nil for no such way
	Proxies []netip.Prefix // whose word is taken for who a viewer is and where from
	TLS     *tls.Config    // nil for clear text

	// Audit is told who has changed what, and what went wrong.
	Audit func(format string, args ...any)
}

// A Dashboard is a handler of HTTP requests.
type Dashboard struct {
	cfg       Config
	source    ensemble.Source
	collector *collector
	stop      context.CancelFunc
	changes   changes
	handler   http.Handler
}

// New returns a dashboard. It shows something while Serve runs, which must be called.
func New(ctx context.Context, source ensemble.Source, cfg Config) *Dashboard {
	ctx, stop := context.WithCancel(ctx)
	d := &Dashboard{cfg: cfg, source: source, collector: newCollector(ctx, source, cfg.Data), stop: stop}
	d.changes.tickets = make(map[string]issued)
	if cfg.OIDC != nil {
		d.cfg.Hosts = append(slices.Clone(cfg.Hosts), cfg.OIDC.Host())
	}
	d.handler = d.guard(d.routes())
	return d
}

// ServeHTTP implements http.Handler.
func (d *Dashboard) ServeHTTP(w http.ResponseWriter, r *http.Request) { d.handler.ServeHTTP(w, r) }

// Limits of the HTTP server.
//
// A browser opens connections ahead of what it asks, and closes those that it did not use (Chromium: after ten
// seconds). If the server closes one before, just as it is used, Chromium gives the script or the style up, and the
// page does without. So the time for a request, which counts from the beginning of its connection, is longer.
const (
	maxHeader      = 16 << 10
	requestTime    = 30 * time.Second
	idleTime       = 30 * time.Second
	maxConnections = 512
	maxStreams     = 32 // of one connection
	closeTime      = 2 * time.Second
)

// Serve serves on l until ctx ends, and follows the ensemble meanwhile.
func (d *Dashboard) Serve(ctx context.Context, l net.Listener) error {
	var trying sync.WaitGroup
	defer trying.Wait()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	web := &http.Server{
		Handler: d, MaxHeaderBytes: maxHeader, ReadTimeout: requestTime,
		WriteTimeout: requestTime, IdleTimeout: idleTime, TLSConfig: d.cfg.TLS,
		ErrorLog: log.New(noHandshakes{d}, "", 0), HTTP2: &http.HTTP2Config{MaxConcurrentStreams: maxStreams},
	}
	served := make(chan error, 1)
	go func() {
		l := command.Limited(l, maxConnections)
		var err error
		if d.cfg.TLS != nil {
			err = web.ServeTLS(l, "", "")
		} else {
			err = web.Serve(l)
		}
		cancel(err)
		served <- err
	}()
	if d.cfg.OIDC != nil {
		trying.Go(func() { d.cfg.OIDC.Try(ctx) })
	}
	err := d.collector.run(ctx)
	defer d.collector.close()
	defer d.stop() // what has begun, also if ctx lasts
	closing, stop := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer stop()
	if web.Shutdown(closing) != nil { // some answer is still on its way
		_ = web.Close()
	}
	if serr := <-served; !errors.Is(serr, http.ErrServerClosed) {
		return serr
	}
	return err
}

// noHandshakes is where the HTTP server writes what went wrong. Handshakes that fail are left out: others may make any
// number of them.
type noHandshakes struct{ d *Dashboard }

func (n noHandshakes) Write(line []byte) (int, error) {
	if !bytes.Contains(line, []byte("TLS handshake error")) {
		n.d.cfg.Audit("%s", strings.TrimSpace(string(line)))
	}
	return len(line), nil
}

// assets are the files that pages name, and the pages' templates.
//
//go:embed assets
var assets embed.FS

// policy is what a browser may do with a page.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

// guard lets only those requests through that may be meant for a dashboard.
func (d *Dashboard) guard(next http.Handler) http.Handler {
	next = d.signedIn(http.NewCrossOriginProtection().Handler(next))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		post := r.Method == http.MethodPost && (d.cfg.Changes || d.cfg.OIDC != nil && r.URL.Path == signOutPath)
		switch {
		case !d.known(r):
			http.Error(w, "This dashboard does not know the name in the address. Start it with --host "+
				"and that name if it is one of its own.", http.StatusMisdirectedRequest)
		case r.Method != http.MethodGet && r.Method != http.MethodHead && !post:
			h.Set("Allow", "GET, HEAD")
			why := "This dashboard changes nothing: start it with --allow-changes for that."
			if d.cfg.Changes {
				h.Set("Allow", "GET, HEAD, POST")
				why = "There is no such method here."
			}
			http.Error(w, why, http.StatusMethodNotAllowed)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// known reports whether a request has the name or an address of this dashboard. Another site may have its own name
// lead here (DNS rebinding), and a browser would let it read everything.
func (d *Dashboard) known(r *http.Request) bool {
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
	if host == "localhost" {
		return true
	}
	for _, name := range d.cfg.Hosts {
		if host == strings.ToLower(name) {
			return true
		}
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return false
	}
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if local == nil {
		return ip.IsLoopback()
	}
	here, err := netip.ParseAddrPort(local.String())
	return ip.IsLoopback() || err == nil && here.Addr().Unmap() == ip.Unmap()
}

// routes are the pages.
func (d *Dashboard) routes() http.Handler {
	mux := http.NewServeMux()
	pages := map[string]func(*http.Request) *page{
		"/{$}": d.overviewPage, "/locks": d.locksPage, "/lock": d.lockPage, "/waits": d.waitsPage,
		"/leaders": d.leadersPage, "/queues": d.queuesPage, "/queue": d.queuePage, "/items": d.itemsPage,
		"/item": d.itemPage, "/sessions": d.sessionsPage, "/servers": d.serversPage, "/tree": d.treePage,
	}
	if d.cfg.Changes {
		pages["/changes"] = d.changesPage
	}
	for path, make := range pages {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) { d.render(w, r, make(r)) })
	}
	if d.cfg.Changes {
		mux.HandleFunc("GET /revoke", func(w http.ResponseWriter, r *http.Request) {
			d.render(w, r, d.revokePage(r, ""))
		})
		mux.HandleFunc("POST /revoke", d.revoke)
		mux.HandleFunc("GET /"+queueChanged, func(w http.ResponseWriter, r *http.Request) {
			d.render(w, r, d.queueChangePage(r, ""))
		})
		mux.HandleFunc("POST /"+queueChanged, d.changeQueue)
		mux.HandleFunc("POST /stop", d.stopChange)
	}
	for name, kind := range map[string]string{
		"style.css": "text/css; charset=utf-8", "live.js": "text/javascript; charset=utf-8",
		"icon.svg": "image/svg+xml",
	} {
		mux.Handle("GET /"+name, asset(name, kind))
	}
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { plain(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if s := d.collector.latest(); s == nil || s.Mode == "cut" {
			plain(w, http.StatusServiceUnavailable, "no server is connected")
			return
		}
		plain(w, http.StatusOK, "ok")
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if strings.Count(r.URL.Path, "/") > 1 { // where links would lead to is not known
			plain(w, http.StatusNotFound, "there is no such page")
			return
		}
		d.render(w, r, d.missingPage(r))
	})
	return mux
}

func plain(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text + "\n")) // fails if the client has gone
}

// asset serves a file.
func asset(name, kind string) http.Handler {
	body, err := assets.ReadFile("assets/" + name)
	if err != nil {
		panic(err) // it is part of the program
	}
	sum := sha256.Sum256(body)
	tag := `"` + hex.EncodeToString(sum[:8]) + `"`
	packed := compress(body)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-cache") // it asks whether it is the same
		answer(w, r, http.StatusOK, kind, tag, body, packed)
	})
}
