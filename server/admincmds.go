package server

// The HTTP commands.

import (
	"maps"
	"strconv"
	"time"
)

// adminCmd is one HTTP command. Commands without run are not supported: ZooKeeper requires a login for them.
type adminCmd struct {
	name    string
	aliases []string
	detail  detail
	run     func(s *Server, f *facts) map[string]any
}

var adminCommands = []adminCmd{
	{"configuration", []string{"conf", "config"}, detail{}, adminConf},
	{"connection_stat_reset", []string{"crst"}, detail{}, func(s *Server, _ *facts) map[string]any {
		for _, c := range s.allConns() {
			c.resetStats()
		}
		return nil
	}},
	{"connections", []string{"cons"}, detail{}, func(_ *Server, f *facts) map[string]any {
		return f.adminConns(false)
	}},
	{"dirs", nil, detail{}, func(s *Server, _ *facts) map[string]any {
		return map[string]any{"datadir_size": s.diskSize(), "logdir_size": s.diskSize()}
	}},
	{"dump", nil, detail{dump: true}, func(s *Server, f *facts) map[string]any {
		expiry := make(map[string][]string)
		for at, ids := range f.deadlines {
			expiry[strconv.FormatInt(s.clock.wall(at).UnixMilli(), 10)] = sessionNames(ids)
		}
		return map[string]any{
			"expiry_time_to_session_ids": expiry, "session_id_to_ephemeral_paths": bySession(f.ephemeralsOf),
		}
	}},
	{"environment", []string{"env", "envi"}, detail{}, func(*Server, *facts) map[string]any {
		m := make(map[string]any)
		for _, e := range environment() {
			m[e.key] = e.value
		}
		return m
	}},
	{"get_trace_mask", []string{"gtmk"}, detail{}, func(s *Server, _ *facts) map[string]any {
		return map[string]any{"tracemask": s.traceMask.Load()}
	}},
	{"hash", nil, detail{}, func(*Server, *facts) map[string]any { return map[string]any{"digests": []any{}} }},
	{"initial_configuration", []string{"icfg"}, detail{}, func(s *Server, _ *facts) map[string]any {
		return map[string]any{"initial_configuration": ""}
	}},
	{"is_read_only", []string{"isro"}, detail{}, func(*Server, *facts) map[string]any {
		return map[string]any{"read_only": false}
	}},
	{"last_snapshot", []string{"lsnp"}, detail{}, func(s *Server, f *facts) map[string]any {
		// There are no snapshots; the last commit is the closest equivalent.
		return map[string]any{"zxid": "0x" + strconv.FormatInt(f.zxid, 16), "timestamp": time.Now().Unix()}
	}},
	{"leader", []string{"lead"}, detail{}, func(s *Server, _ *facts) map[string]any {
		return map[string]any{"is_leader": false, "leader_id": serverID, "leader_ip": ""}
	}},
	{"monitor", []string{"mntr"}, detail{}, func(s *Server, f *facts) map[string]any {
		m := make(map[string]any)
		for _, g := range f.gauges(s) {
			m[g.key] = g.value
		}
		return m
	}},
	{"observer_connection_stat_reset", []string{"orst"}, detail{}, func(*Server, *facts) map[string]any { return nil }},
	{"observers", []string{"obsr"}, detail{}, func(*Server, *facts) map[string]any {
		return map[string]any{"synced_observers": 0, "observers": []any{}}
	}},
	{"restore", []string{"rest"}, detail{}, nil},
	{"ruok", nil, detail{}, func(*Server, *facts) map[string]any { return nil }},
	{"server_stats", []string{"srvr"}, detail{}, adminStats},
	{"set_trace_mask", []string{"stmk"}, detail{}, func(*Server, *facts) map[string]any {
		return map[string]any{"tracemask": 0}
	}},
	{"snapshot", []string{"snap"}, detail{}, nil},
	{"stat_reset", []string{"srst"}, detail{}, func(s *Server, _ *facts) map[string]any {
		s.stats.reset()
		return nil
	}},
	{"stats", []string{"stat"}, detail{}, func(s *Server, f *facts) map[string]any {
		m := adminStats(s, f)
		maps.Copy(m, f.adminConns(true))
		return m
	}},
	{"system_properties", []string{"sysp"}, detail{}, func(*Server, *facts) map[string]any { return nil }},
	{"voting_view", nil, detail{}, func(*Server, *facts) map[string]any {
		return map[string]any{"current_config": map[string]any{}}
	}},
	{"watch_summary", []string{"wchs"}, detail{}, func(_ *Server, f *facts) map[string]any {
		return map[string]any{
			"num_connections": f.watchConns, "num_paths": f.watchPaths, "num_total_watches": f.watchTotal,
		}
	}},
	{"watches", []string{"wchc"}, detail{watches: true}, func(_ *Server, f *facts) map[string]any {
		return map[string]any{"session_id_to_watched_paths": bySession(f.byOwner)}
	}},
	{"watches_by_path", []string{"wchp"}, detail{watches: true}, func(_ *Server, f *facts) map[string]any {
		m := make(map[string][]string)
		for path, ids := range f.byPath {
			m[path] = sessionNames(ids)
		}
		return map[string]any{"path_to_session_ids": m}
	}},
	{"zabstate", nil, detail{}, func(*Server, *facts) map[string]any {
		return map[string]any{"voting": false, "last_zxid": "", "zabstate": ""}
	}},
}

func adminConf(s *Server, _ *facts) map[string]any {
	m := make(map[string]any)
	for _, set := range s.settings() {
		if set.json != "" {
			m[set.json] = set.value
		}
	}
	return m
}

func adminStats(_ *Server, f *facts) map[string]any {
	return map[string]any{
		"version": versionText, "read_only": false, "node_count": f.nodes,
		"server_stats": map[string]any{
			"packets_sent": f.sent, "packets_received": f.received, "max_latency": f.latency.max.Milliseconds(),
			"min_latency": f.latency.min.Milliseconds(), "avg_latency": f.latency.avg(), "server_state": mode,
			"outstanding_requests": f.outstanding, "num_alive_client_connections": len(f.connections),
			"last_processed_zxid": f.zxid, "data_dir_size": 0, "log_dir_size": 0, "uptime": f.uptime.Milliseconds(),
			"provider_null": false, "fsync_threshold_exceed_count": 0, "client_response_stats": f.adminSizes(),
		},
		"client_response": f.adminSizes(),
	}
}

func (f *facts) adminSizes() map[string]any {
	return map[string]any{"last_buffer_size": f.size.last, "min_buffer_size": f.size.min, "max_buffer_size": f.size.max}
}

func (f *facts) adminConns(brief bool) map[string]any {
	plain, secure := []any{}, []any{}
	for i := range f.connections {
		c := &f.connections[i]
		m := c.admin(brief)
		if c.secure {
			secure = append(secure, m)
		} else {
			plain = append(plain, m)
		}
	}
	return map[string]any{"connections": plain, "secure_connections": secure}
}

func (c *connFacts) admin(brief bool) map[string]any {
	m := map[string]any{
		"remote_socket_address": c.remote, "interest_ops": 1, "outstanding_requests": c.queued,
		"packets_received": c.recved, "packets_sent": c.sent,
	}
	if brief {
		return m
	}
	m["session_id"], m["last_operation"] = c.session, c.lop.Short()
	m["established"], m["session_timeout"] = c.since.UnixMilli(), c.timeout.Milliseconds()
	m["last_cxid"], m["last_zxid"] = c.lcxid, c.lzxid
	m["last_response_time"], m["last_latency"] = c.lresp.UnixMilli(), c.llat.Milliseconds()
	m["min_latency"], m["avg_latency"], m["max_latency"] =
		c.latency.min.Milliseconds(), c.latency.avg(), c.latency.max.Milliseconds()
	return m
}

func sessionNames(ids []int64) []string {
	names := make([]string, len(ids))
	for i, id := range ids {
		names[i] = sessionName(id)
	}
	return names
}

func bySession(m map[int64][]string) map[string][]string {
	out := make(map[string][]string, len(m))
	for id, paths := range m {
		out[sessionName(id)] = paths
	}
	return out
}
