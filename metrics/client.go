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
	requests, sessions, disconnects, proofs *prometheus.CounterVec
	took                                    *prometheus.HistogramVec
	connected                               *prometheus.GaugeVec
	timeout                                 *prometheus.GaugeVec
	certain                                 *prometheus.Desc // computed when it is read

	mu     sync.Mutex // guards the field below
	owning map[*client]time.Time
}

// A client tells the clients apart. It has a field, so that two never have the same address.
type client struct{ _ byte }

func newClients() *clients {
	c := &clients{
		requests: counters("turnstile_client_requests_total",
			"Requests that were answered or have failed.", "op", "code"),
		took: histograms("turnstile_client_request_seconds",
			"How long requests took.", quick, "op"),
		connected: gauges("turnstile_client_connected",
			"Connections of clients: 1 for a client that is connected."),
		sessions: counters("turnstile_client_sessions_total", "Sessions that have ended.", "end"),
		disconnects: counters("turnstile_client_disconnects_total",
			"Connections that have ended.", "reason"),
		timeout: gauges("turnstile_client_session_timeout_seconds",
			"The session timeout that was requested, and the one that the server has granted.", "which"),
		certain: prometheus.NewDesc("turnstile_client_certain_seconds",
			"For how long no other session can be given what this process holds; absent while it holds nothing. "+
				"Of several clients, the shortest.", nil, nil),
		proofs: counters("turnstile_client_proofs_total",
			"Writes by which sessions have shown that they live.", "result"),
		owning: make(map[*client]time.Time),
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
		Request: func(_ context.Context, r zk.RequestDone) {
			c.requests.WithLabelValues(r.Op, code(r.Err)).Inc()
			c.took.WithLabelValues(r.Op).Observe(r.Took.Seconds())
		},
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
	to <- c.certain
}

// Collect sends the metrics.
func (c *clients) Collect(to chan<- prometheus.Metric) {
	c.vectors().collect(to)
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
	return group{c.requests, c.sessions, c.disconnects, c.proofs, c.took, c.connected, c.timeout}
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

// code says what has become of a request.
func code(err error) string {
	if err == nil {
		return "ok"
	}
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
