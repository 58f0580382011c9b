package metrics

// The metrics of clients.

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seed-a3166700/turnstile/internal/outcome"
	"github.com/seed-a3166700/turnstile/zk"
)

// clients are the metrics of all clients.
type clients struct {
	sessions, disconnects, proofs *prometheus.CounterVec
	connected, timeout            *prometheus.GaugeVec

	requests, took, certain *prometheus.Desc // computed when they are read

	mu     sync.Mutex // guards the field below
	owning map[*client]time.Time

	counting sync.Mutex // guards the field below; requests are so many that counting them must be fast
	ops      map[string]*opSeries
}

// An opSeries has the series of the requests of one kind.
type opSeries struct {
	ok     uint64
	failed map[string]uint64 // by code
	took   *histogram
}

// A client tells the clients apart. It has a field, so that two never have the same address.
type client struct{ _ byte }

func newClients() *clients {
	c := &clients{
		requests: desc("turnstile_client_requests_total",
			"Requests that were answered or have failed.", "op", "code"),
		took: desc("turnstile_client_request_seconds",
			"How long requests took.", "op"),
		connected: gauges("turnstile_client_connected",
			"Connections of clients: 1 for a client that is connected."),
		sessions: counters("turnstile_client_sessions_total", "Sessions that have ended.", "end"),
		disconnects: counters("turnstile_client_disconnects_total",
			"Connections that have ended.", "reason"),
		timeout: gauges("turnstile_client_session_timeout_seconds",
			"The session timeout that was requested, and the one that the server has granted.", "which"),
		certain: desc("turnstile_client_certain_seconds",
			"For how long no other session can be given what this process holds; absent while it holds nothing. "+
				"Of several clients, the shortest."),
		proofs: counters("turnstile_client_proofs_total",
			"Writes by which sessions have shown that they live.", "result"),
		owning: make(map[*client]time.Time), ops: make(map[string]*opSeries),
	}
	c.connected.WithLabelValues()
	for _, end := range []string{"expired", "lost", "closed"} {
		c.sessions.WithLabelValues(end)
	}
	for _, result := range []string{"ok", "failed"} {
		c.proofs.WithLabelValues(result)
	}
	return c
}

// ZK returns the hooks of one client. Each client needs hooks of its own.
func (m *Metrics) ZK() zk.Hooks {
	c, who := m.clients, new(client)
	connected := c.connected.WithLabelValues()
	return zk.Hooks{
		Request: func(_ context.Context, r zk.RequestDone) { c.count(&r) },
		Proof: func(p zk.ProofDone) {
			result := "ok"
			if p.Err != nil {
				result = "failed"
			}
			c.proofs.WithLabelValues(result).Inc()
		},
		Certain: func(until time.Time) { c.setCertain(who, until) },
		Opened: func(s zk.SessionOpened) {
			c.timeout.WithLabelValues("requested").Set(s.Requested.Seconds())
			c.timeout.WithLabelValues("negotiated").Set(s.Granted.Seconds())
		},
		Ended: func(_ int64, cause error) {
			c.setCertain(who, time.Time{})
			c.sessions.WithLabelValues(outcome.OfSession(cause)).Inc()
		},
		Connected: func(string) { connected.Inc() },
		Disconnected: func(_ string, err error) {
			connected.Dec()
			c.disconnects.WithLabelValues(reason(err)).Inc()
		},
	}
}

// count counts a request.
func (c *clients) count(r *zk.RequestDone) {
	c.counting.Lock()
	defer c.counting.Unlock()
	s := c.ops[r.Op]
	if s == nil {
		s = &opSeries{failed: make(map[string]uint64), took: newHistogram(quick)}
		c.ops[r.Op] = s
	}
	if r.Err == nil {
		s.ok++
	} else {
		s.failed[code(r.Err)]++
	}
	s.took.observe(r.Took.Seconds())
}

// collectRequests sends the metrics of requests.
func (c *clients) collectRequests(to chan<- prometheus.Metric) {
	var all []prometheus.Metric
	c.counting.Lock()
	for op, s := range c.ops {
		number := func(n uint64, code string) {
			all = append(all,
				prometheus.MustNewConstMetric(c.requests, prometheus.CounterValue, float64(n), op, code))
		}
		if s.ok > 0 {
			number(s.ok, "ok")
		}
		for code, n := range s.failed {
			number(n, code)
		}
		all = append(all, s.took.export(c.took, labels("op", op)))
	}
	c.counting.Unlock()
	send(to, all)
}

// setCertain notes until when a client is certain of what it owns; the zero time means that it owns nothing.
func (c *clients) setCertain(who *client, until time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if until.IsZero() {
		delete(c.owning, who)
	} else {
		c.owning[who] = until
	}
}

// Describe sends the descriptions of the metrics.
func (c *clients) Describe(to chan<- *prometheus.Desc) {
	c.vectors().describe(to)
	describe(to, c.requests, c.took, c.certain)
}

// Collect sends the metrics.
func (c *clients) Collect(to chan<- prometheus.Metric) {
	c.vectors().collect(to)
	c.collectRequests(to)
	c.mu.Lock()
	var first time.Time
	for _, until := range c.owning {
		if first.IsZero() || until.Before(first) {
			first = until
		}
	}
	c.mu.Unlock()
	if !first.IsZero() {
		to <- prometheus.MustNewConstMetric(c.certain, prometheus.GaugeValue, max(0, time.Until(first).Seconds()))
	}
}

func (c *clients) vectors() group {
	return group{c.sessions, c.disconnects, c.proofs, c.connected, c.timeout}
}

// reason says why a connection has ended.
func reason(err error) string {
	switch {
	case errors.Is(err, zk.ErrNoReply):
		return "no_reply"
	case errors.Is(err, zk.ErrMoved):
		return "moved"
	case errors.Is(err, zk.ErrProtocol):
		return "protocol"
	case outcome.OfSession(err) != other:
		return outcome.OfSession(err)
	default:
		return "network"
	}
}

// code says why a request has failed.
func code(err error) string {
	if c, ok := errors.AsType[zk.Code](err); ok {
		if name, ok := codes[c]; ok {
			return name
		}
		return other
	}
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return "canceled"
	case errors.Is(err, zk.ErrConnectionLost):
		return "connection_lost"
	case errors.Is(err, zk.ErrNotConnected):
		return "not_connected"
	case errors.Is(err, zk.ErrReplyTooLarge):
		return "reply_too_large"
	default:
		return outcome.OfSession(err)
	}
}

// codes are the names of the servers' error codes.
var codes = map[zk.Code]string{
	zk.SystemError:              "system_error",
	zk.RuntimeInconsistency:     "runtime_inconsistency",
	zk.DataInconsistency:        "data_inconsistency",
	zk.MarshallingError:         "marshalling_error",
	zk.Unimplemented:            "unimplemented",
	zk.OperationTimeout:         "operation_timeout",
	zk.BadArguments:             "bad_arguments",
	zk.UnknownSession:           "unknown_session",
	zk.NewConfigNoQuorum:        "new_config_no_quorum",
	zk.ReconfigInProgress:       "reconfig_in_progress",
	zk.NoNode:                   "no_node",
	zk.NoAuth:                   "no_auth",
	zk.BadVersion:               "bad_version",
	zk.NoChildrenForEphemerals:  "no_children_for_ephemerals",
	zk.NodeExists:               "node_exists",
	zk.NotEmpty:                 "not_empty",
	zk.SessionExpired:           "session_expired",
	zk.InvalidACL:               "invalid_acl",
	zk.AuthFailed:               "auth_failed",
	zk.SessionMoved:             "session_moved",
	zk.NotReadOnly:              "not_read_only",
	zk.EphemeralOnLocalSession:  "ephemeral_on_local_session",
	zk.NoWatcher:                "no_watcher",
	zk.RequestTimeout:           "request_timeout",
	zk.ReconfigDisabled:         "reconfig_disabled",
	zk.SessionClosedRequireAuth: "session_closed_require_auth",
	zk.QuotaExceeded:            "quota_exceeded",
	zk.ThrottledOp:              "throttled_op",
}
