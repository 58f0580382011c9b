package server

// The HTTP commands.

import (
	"strconv"
	"time"
)

// adminCmd is one HTTP command. It has either run, for a short answer, or list, for one that is written in pieces.
// Commands with neither are not supported: ZooKeeper requires a login for them.
type adminCmd struct {
	name    string
	aliases []string
	access  access
	run     func(s *Server, f *facts) map[string]any
	list    func(s *Server, j *jsonSurvey) bool // false if the server has stopped
}

// access says who may use a command.
type access uint8

const (
	public  access = iota
	private        // as fourLetterWord.private; refused with Config.RequireSASL, because the port has no login
)

var adminCommands = []adminCmd{
	{"configuration", []string{"conf", "config"}, private, adminConf, nil},
	{"connection_stat_reset", []string{"crst"}, private, func(s *Server, _ *facts) map[string]any {
		s.resetConnStats()
		return nil
	}, nil},
	{"connections", []string{"cons"}, private, nil, func(s *Server, j *jsonSurvey) bool {
		s.listConns(j, false)
		return true
	}},
	{"dirs", nil, public, func(s *Server, _ *facts) map[string]any {
		return map[string]any{"datadir_size": s.diskSize(), "logdir_size": s.diskSize()}
	}, nil},
	{"dump", nil, private, nil, listExpirings},
	{"environment", []string{"env", "envi"}, private, func(*Server, *facts) map[string]any {
		m := make(map[string]any)
		for _, e := range environment() {
			m[e.key] = e.value
		}
		return m
	}, nil},
	{"get_trace_mask", []string{"gtmk"}, public, func(s *Server, _ *facts) map[string]any {
		return map[string]any{"tracemask": s.traceMask.Load()}
	}, nil},
	{"hash", nil, public, func(*Server, *facts) map[string]any { return map[string]any{"digests": []any{}} }, nil},
	{"initial_configuration", []string{"icfg"}, private, func(s *Server, _ *facts) map[string]any {
		return map[string]any{"initial_configuration": ""}
	}, nil},
	{"is_read_only", []string{"isro"}, public, func(*Server, *facts) map[string]any {
		return map[string]any{"read_only": false}
	}, nil},
	{"last_snapshot", []string{"lsnp"}, public, func(s *Server, f *facts) map[string]any {
		// There are no snapshots; the last commit is the closest equivalent.
		return map[string]any{"zxid": "0x" + strconv.FormatInt(f.zxid, 16), "timestamp": time.Now().Unix()}
	}, nil},
	{"leader", []string{"lead"}, public, func(s *Server, _ *facts) map[string]any {
		return map[string]any{"is_leader": false, "leader_id": serverID, "leader_ip": ""}
	}, nil},
	{"monitor", []string{"mntr"}, public, func(s *Server, f *facts) map[string]any {
		m := make(map[string]any)
		for _, g := range f.gauges(s) {
			m[g.key] = g.value
		}
		return m
	}, nil},
	{"observer_connection_stat_reset", []string{"orst"}, public, func(*Server, *facts) map[string]any {
		return nil
	}, nil},
	{"observers", []string{"obsr"}, public, func(*Server, *facts) map[string]any {
		return map[string]any{"synced_observers": 0, "observers": []any{}}
	}, nil},
	{"restore", []string{"rest"}, public, nil, nil},
	{"ruok", nil, public, func(*Server, *facts) map[string]any { return nil }, nil},
	{"server_stats", []string{"srvr"}, public, adminStats, nil},
	{"set_trace_mask", []string{"stmk"}, private, func(*Server, *facts) map[string]any {
		return map[string]any{"tracemask": 0}
	}, nil},
	{"snapshot", []string{"snap"}, public, nil, nil},
	{"stat_reset", []string{"srst"}, private, func(s *Server, _ *facts) map[string]any {
		s.resetStats()
		return nil
	}, nil},
	{"stats", []string{"stat"}, private, nil, func(s *Server, j *jsonSurvey) bool {
		f, ok := s.facts()
		if ok {
			j.entries(adminStats(s, f))
			s.listConns(j, true)
		}
		return ok
	}},
	{"system_properties", []string{"sysp"}, private, func(*Server, *facts) map[string]any { return nil }, nil},
	{"voting_view", nil, public, func(*Server, *facts) map[string]any {
		return map[string]any{"current_config": map[string]any{}}
	}, nil},
	{"watch_summary", []string{"wchs"}, public, func(_ *Server, f *facts) map[string]any {
		return map[string]any{
			"num_connections": f.watchConns, "num_paths": f.watchPaths, "num_total_watches": f.watchTotal,
		}
	}, nil},
	{"watches", []string{"wchc"}, private, nil, func(s *Server, j *jsonSurvey) bool {
		j.begin("session_id_to_watched_paths", '{')
		ok := s.eachWatcher(j.survey, func(session int64, paths []string) { j.list(sessionName(session), paths) })
		j.end('}')
		return ok
	}},
	{"watches_by_path", []string{"wchp"}, private, nil, func(s *Server, j *jsonSurvey) bool {
		j.begin("path_to_session_ids", '{')
		ok := s.eachWatched(j.survey, func(path string, ids []int64) { j.list(path, sessionNames(ids)) })
		j.end('}')
		return ok
	}},
	{"zabstate", nil, public, func(*Server, *facts) map[string]any {
		return map[string]any{"voting": false, "last_zxid": "", "zabstate": ""}
	}, nil},
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
			"outstanding_requests": f.outstanding, "num_alive_client_connections": f.connected(),
			"last_processed_zxid": f.zxid, "data_dir_size": 0, "log_dir_size": 0, "uptime": f.uptime.Milliseconds(),
			"provider_null": false, "fsync_threshold_exceed_count": 0, "client_response_stats": f.adminSizes(),
		},
		"client_response": f.adminSizes(),
	}
}

func (f *facts) adminSizes() map[string]any {
	return map[string]any{"last_buffer_size": f.size.last, "min_buffer_size": f.size.min, "max_buffer_size": f.size.max}
}

// listConns writes the two lists of connections.
func (s *Server) listConns(j *jsonSurvey, brief bool) {
	for _, secure := range []bool{false, true} {
		name := "connections"
		if secure {
			name = "secure_connections"
		}
		j.begin(name, '[')
		s.eachConn(j.survey, func(c *connFacts) {
			if c.secure == secure {
				j.item(c.admin(brief))
			}
		})
		j.end(']')
	}
}

func listExpirings(s *Server, j *jsonSurvey) bool {
	all, ok := s.expirings()
	j.begin("expiry_time_to_session_ids", '{')
	for _, set := range expirySets(all) {
		ids := make([]int64, len(set))
		for i := range set {
			ids[i] = set[i].id
		}
		j.list(strconv.FormatInt(s.clock.wall(set[0].at).UnixMilli(), 10), sessionNames(ids))
	}
	j.end('}')
	j.begin("session_id_to_ephemeral_paths", '{')
	for _, e := range all {
		if e.ephemeral && !j.failed {
			j.list(sessionName(e.id), s.ephemeralsOf(e.id))
		}
	}
	j.end('}')
	return ok
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
