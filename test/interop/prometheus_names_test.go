package interop_test

// The names of our metrics beside those of Apache ZooKeeper.

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/seed-a3166700/turnstile/internal/test/peer"
	"github.com/seed-a3166700/turnstile/internal/test/request"
	"github.com/seed-a3166700/turnstile/server"
)

// newerNames are those that ZooKeeper 3.8.0, 3.9.3 and 3.9.6 lack.
var newerNames = []string{"secure_connections", "ttl_node_created_count", "ttl_node_deleted_count"}

// What ZooKeeper gives to Prometheus has the same names and kinds in its mntr. Debian's package has no provider for
// Prometheus, so they are read there.
func TestMetricsHaveTheNamesOfApacheZooKeeper(t *testing.T) {
	t.Parallel()
	zoo := peer.ZooKeeper(t, peer.Options{Keys: map[string]string{"4lw.commands.whitelist": "mntr"}})
	text, err := zoo.Word(0, "mntr")
	if err != nil {
		t.Fatal(err)
	}
	theirs := kindsOfMntr(text)
	srv, err := server.Start(t.Context(), server.Config{
		InMemory: true, Listen: []string{"127.0.0.1:0"}, MetricsListen: "127.0.0.1:0",
	})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	compared := 0
	for name, kind := range scrapedKinds(t, "http://"+srv.MetricsAddr().String()+"/metrics") {
		family, _, _ := strings.Cut(name, "_")
		if slices.Contains([]string{"turnstile", "go", "process"}, family) || slices.Contains(newerNames, name) {
			continue
		}
		compared++
		if theirs[name] != kind {
			t.Errorf("%s is of the kind %q, and ZooKeeper's %q", name, kind, theirs[name])
		}
	}
	if compared < 60 {
		t.Errorf("only %d names were compared", compared)
	}
}

// kindsOfMntr returns the kinds of what mntr shows by name: value, or basic or advanced summary.
func kindsOfMntr(text string) map[string]string {
	keys := make(map[string]bool)
	for line := range strings.Lines(text) {
		key, _, _ := strings.Cut(line, "\t")
		keys[strings.TrimPrefix(key, "zk_")] = true
	}
	kinds := make(map[string]string)
	for key := range keys {
		_, name, _ := strings.Cut(key, "_")
		switch {
		case !keys["cnt_"+name]: // not a part of a summary
			kinds[key] = "value"
		case keys["p50_"+name]:
			kinds[name] = "advanced"
		default:
			kinds[name] = "basic"
		}
	}
	return kinds
}

// scrapedKinds returns the same of a text for Prometheus.
func scrapedKinds(t *testing.T, url string) map[string]string {
	t.Helper()
	_, text := request.Fetch(t, http.MethodGet, url)
	kinds := make(map[string]string)
	for line := range strings.Lines(text) {
		name, kind, _ := strings.Cut(strings.TrimSpace(strings.TrimPrefix(line, "# TYPE ")), " ")
		switch {
		case !strings.HasPrefix(line, "# TYPE "):
		case kind == "summary" && strings.Contains(text, name+`{quantile="0.9"}`):
			kinds[name] = "advanced"
		case kind == "summary":
			kinds[name] = "basic"
		default:
			kinds[name] = "value"
		}
	}
	return kinds
}
