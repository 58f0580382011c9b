// Package metrics shows Prometheus what a program does with locks, elections, queues and ZooKeeper.
//
//	m, err := metrics.New(metrics.Config{})
//	client, err := zk.Open(ctx, zk.Config{Servers: servers, Hooks: m.ZK()})
//	mutex, err := lock.NewMutex(client, path, lock.Config{Hooks: m.Lock()})
//	http.Handle("/metrics", promhttp.Handler())
//
// docs/metrics.md lists the metrics. A program that has hooks of its own joins them with And:
//
//	lock.Config{Hooks: own.And(m.Lock())}
package metrics

import (
	"runtime/debug"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seed-a3166700/turnstile/internal/fold"
)

// Config configures the metrics. The zero value is ready to use.
type Config struct {
	// Registerer is where the metrics are registered; prometheus.DefaultRegisterer if nil.
	Registerer prometheus.Registerer

	// Names returns the name that stands in the metrics for a path of a lock, an election or a queue. The default is
	// the path, where UUIDs, hexadecimal numbers of at least 8 digits, and other numbers are replaced by an asterisk:
	// /jobs/import-42 counts as /jobs/import-*. Paths of one name are counted together. Of locks, elections and queues
	// the first 200 names each are shown, and all others are counted together as "other", as are those without a name.
	//
	// Names must return the same name for the same path, and may be called by several goroutines at once.
	Names func(path string) string

	_ struct{}
}

// Metrics are what was counted for one Registerer. One is enough for a program.
type Metrics struct {
	locks     *locks
	elections *elections
	queues    *queues
	clients   *clients
	build     prometheus.Metric
}

// New registers the metrics. It returns an error if the Registerer has them already.
func New(cfg Config) (*Metrics, error) {
	if cfg.Registerer == nil {
		cfg.Registerer = prometheus.DefaultRegisterer
	}
	if cfg.Names == nil {
		cfg.Names = fold.Path
	}
	version, revision := build()
	m := &Metrics{
		locks:     newLocks(cfg.Names),
		elections: newElections(cfg.Names),
		queues:    newQueues(cfg.Names),
		clients:   newClients(),
		build: prometheus.MustNewConstMetric(prometheus.NewDesc("turnstile_build_info",
			"Is 1: which Turnstile this program was built with.", []string{"version", "revision"}, nil),
			prometheus.GaugeValue, 1, version, revision),
	}
	if err := cfg.Registerer.Register(collector{m}); err != nil {
		return nil, err
	}
	return m, nil
}

const module = "github.com/seed-a3166700/turnstile"

// build returns the version of Turnstile that the program contains, and its revision if the program is Turnstile.
func build() (version, revision string) {
	version, revision = "unknown", "unknown"
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return version, revision
	}
	for _, dep := range info.Deps {
		if dep.Path == module {
			version = dep.Version
		}
	}
	if info.Main.Path != module {
		return version, revision
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" {
			revision = setting.Value
		}
	}
	return info.Main.Version, revision
}

// collector is what the Registerer sees of Metrics.
type collector struct{ m *Metrics }

func (c collector) parts() []prometheus.Collector {
	return []prometheus.Collector{c.m.locks, c.m.elections, c.m.queues, c.m.clients}
}

// Describe sends the descriptions of all metrics.
func (c collector) Describe(to chan<- *prometheus.Desc) {
	for _, part := range c.parts() {
		part.Describe(to)
	}
	to <- c.m.build.Desc()
}

// Collect sends all metrics.
func (c collector) Collect(to chan<- prometheus.Metric) {
	for _, part := range c.parts() {
		part.Collect(to)
	}
	to <- c.m.build
}

// group collects several metrics as one.
type group []prometheus.Collector

func (g group) describe(to chan<- *prometheus.Desc) {
	for _, c := range g {
		c.Describe(to)
	}
}

func (g group) collect(to chan<- prometheus.Metric) {
	for _, c := range g {
		c.Collect(to)
	}
}

// The buckets of histograms, in seconds.
var (
	quick = []float64{ // of requests
		.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30,
	}
	slow = []float64{ // of what people and other programs wait for
		.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300,
	}
)

// histograms returns a classic histogram that is a native one as well, of bounded size.
func histograms(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: name, Help: help, Buckets: buckets,
		NativeHistogramBucketFactor:     1.1,
		NativeHistogramMaxBucketNumber:  160,
		NativeHistogramMinResetDuration: time.Hour,
	}, labels)
}

// desc describes a metric that is computed when it is read.
func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

// describe sends descriptions.
func describe(to chan<- *prometheus.Desc, all ...*prometheus.Desc) {
	for _, d := range all {
		to <- d
	}
}

// send sends metrics.
func send(to chan<- prometheus.Metric, all []prometheus.Metric) {
	for _, m := range all {
		to <- m
	}
}

func counters(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

func gauges(name, help string, labels ...string) *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
}

// label returns a value that Prometheus accepts.
func label(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
