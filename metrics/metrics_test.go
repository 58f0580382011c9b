package metrics_test

import (
	"bytes"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"github.com/seed-a3166700/turnstile/internal/test/peer"
	"github.com/seed-a3166700/turnstile/metrics"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

const sessionTimeout = 16 * time.Second

// world is a server in a bubble, and metrics.
type world struct {
	*zktest.Server
	t       *testing.T
	reg     *prometheus.Registry
	metrics *metrics.Metrics
}

func inWorld(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
		w := &world{Server: srv, t: t, reg: prometheus.NewRegistry()}
		w.metrics = newMetrics(t, metrics.Config{Registerer: w.reg})
		test(t, w)
	})
}

func newMetrics(tb testing.TB, cfg metrics.Config) *metrics.Metrics {
	tb.Helper()
	m, err := metrics.New(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

// client returns a client with metrics.
func (w *world) client() *zk.Client {
	w.t.Helper()
	cfg := w.Config(sessionTimeout)
	cfg.Hooks = w.metrics.ZK()
	c, err := zk.Open(w.t.Context(), cfg)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = c.Close() })
	return c
}

// values returns each sample as a scrape would have it, without buckets.
func values(tb testing.TB, g prometheus.Gatherer) map[string]float64 {
	tb.Helper()
	families, err := g.Gather()
	if err != nil {
		tb.Fatal(err)
	}
	all := make(map[string]float64)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			labels := make([]string, 0, len(m.GetLabel()))
			for _, l := range m.GetLabel() {
				labels = append(labels, fmt.Sprintf("%s=%s", l.GetName(), l.GetValue()))
			}
			at := "{" + strings.Join(labels, ",") + "}"
			switch f.GetType() {
			case dto.MetricType_HISTOGRAM:
				all[f.GetName()+"_count"+at] = float64(m.GetHistogram().GetSampleCount())
				all[f.GetName()+"_sum"+at] = m.GetHistogram().GetSampleSum()
			case dto.MetricType_COUNTER:
				all[f.GetName()+at] = m.GetCounter().GetValue()
			default:
				all[f.GetName()+at] = m.GetGauge().GetValue()
			}
		}
	}
	return all
}

// want checks samples, of which the names begin with turnstile_, once everything has come to rest. A negative value
// means that the sample is absent.
func (w *world) want(want map[string]float64) {
	w.t.Helper()
	synctest.Wait()
	got := values(w.t, w.reg)
	for _, name := range slices.Sorted(maps.Keys(want)) {
		value, ok := got["turnstile_"+name]
		switch {
		case want[name] < 0 && ok:
			w.t.Errorf("%s is %v, want none", name, value)
		case want[name] >= 0 && !ok:
			w.t.Errorf("%s is absent, want %v", name, want[name])
		case want[name] >= 0 && value != want[name]:
			w.t.Errorf("%s is %v, want %v", name, value, want[name])
		}
	}
}

func TestMetricsAreRegisteredOnce(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	newMetrics(t, metrics.Config{Registerer: reg})
	if _, err := metrics.New(metrics.Config{Registerer: reg}); err == nil {
		t.Error("the same metrics were registered twice")
	}
	n := 0
	for name, value := range values(t, reg) {
		if strings.HasPrefix(name, "turnstile_build_info{revision=") && value == 1 {
			n++
		}
	}
	if n != 1 {
		t.Errorf("got %d build_info, want 1", n)
	}
}

// The names, units and help texts follow Prometheus's rules, by its own linters.
func TestMetricsPassTheLinters(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		useAll(w)
		problems, err := testutil.GatherAndLint(w.reg)
		if err != nil || len(problems) > 0 {
			t.Errorf("got %v %v", problems, err)
		}
		checkWithPromtool(t, w.reg)
	})
}

// checkWithPromtool has promtool check what a scrape returns.
func checkWithPromtool(t *testing.T, reg *prometheus.Registry) {
	t.Helper()
	if _, err := exec.LookPath("promtool"); err != nil {
		t.Log("no promtool")
		return
	}
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(&text, f); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "promtool", "check", "metrics")
	cmd.Stdin = &text
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("promtool check metrics: %v\n%s", err, out)
	}
}

// promtool runs promtool, which it skips the test for if there is none.
func promtool(t *testing.T, args ...string) {
	t.Helper()
	peer.Need(t, "promtool")
	if out, err := exec.CommandContext(t.Context(), "promtool", args...).CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}
