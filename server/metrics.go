package server

// The metrics for Prometheus, under ZooKeeper's names, and whether the server is well.

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/seed-a3166700/turnstile/internal/exposition"
	"github.com/seed-a3166700/turnstile/server/internal/tree"
)

const (
	metricsEvery = time.Second     // there is at most one snapshot in this time
	readyWithin  = 5 * time.Second // the disk must have taken what was written
)

// monitoring is what the handler of the metrics keeps.
type monitoring struct {
	mu   sync.Mutex // guards text and at; held while a snapshot is taken
	text []byte
	at   time.Time

	probing sync.Mutex // guards probe; nothing blocks under it
	probe   *probe     // of the disk, under way; nil if there is none
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
// If nothing was written in the last 5 s, it writes something.
func (s *Server) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	m := &s.monitored
	m.probing.Lock()
	p := m.probe
	if p == nil {
		p = &probe{done: make(chan struct{})}
		m.probe = p
		go func() {
			p.err = s.doDurably((*owner).probeDisk) // ends at the latest with the server
			m.probing.Lock()
			defer m.probing.Unlock()
			m.probe = nil
			close(p.done)
		}()
	}
	m.probing.Unlock()
	select {
	case <-p.done:
		return p.err
	case <-ctx.Done():
		return fmt.Errorf("the disk has not taken in %v what was written", readyWithin)
	}
}

// probeDisk begins a batch that writes, but changes nothing, if none has been written lately.
func (o *owner) probeDisk() {
	if o.store != nil && time.Since(o.wrote) >= readyWithin {
		o.tx(o.current())
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
		var quotas map[string]tree.QuotaUse
		if s.do(func(o *owner) { quotas = o.tree.QuotaUses() }) != nil {
			return nil, false
		}
		x := metricsText{next: s.cfg.NextMetrics}
		x.all(s, f, quotas, now)
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
func (x *metricsText) all(s *Server, f *facts, quotas map[string]tree.QuotaUse, now time.Time) {
	for _, g := range f.gauges(s) {
		own := strings.HasPrefix(g.key, "limit_") || strings.HasSuffix(g.key, "_per_namespace")
		if !own && !slices.Contains(notGauges, g.key) {
			x.Gauge(g.key, g.value)
		}
	}
	if !s.cfg.RequireSASL { // without a login nobody may see the names of nodes
		exposition.Set(&x.Text, x.total("quota_exceeded_error_per_namespace"), exposition.Counter, "key", f.refusals)
		x.quotas(quotas)
	}
	s.stats.write(x, f.zxid-s.firstZxid, now)
	x.ours(s)
}

// quotas writes the limits and the usage of quotas.
func (x *metricsText) quotas(uses map[string]tree.QuotaUse) {
	for _, c := range []struct {
		name string
		of   func(tree.QuotaUse) int64
	}{
		{"quota_bytes_limit_per_namespace", func(u tree.QuotaUse) int64 { return u.BytesLimit }},
		{"quota_bytes_usage_per_namespace", func(u tree.QuotaUse) int64 { return u.Bytes }},
		{"quota_count_limit_per_namespace", func(u tree.QuotaUse) int64 { return u.CountLimit }},
		{"quota_count_usage_per_namespace", func(u tree.QuotaUse) int64 { return u.Count }},
	} {
		values := make(map[string]int64)
		for name, u := range uses {
			values[name] = c.of(u)
		}
		exposition.Set(&x.Text, c.name, exposition.Gauge, "key", values)
	}
}

// write writes the server's counters, summaries and histograms.
func (s *stats) write(x *metricsText, commits int64, now time.Time) {
	s.mu.Lock()
	requests, replies := s.requests, s.replies
	s.mu.Unlock()
	for _, c := range []struct {
		name string
		n    int64
	}{
		{"bytes_received_count", requests},
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
		{"response_bytes", replies},
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
	var syncs, batches summary
	for _, m := range []struct {
		name      string
		quantiles []float64
		s         *summary
		unit      float64
	}{
		{"commit_process_time", basic, new(summary), 1},
		{"dbinittime", basic, new(summary), 1},
		{"election_time", basic, new(summary), 1},
		{"fsynctime", basic, &s.syncs, microseconds},
		{"node_changed_watch_count", basic, &s.watchers[watchersChanged], 1},
		{"node_children_watch_count", basic, &s.watchers[watchersChildren], 1},
		{"node_created_watch_count", basic, &s.watchers[watchersCreated], 1},
		{"node_deleted_watch_count", basic, &s.watchers[watchersDeleted], 1},
		{"prep_processor_queue_size", basic, &s.queued, 1},
		{"readlatency", advanced, &s.reads, microseconds},
		{"snapshottime", basic, new(summary), 1},
		{"startup_txns_load_time", basic, &s.loads, microseconds},
		{"sync_processor_batch_size", basic, &s.batches, 1},
		{"sync_processor_queue_size", basic, &s.batchesAhead, 1},
		{"sync_processor_queue_time_ms", advanced, &s.batchWaits, microseconds},
		{"updatelatency", advanced, &s.updates, microseconds},
	} {
		copied := s.snapshot(m.s, now)
		switch m.s {
		case &s.syncs:
			syncs = copied
		case &s.batches:
			batches = copied
		}
		x.summary(m.name, m.quantiles, &copied, m.unit)
	}
	x.pauses()
	x.histogram("turnstile_server_commit_seconds", &syncs, 1e6, 7, 24) // to 17 s
	x.histogram("turnstile_server_commit_batch", &batches, 1, 0, 11)
}

// snapshot returns a copy of a summary. Requests wait while it is made, but not while it is written.
func (s *stats) snapshot(of *summary, now time.Time) summary {
	s.mu.Lock()
	defer s.mu.Unlock()
	of.turn(now)
	return *of
}

// histogram writes all values of a summary, of which per units make one of what is shown. The upper bounds are below
// powers of two, from first to last: a value has that many bits.
func (x *metricsText) histogram(name string, s *summary, per float64, first, last int) {
	x.Family(name, exposition.Histogram)
	n := int64(0)
	for i, count := range s.powers {
		n += count
		if i >= first && i <= last {
			bound := float64(int64(1)<<i-1) / per
			x.Value(name+"_bucket", exposition.Label("le", strconv.FormatFloat(bound, 'g', -1, 64)), n)
		}
	}
	x.Value(name+"_bucket", exposition.Label("le", "+Inf"), n)
	x.Value(name+"_count", "", n)
	x.Value(name+"_sum", "", float64(s.sum)/per)
}

// pauses writes how long the garbage collector has stopped the program. The sum is an estimate from Go's histogram.
func (x *metricsText) pauses() {
	sample := []metrics.Sample{{Name: "/sched/pauses/total/gc:seconds"}}
	metrics.Read(sample)
	var s summary
	if sample[0].Value.Kind() == metrics.KindFloat64Histogram {
		h := sample[0].Value.Float64Histogram()
		for i, n := range h.Counts {
			if bound := h.Buckets[i]; n > 0 { // its lower one: the upper one of the last is infinite
				s.addTimes(int64(max(bound, 0)*1e9), int64(n))
			}
		}
	}
	x.summary("jvm_pause_time_ms", advanced, &s, 1e-6)
}

// ours writes what ZooKeeper does not have, and what every program in Go has.
func (x *metricsText) ours(s *Server) {
	limits, hits := make(map[string]int64), make(map[string]int64)
	for l := range limitCount {
		limits[limitNames[l]], hits[limitNames[l]] = s.cfg.limit(l), s.stats.hits[l].Load()
	}
	version, revision := build()
	x.Family("turnstile_build_info", exposition.Gauge)
	x.Value("turnstile_build_info", fmt.Sprintf("{version=%q,revision=%q}", version, revision), 1)
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

const modulePath = "github.com/seed-a3166700/turnstile"

// build returns the version of this module in the program, and the revision if the program is Turnstile's own.
func build() (version, revision string) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "", ""
	}
	if info.Main.Path == modulePath {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				revision = s.Value
			}
		}
		return info.Main.Version, revision
	}
	for _, m := range info.Deps {
		if m.Path == modulePath {
			return m.Version, ""
		}
	}
	return "", ""
}
