package server

// The values for monitoring systems.

import (
	"fmt"
	"maps"
	"os"
	"os/user"
	"runtime"
	"slices"
	"strconv"
)

// gauge is one value of mntr and of the HTTP command monitor.
type gauge struct {
	key   string
	value any
}

// gauges returns the values that monitoring systems read, in ZooKeeper's order and under its names.
func (f *facts) gauges(s *Server) []gauge {
	out := []gauge{
		{"version", versionText},
		{"server_state", mode},
		{"ephemerals_count", f.ephemerals},
		{"num_alive_connections", f.connected()},
		{"avg_latency", f.latency.avg()},
		{"outstanding_requests", f.outstanding},
		{"znode_count", f.nodes},
		{"global_sessions", f.sessions},
		{"non_mtls_remote_conn_count", 0},
		{"last_client_response_size", f.size.last},
		{"packets_sent", f.sent},
		{"packets_received", f.received},
		{"max_client_response_size", f.size.max},
		{"connection_drop_probability", 0.0},
		{"watch_count", f.watches},
		{"auth_failed_count", f.authFailed},
		{"min_latency", f.latency.min.Milliseconds()},
		{"max_file_descriptor_count", fileLimit()},
		{"approximate_data_size", f.dataSize},
		{"open_file_descriptor_count", openFiles()},
		{"local_sessions", 0},
		{"uptime", f.uptime.Milliseconds()},
		{"max_latency", f.latency.max.Milliseconds()},
		{"outstanding_tls_handshake", 0},
		{"min_client_response_size", f.size.min},
		{"non_mtls_local_conn_count", f.plain},
		{"secure_connections", f.secure},
		{"ensemble_auth_success", s.stats.ensemble.success.Load()},
		{"ensemble_auth_fail", s.stats.ensemble.fail.Load()},
		{"ensemble_auth_skip", s.stats.ensemble.skip.Load()},
		{"goroutines", runtime.NumGoroutine()},
		{"disk_size", s.diskSize()},
	}
	for _, name := range slices.Sorted(maps.Keys(f.refusals)) {
		if s.cfg.RequireSASL {
			break // without a login nobody may see the names of nodes
		}
		out = append(out, gauge{name + "_quota_exceeded_error_per_namespace", f.refusals[name]})
	}
	for l := range limitCount {
		out = append(out, gauge{"limit_" + limitNames[l], s.cfg.limit(l)},
			gauge{"limit_" + limitNames[l] + "_hits", s.stats.hits[l].Load()})
	}
	return out
}

func wordMntr(w *survey, s *Server) bool {
	f, ok := s.facts()
	if !ok {
		return false
	}
	for _, g := range f.gauges(s) {
		fmt.Fprintf(w, "zk_%s\t%s\n", g.key, g.text())
	}
	return true
}

func (g gauge) text() string {
	if v, ok := g.value.(float64); ok {
		return decimal(v)
	}
	return fmt.Sprint(g.value)
}

// entry is one line of the four-letter word envi.
type entry struct{ key, value string }

// environment describes the process under the names that ZooKeeper uses for its Java virtual machine.
func environment() []entry {
	host, _ := os.Hostname()
	home, _ := os.UserHomeDir()
	dir, _ := os.Getwd()
	exe, _ := os.Executable()
	name := strconv.Itoa(os.Getuid())
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	mb := func(n uint64) string { return strconv.FormatUint(n>>20, 10) + "MB" }
	return []entry{
		{"zookeeper.version", versionText},
		{"host.name", host},
		{"java.version", "none (" + runtime.Version() + ")"},
		{"java.vendor", "none"},
		{"java.home", "none"},
		{"java.class.path", exe},
		{"java.library.path", ""},
		{"java.io.tmpdir", os.TempDir()},
		{"java.compiler", runtime.Compiler},
		{"os.name", runtime.GOOS},
		{"os.arch", runtime.GOARCH},
		{"os.version", ""},
		{"user.name", name},
		{"user.home", home},
		{"user.dir", dir},
		{"os.memory.free", mb(mem.HeapIdle)},
		{"os.memory.max", mb(mem.Sys)},
		{"os.memory.total", mb(mem.HeapSys)},
	}
}
