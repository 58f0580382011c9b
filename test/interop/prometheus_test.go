package interop_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/internal/test/peer"
	"github.com/seed-a3166700/turnstile/server"
	"github.com/seed-a3166700/turnstile/zk"
)

// zooAlerts are the left sides of the alerts that ZooKeeper's page on monitoring recommends, but for that on the memory
// of Java.
var zooAlerts = []string{
	"up", "znode_count", "num_alive_connections", "approximate_data_size / 1024 / 1024", "watch_count",
	"increase(election_time_count[5m])", "open_file_descriptor_count", "rate(fsynctime_sum[1m])",
	"rate(snapshottime_sum[5m])", "avg_latency",
}

// Prometheus reads what the server shows. Each alert of ZooKeeper's page and each of ours has a value in it.
func TestPrometheusHasAValueForEachAlert(t *testing.T) {
	t.Parallel()
	peer.Need(t, "prometheus")
	peer.Need(t, "promtool")
	srv, err := server.Start(t.Context(), server.Config{
		Data: t.TempDir(), Listen: []string{"127.0.0.1:0"}, MetricsListen: "127.0.0.1:0",
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
	})
	client, err := zk.Open(t.Context(), zk.Config{Servers: srv.Addrs()[0].String(), Timeout: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := client.Create(t.Context(), "/a", nil, zk.Persistent); err != nil {
		t.Fatal(err)
	}
	rules, err := filepath.Abs("../../ops/server-alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	run(t, time.Minute, "promtool", "check", "rules", rules)
	run(t, time.Minute, "promtool", "test", "rules", "../../ops/server-alerts.test.yml")
	run(t, time.Minute, "promtool", "check", "rules", "../../ops/ensemble-alerts.yml")
	run(t, time.Minute, "promtool", "test", "rules", "../../ops/ensemble-alerts.test.yml")

	dir, addr := t.TempDir(), peer.FreeAddr(t)
	config := filepath.Join(dir, "prometheus.yml")
	text := fmt.Sprintf("global: {scrape_interval: 1s}\nrule_files: [%q]\n"+
		"scrape_configs: [{job_name: turnstile, static_configs: [{targets: [%q]}]}]\n", rules, srv.MetricsAddr())
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "prometheus", "--config.file", config, "--web.listen-address", addr,
		"--storage.tsdb.path", filepath.Join(dir, "data"), "--log.level", "warn")
	cmd.Stderr = t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
	ours, err := os.ReadFile(rules)
	if err != nil {
		t.Fatal(err)
	}
	wanted := zooAlerts
	alert := regexp.MustCompile(`(?m)^ +expr: (.*) (?:==|>) [0-9.]+$`)
	for _, m := range alert.FindAllStringSubmatch(string(ours), -1) {
		wanted = append(wanted, m[1])
	}
	if len(wanted) != len(zooAlerts)+7 {
		t.Fatalf("%d alerts of ours are found", len(wanted)-len(zooAlerts))
	}
	began := time.Now()
	for _, expr := range wanted {
		for !hasValue(t, addr, expr) { // a rate needs two values
			if time.Since(began) > 2*time.Minute {
				t.Fatalf("%s has no value", expr)
			}
			time.Sleep(100 * time.Millisecond) // it reads once a second
		}
	}
}

// hasValue reports whether an expression has a value in Prometheus.
func hasValue(t *testing.T, addr, expr string) bool {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
		"http://"+addr+"/api/v1/query?query="+url.QueryEscape(expr), http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false // it has not started yet
	}
	defer resp.Body.Close()
	var answer struct {
		Data struct{ Result []any }
	}
	return json.NewDecoder(resp.Body).Decode(&answer) == nil && len(answer.Data.Result) > 0
}
