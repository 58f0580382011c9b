package server

import (
	"crypto/tls"
	"crypto/x509/pkix"
	"math"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/seed-a3166700/turnstile/internal/test/request"
	"github.com/seed-a3166700/turnstile/internal/wire"
)

// zooMetrics are names and types of a standalone ZooKeeper 3.9.6 that dashboards and alerts use. It has no counts of
// TTL nodes yet.
const zooMetrics = `
approximate_data_size gauge
auth_failed_count gauge
avg_latency gauge
bytes_received_count counter
commit_process_time summary
commit_count counter
connection_drop_count counter
connection_drop_probability gauge
connection_rejected counter
connection_request_count counter
dbinittime summary
diff_count counter
digest_mismatches_count counter
election_time summary
ensemble_auth_fail counter
ensemble_auth_skip counter
ensemble_auth_success counter
ephemerals_count gauge
fsynctime summary
global_sessions gauge
jvm_pause_time_ms summary
large_requests_rejected counter
last_client_response_size gauge
local_sessions gauge
looking_count counter
max_client_response_size gauge
max_file_descriptor_count gauge
max_latency gauge
min_client_response_size gauge
min_latency gauge
node_changed_watch_count summary
node_children_watch_count summary
node_created_watch_count summary
node_deleted_watch_count summary
non_mtls_local_conn_count gauge
non_mtls_remote_conn_count gauge
num_alive_connections gauge
open_file_descriptor_count gauge
outstanding_requests gauge
outstanding_tls_handshake gauge
packets_received gauge
packets_sent gauge
prep_processor_queue_size summary
proposal_count counter
readlatency summary
response_bytes counter
revalidate_count counter
sessionless_connections_expired counter
snap_count counter
snapshottime summary
stale_requests counter
stale_sessions_expired counter
startup_txns_load_time summary
sync_processor_batch_size summary
sync_processor_queue_size summary
sync_processor_queue_time_ms summary
throttled_ops counter
tls_handshake_exceeded counter
ttl_node_created_count counter
ttl_node_deleted_count counter
unrecoverable_error_count counter
unsuccessful_handshake counter
updatelatency summary
uptime gauge
watch_bytes counter
watch_count gauge
znode_count gauge`

// scraped returns the values of the metrics by name and labels, and their types by name.
func scraped(t *testing.T, s *Server) (values map[string]float64, types map[string]string) {
	t.Helper()
	s.monitored.mu.Lock()
	s.monitored.text = nil // there is no snapshot
	s.monitored.mu.Unlock()
	text, ok := s.metrics()
	if !ok {
		t.Fatal("the server has stopped")
	}
	values, types = make(map[string]float64), make(map[string]string)
	line := regexp.MustCompile(`^([a-z_0-9]+(?:\{(?:[a-z_]+="[^"\\]*",?)+\})?) (\S+)$`)
	for l := range strings.Lines(string(text)) {
		l = strings.TrimSuffix(l, "\n")
		if name, ok := strings.CutPrefix(l, "# TYPE "); ok {
			name, kind, _ := strings.Cut(name, " ")
			types[name] = kind
			continue
		}
		if strings.HasPrefix(l, "# HELP ") {
			continue
		}
		m := line.FindStringSubmatch(l)
		if m == nil {
			t.Fatalf("line %q", l)
		}
		v, err := strconv.ParseFloat(m[2], 64)
		if _, twice := values[m[1]]; err != nil || twice {
			t.Fatalf("line %q: %v, twice: %v", l, err, twice)
		}
		values[m[1]] = v
	}
	return values, types
}

func TestMetricsHaveZooKeepersNamesAndTypes(t *testing.T) {
	t.Parallel()
	bubble(t, Config{}, func(t *testing.T, s *Server, _ *memListener) {
		t.Helper()
		values, types := scraped(t, s)
		for name, v := range values { // ZooKeeper has it for the quantiles of an empty summary alone
			if math.IsNaN(v) && !strings.Contains(name, "quantile=") {
				t.Errorf("%s is NaN", name)
			}
		}
		q, ok := values[`election_time{quantile="0.5"}`]
		if !ok || !math.IsNaN(q) || values["election_time_count"] != 0 {
			t.Errorf("an empty summary has the quantile %v", q)
		}
		for want := range strings.Lines(strings.TrimSpace(zooMetrics)) {
			name, kind, _ := strings.Cut(strings.TrimSpace(want), " ")
			if types[name] != kind {
				t.Errorf("%s has type %q, want %q", name, types[name], kind)
			}
		}
		s.cfg.NextMetrics = true
		values, types = scraped(t, s)
		for name, kind := range types {
			if kind == "counter" && !strings.HasSuffix(name, "_total") {
				t.Errorf("counter %s", name)
			}
		}
		if _, ok := values[`readlatency{quantile="0.95"}`]; !ok {
			t.Error("no quantile 0.95")
		}
	})
}

// Each metric moves by what it counts.
func TestMetricsCountWhatHappens(t *testing.T) {
	t.Parallel()
	bubble(t, Config{ExtendedTypes: true, MaxClientConns: 2}, func(t *testing.T, s *Server, l *memListener) {
		t.Helper()
		before, _ := scraped(t, s)
		moved := func(by map[string]float64) {
			t.Helper()
			synctest.Wait()
			after, _ := scraped(t, s)
			for name, want := range by {
				if got := after[name] - before[name]; got != want {
					t.Errorf("%s moved by %v, want %v", name, got, want)
				}
			}
			before = after
		}
		c := l.connect(t, 10_000)
		moved(map[string]float64{
			"connection_request_count": 1, "num_alive_connections": 1, "global_sessions": 1, "commit_count": 1,
			"connection_drop_count": 0,
		})
		if _, err := c.create("/a", nil, 0); err != nil {
			t.Fatal(err)
		}
		moved(map[string]float64{
			"commit_count": 1, "znode_count": 1, "packets_received": 1,
			"updatelatency_count": 1, "readlatency_count": 0,
		})
		c.mustCall(t, wire.OpGetData, &wire.PathWatchRequest{Path: "/a", Watch: true})
		moved(map[string]float64{"readlatency_count": 1, "watch_count": 1})
		c.mustCall(t, wire.OpDelete, &wire.DeleteRequest{Path: "/a", Version: -1})
		moved(map[string]float64{
			"node_deleted_watch_count_count": 1, "node_deleted_watch_count_sum": 1, "watch_count": -1,
		})
		if before["watch_bytes"] == 0 || before["response_bytes"] == 0 || before["bytes_received_count"] == 0 {
			t.Error("bytes are not counted")
		}
		c.nc.Close()
		moved(map[string]float64{"connection_drop_count": 1, "num_alive_connections": -1})
		time.Sleep(time.Minute)
		moved(map[string]float64{"stale_sessions_expired": 1, "global_sessions": -1})
		d := l.connect(t, 60_000)
		ttl := &wire.CreateTTLRequest{CreateRequest: wire.CreateRequest{Path: "/t", ACL: openACL, Flags: 5}, TTL: 1000}
		d.mustCall(t, wire.OpCreateTTL, ttl)
		moved(map[string]float64{"ttl_node_created_count": 1, "ttl_node_deleted_count": 0})
		for range 3 {
			time.Sleep(30 * time.Second)
			d.ping(t)
		}
		moved(map[string]float64{"ttl_node_created_count": 0, "ttl_node_deleted_count": 1, "znode_count": -1})
		d = l.resumeWith(t, d, 40_000)
		moved(map[string]float64{"revalidate_count": 1, "stale_sessions_expired": 0})
		l.connect(t, 40_000)
		l.dial(t)
		moved(map[string]float64{"connection_rejected": 1, "connection_request_count": 1})
		d.nc.Close()
		moved(map[string]float64{"connection_drop_count": 1})
		silent := l.dial(t)
		time.Sleep(time.Minute)
		moved(map[string]float64{"sessionless_connections_expired": 1, "connection_drop_count": 0})
		silent.nc.Close()
		large := l.dial(t)
		if _, err := large.nc.Write([]byte{0x7f, 0, 0, 0}); err != nil {
			t.Fatal(err)
		}
		moved(map[string]float64{"large_requests_rejected": 1})
	})
}

func TestQuantilesAreThoseOfRecentValues(t *testing.T) {
	t.Parallel()
	var s summary
	now := time.Now()
	s.turn(now)
	if _, ok := s.quantile(0.5); ok {
		t.Error("a summary without values has a quantile")
	}
	for v := range int64(1000) {
		s.add(v)
	}
	check := func(q float64, want int64) {
		t.Helper()
		if got, ok := s.quantile(q); !ok || got < want || got > want+want/summarySteps+1 {
			t.Errorf("quantile %v is %d, want %d or an eighth more", q, got, want)
		}
	}
	check(0.5, 499)
	check(0.9, 899)
	check(0.99, 989)
	s.turn(now.Add(summaryPeriod)) // they are those of the period before
	for range 3000 {
		s.add(1 << 40)
	}
	check(0.1, 399)
	check(0.5, 1<<40)
	s.turn(now.Add(2 * summaryPeriod))
	check(0.01, 1<<40)
	s.turn(now.Add(9 * summaryPeriod))
	if _, ok := s.quantile(0.5); ok || s.n != 4000 || s.sum != 499_500+3000<<40 {
		t.Errorf("%v, %d values with the sum %d", ok, s.n, s.sum)
	}
	for v := range int64(1 << 12) {
		if got := top(class(v)); got < v || got > v+v/summarySteps {
			t.Errorf("the class of %d ends at %d", v, got)
		}
	}
	if class(1<<63-1) >= len(classes{}) {
		t.Error("a large value has no class")
	}
}

func TestMetricsAreServedWithHealth(t *testing.T) {
	t.Parallel()
	s, err := Start(t.Context(), Config{
		InMemory: true, Listen: []string{"127.0.0.1:0"}, AdminListen: "127.0.0.1:0", MetricsListen: "127.0.0.1:0",
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, addr := range []string{s.AdminAddr().String(), s.MetricsAddr().String()} {
		for path, want := range map[string]string{
			"/livez": "ok\n", "/readyz": "ok\n", "/metrics": "# TYPE znode_count gauge",
		} {
			status, body := request.Fetch(t, http.MethodGet, "http://"+addr+path)
			if status != 200 || !strings.Contains(body, want) {
				t.Errorf("%s: %d %q", path, status, body)
			}
			if status, _ := request.Fetch(t, http.MethodPost, "http://"+addr+path); status != 405 {
				t.Errorf("POST %s: %d", path, status)
			}
		}
		if status, _ := request.Fetch(t, http.MethodGet, "http://"+addr+"/metrics/x"); status != 404 {
			t.Errorf("%s: %d", addr, status)
		}
	}
	status, _ := request.Fetch(t, http.MethodGet, "http://"+s.MetricsAddr().String()+"/commands/mntr")
	if status != 404 {
		t.Error("commands are served where the metrics are:", status)
	}
}

// A disk that hangs makes the server not ready, and those who ask do not pile up.
func TestServerWhoseDiskHangsIsNotReady(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newMemListener()
		s := serve(t, Config{Data: "data", Listeners: []net.Listener{l}}, disk{fs: vfs.NewMem()})
		c := l.connect(t, 60_000)
		if err := s.ready(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.releasing <- struct{}{} // as a disk that does not answer
		create := &wire.CreateRequest{Path: "/a", ACL: openACL}
		if err := c.send(1, wire.OpCreate, create); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		began := time.Now()
		for range 3 {
			if err := s.ready(t.Context()); err == nil || !strings.Contains(err.Error(), "has not taken in 5s") {
				t.Error(err)
			}
		}
		if took := time.Since(began); took != 15*time.Second {
			t.Error("it took", took)
		}
		<-s.releasing
		synctest.Wait()
		if err := s.ready(t.Context()); err != nil {
			t.Error(err)
		}
		if values, _ := scraped(t, s); values["sync_processor_batch_size_count"] == 0 || values["fsynctime_sum"] == 0 {
			t.Error("the batch is not counted")
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// An idle server whose disk has begun to hang is not ready, although no client has written anything.
func TestReadinessWritesIfNothingElseDoes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, Config{Data: "data", Listeners: []net.Listener{newMemListener()}}, disk{fs: vfs.NewMem()})
		commits := func() float64 {
			values, _ := scraped(t, s)
			return values["turnstile_server_commit_seconds_count"]
		}
		time.Sleep(readyWithin)
		before := commits()
		for range 2 { // the second finds what the first has written
			if err := s.ready(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if got := commits() - before; got != 1 {
			t.Errorf("%v batches were written, want 1", got)
		}
		time.Sleep(readyWithin)
		s.releasing <- struct{}{} // as a disk that does not answer
		if err := s.ready(t.Context()); err == nil {
			t.Error("ready with a disk that hangs")
		}
		<-s.releasing
		synctest.Wait()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := s.ready(t.Context()); err == nil {
			t.Error("ready after Close")
		}
	})
}

// The quotas of a child of the root are one value, whose name only those see who may see nodes.
func TestMetricsHaveTheQuotas(t *testing.T) {
	t.Parallel()
	bubble(t, Config{}, func(t *testing.T, s *Server, l *memListener) {
		t.Helper()
		c := l.connect(t, 10_000)
		for _, n := range []struct{ path, data string }{
			{"/a", "1234"},
			{"/zookeeper/quota/a", ""},
			{"/zookeeper/quota/a/zookeeper_limits", "count=7,bytes=50=;byteHardLimit=90"},
		} {
			if _, err := c.create(n.path, []byte(n.data), 0); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		values, types := scraped(t, s)
		for name, want := range map[string]float64{
			"count_limit": 7, "bytes_limit": 90, "count_usage": 1, "bytes_usage": 4,
		} {
			name = "quota_" + name + "_per_namespace"
			if got, ok := values[name+`{key="a"}`]; got != want || !ok || types[name] != "gauge" {
				t.Errorf("%s is %v, %v", name, got, ok)
			}
		}
		s.cfg.RequireSASL = true
		values, _ = scraped(t, s)
		if _, ok := values[`quota_count_limit_per_namespace{key="a"}`]; ok {
			t.Error("names of nodes are shown without a login")
		}
	})
}

// Whoever fetches the metrics may have to show a certificate.
func TestMetricsAreServedWithTLS(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	start := func(client tls.ClientAuthType) *Server {
		t.Helper()
		s, err := Start(t.Context(), Config{
			InMemory: true, Listen: []string{"127.0.0.1:0"}, MetricsTLSListen: "127.0.0.1:0", MetricsTLS: &tls.Config{
				Certificates: []tls.Certificate{a.issue(t, pkix.Name{CommonName: "server"})}, ClientAuth: client,
				ClientCAs: a.pool(),
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		if s.MetricsAddr() != nil {
			t.Error("the metrics are served without TLS, too")
		}
		return s
	}
	fetch := func(s *Server, certs ...tls.Certificate) error {
		t.Helper()
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: a.pool(), Certificates: certs}}
		defer transport.CloseIdleConnections()
		url := "https://" + s.MetricsTLSAddr().String() + "/livez"
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := (&http.Client{Transport: transport}).Do(req)
		if err == nil {
			err = resp.Body.Close()
		}
		return err
	}
	s := start(tls.RequireAndVerifyClientCert)
	if err := fetch(s, a.issue(t, pkix.Name{CommonName: "prometheus"})); err != nil {
		t.Error(err)
	}
	if err := fetch(s); err == nil {
		t.Error("a client without a certificate is served")
	}
	if err := fetch(s, newAuthority(t).issue(t, pkix.Name{CommonName: "prometheus"})); err == nil {
		t.Error("a client with the certificate of another authority is served")
	}
	s = start(tls.NoClientCert)
	if err := fetch(s); err != nil {
		t.Error(err)
	}
}

func TestHistogramsCountAllValues(t *testing.T) {
	t.Parallel()
	var s summary
	for _, v := range []int64{0, 1, 127, 128, 1 << 40} {
		s.add(v)
	}
	var x metricsText
	x.histogram("h", &s, 1e6, 7, 8)
	want := "# HELP h h\n# TYPE h histogram\nh_bucket{le=\"0.000127\"} 3\nh_bucket{le=\"0.000255\"} 4\n" +
		"h_bucket{le=\"+Inf\"} 5\nh_count 5\nh_sum 1.099511628032e+06\n"
	if got := x.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// A scrape, of which there is at most one per second.
func BenchmarkMetrics(b *testing.B) {
	s, err := Start(b.Context(), Config{InMemory: true, Listen: []string{"127.0.0.1:0"}})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	b.ReportAllocs()
	for b.Loop() {
		s.monitored.text = nil
		if _, ok := s.metrics(); !ok {
			b.Fatal("the server has stopped")
		}
	}
}

// What a reply, and what a batch, costs for the metrics and the four-letter words together.
func BenchmarkCounting(b *testing.B) {
	var s stats
	f := frame{op: wire.OpGetData, size: 50}
	b.Run("reply", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			s.add(&f, 100*time.Microsecond, 80)
		}
	})
	batch := batch{frames: []frame{f}}
	b.Run("batch", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			s.committed(&batch, time.Millisecond)
		}
	})
}
