package server

// The metrics for Prometheus, under ZooKeeper's names, and whether the server is well.

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/seed-a3166700/turnstile/internal/exposition"
)

const (
	metricsEvery = time.Second     // there is at most one snapshot in this time
	readyWithin  = 5 * time.Second // the disk must have taken what was written
)

// monitoring is what the handler of the metrics keeps.
type monitoring struct {
	mu    sync.Mutex
	text  []byte
	at    time.Time
	probe *probe // of the disk, under way; nil if there is none
}

// probe is a question whether the disk takes what is written. Those who ask at the same time share it: while a disk
// hangs, each would stay.
type probe struct {
	done chan struct{}
	err  error // once done is closed
}

// metricsHandler serves /metrics, /livez and /readyz.
func (s *Server) metricsHandler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.serveMetrics(w, r) {
			http.NotFound(w, r)
		}
	})
}

// serveMetrics serves these paths, and reports whether the request was for one.
func (s *Server) serveMetrics(w http.ResponseWriter, r *http.Request) bool {
	if !slices.Contains([]string{"/livez", "/readyz", "/metrics"}, r.URL.Path) {
		return false
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "only GET and HEAD are served", http.StatusMethodNotAllowed)
		return true
	}
	plain := func(status int, text string) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.WriteHeader(status)
		fmt.Fprintln(w, text)
	}
	switch r.URL.Path {
	case "/livez":
		plain(http.StatusOK, "ok")
	case "/readyz":
		if err := s.ready(r.Context()); err != nil {
			plain(http.StatusServiceUnavailable, err.Error())
			return true
		}
		plain(http.StatusOK, "ok")
	case "/metrics":
		text, ok := s.metrics()
		if !ok {
			plain(http.StatusServiceUnavailable, notServing)
			return true
		}
		w.Header().Set("Content-Type", exposition.ContentType)
		_, _ = w.Write(text) // fails if the client has gone
	}
	return true
}

// ready returns an error unless the server serves and its disk takes, within 5 s, all that was written before the call.
func (s *Server) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	m := &s.monitored
	m.mu.Lock()
	p := m.probe
	if p == nil {
		p = &probe{done: make(chan struct{})}
		m.probe = p
		go func() {
			p.err = s.doDurably(func(*owner) {}) // ends at the latest with the server
			m.mu.Lock()
			defer m.mu.Unlock()
			m.probe = nil
			close(p.done)
		}()
	}
	m.mu.Unlock()
	select {
	case <-p.done:
		return p.err
	case <-ctx.Done():
		return fmt.Errorf("the disk has not taken in %v what was written", readyWithin)
	}
}

// metrics returns the text for Prometheus; false if the server has stopped.
func (s *Server) metrics() ([]byte, bool) {
	m := &s.monitored
	m.mu.Lock()
	defer m.mu.Unlock()
	if now := time.Now(); m.text == nil || now.Sub(m.at) >= metricsEvery {
		f, ok := s.facts()
		if !ok {
			return nil, false
		}
		x := metricsText{next: s.cfg.NextMetrics}
		x.all(s, f, now)
		m.text, m.at = x.Bytes(), now
	}
	return m.text, true
}

// metricsText is the text for Prometheus.
type metricsText struct {
	exposition.Text

	next bool // Config.NextMetrics
}

func (x *metricsText) counter(name string, n int64) {
	name = x.total(name)
	x.Family(name, exposition.Counter)
	x.Value(name, "", n)
}

// total returns the name of a counter.
func (x *metricsText) total(name string) string {
	if x.next {
		return name + "_total"
	}
	return name
}

// Which quantiles a summary has, as ZooKeeper's basic and advanced ones.
var (
	basic    = []float64{0.5}
	advanced = []float64{0.5, 0.9, 0.99}
)

// summary writes a summary, of which a unit is so many of what is shown.
func (x *metricsText) summary(name string, quantiles []float64, s *summary, unit float64) {
	x.Family(name, exposition.Summary)
	for _, q := range quantiles {
		if x.next && q == 0.9 {
			q = 0.95
		}
		v, ok := s.quantile(q)
		shown := float64(v) * unit
		if !ok {
			shown = math.NaN() // as ZooKeeper's
		}
		x.Value(name, exposition.Label("quantile", strconv.FormatFloat(q, 'g', -1, 64)), shown)
	}
	x.Value(name+"_count", "", s.n)
	x.Value(name+"_sum", "", float64(s.sum)*unit)
}

// notGauges are what mntr has and Prometheus has elsewhere, or not at all.
var notGauges = []string{
	"version", "server_state", "goroutines", "disk_size",
	"ensemble_auth_success", "ensemble_auth_fail", "ensemble_auth_skip",
}

// all writes everything.
func (x *metricsText) all(s *Server, f *facts, now time.Time) {
	for _, g := range f.gauges(s) {
		own := strings.HasPrefix(g.key, "limit_") || strings.HasSuffix(g.key, "_per_namespace")
		if !own && !slices.Contains(notGauges, g.key) {
			x.Gauge(g.key, g.value)
		}
	}
	if !s.cfg.RequireSASL { // without a login nobody may see the names of nodes
		exposition.Set(&x.Text, x.total("quota_exceeded_error_per_namespace"), exposition.Counter, "key", f.refusals)
	}
	s.stats.write(x, f.zxid-s.firstZxid, now)
	x.ours(s)
}

// write writes the server's counters and summaries.
func (s *stats) write(x *metricsText, commits int64, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range []struct {
		name string
		n    int64
	}{
		{"bytes_received_count", s.requests},
		{"commit_count", commits},
		{"connection_drop_count", s.dropped.Load()},
		{"connection_rejected", s.rejected.Load()},
		{"connection_request_count", s.connects.Load()},
		{"digest_mismatches_count", 0},
		{"diff_count", 0},
		{"ensemble_auth_fail", s.ensemble.fail.Load()},
		{"ensemble_auth_skip", s.ensemble.skip.Load()},
		{"ensemble_auth_success", s.ensemble.success.Load()},
		{"large_requests_rejected", s.tooLarge.Load()},
		{"looking_count", 0},
		{"proposal_count", commits},
		{"response_bytes", s.replies},
		{"revalidate_count", s.resumed.Load()},
		{"sessionless_connections_expired", s.sessionless.Load()},
		{"snap_count", 0},
		{"stale_requests", 0},
		{"stale_sessions_expired", s.expired.Load()},
		{"throttled_ops", 0},
		{"tls_handshake_exceeded", 0},
		{"ttl_node_created_count", s.ttlCreated.Load()},
		{"ttl_node_deleted_count", s.ttlDeleted.Load()},
		{"unrecoverable_error_count", 0}, // the server stops at one
		{"unsuccessful_handshake", s.tlsFailed.Load()},
		{"watch_bytes", s.eventBytes.Load()},
	} {
		x.counter(c.name, c.n)
	}
	const microseconds = 0.001 // in milliseconds
	for _, m := range []struct {
		name      string
		quantiles []float64
		s         *summary
		unit      float64
	}{
		{"dbinittime", basic, new(summary), 1},
		{"election_time", basic, new(summary), 1},
		{"fsynctime", basic, &s.syncs, microseconds},
		{"node_changed_watch_count", basic, &s.watchers[watchersChanged], 1},
		{"node_children_watch_count", basic, &s.watchers[watchersChildren], 1},
		{"node_created_watch_count", basic, &s.watchers[watchersCreated], 1},
		{"node_deleted_watch_count", basic, &s.watchers[watchersDeleted], 1},
		{"readlatency", advanced, &s.reads, microseconds},
		{"snapshottime", basic, new(summary), 1},
		{"startup_txns_load_time", basic, &s.loads, microseconds},
		{"sync_processor_batch_size", basic, &s.batches, 1},
		{"updatelatency", advanced, &s.updates, microseconds},
	} {
		m.s.turn(now)
		x.summary(m.name, m.quantiles, m.s, m.unit)
	}
}

// ours writes what ZooKeeper does not have, and what every program in Go has.
func (x *metricsText) ours(s *Server) {
	limits, hits := make(map[string]int64), make(map[string]int64)
	for l := range limitCount {
		limits[limitNames[l]], hits[limitNames[l]] = s.cfg.limit(l), s.stats.hits[l].Load()
	}
	exposition.Set(&x.Text, "turnstile_server_limit", exposition.Gauge, "limit", limits)
	exposition.Set(&x.Text, "turnstile_server_limit_hits_total", exposition.Counter, "limit", hits)
	x.Gauge("turnstile_server_store_bytes", s.diskSize())
	failed := 0
	if s.failed() {
		failed = 1
	}
	x.Gauge("turnstile_server_disk_failed", failed)
	x.Gauge("go_goroutines", runtime.NumGoroutine())
	x.Gauge("process_open_fds", openFiles())
	x.Gauge("process_max_fds", fileLimit())
	x.Gauge("process_start_time_seconds", float64(s.clock.base.UnixMilli())/1000)
}
