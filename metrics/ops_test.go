package metrics_test

// The alerts and the dashboard of ops.

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const ops = "../ops"

func TestAlertsFireForWhatTheyAreAbout(t *testing.T) {
	t.Parallel()
	promtool(t, "check", "rules", ops+"/program-alerts.yml")
	promtool(t, "test", "rules", ops+"/program-alerts.test.yml")
}

// Each expression of the dashboard and of the alerts is valid, and names only metrics and labels that exist. The
// dashboard shows every metric.
func TestDashboardAndAlertsReadMetricsThatExist(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		useAll(w)
		h := locked(t, mutex(t, w.client(), lockPath, w.lockConfig()).Lock) // so that certainty is known
		families, err := w.reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		_ = h.Unlock()
		labels := make(map[string]map[string]bool)
		for _, f := range families {
			known := map[string]bool{"job": true, "instance": true, "le": true}
			for _, l := range f.GetMetric()[0].GetLabel() {
				known[l.GetName()] = true
			}
			labels[f.GetName()] = known
		}

		shown := make(map[string]bool)
		var records strings.Builder
		records.WriteString("groups: [{name: dashboard, rules: [")
		for i, expr := range expressions(t) {
			fmt.Fprintf(&records, "{record: 'expr_%d', expr: %q},\n", i, expr)
			of := checkNames(t, labels, expr)
			for _, name := range of {
				shown[name] = true
			}
		}
		records.WriteString("]}]\n")
		for name := range labels {
			if !shown[name] {
				t.Errorf("the dashboard does not show %s", name)
			}
		}
		alerts, err := os.ReadFile(ops + "/program-alerts.yml")
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(alerts)) {
			if !strings.Contains(line, "summary:") {
				checkNames(t, labels, line)
			}
		}
		file := filepath.Join(t.TempDir(), "dashboard.yml")
		if err := os.WriteFile(file, []byte(records.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		promtool(t, "check", "rules", file)
	})
}

var (
	grouped  = regexp.MustCompile(`by \(([a-z_, ]+)\)`)
	selector = regexp.MustCompile(`(turnstile_[a-z_]+)(\{[^}]*\})?`)
	matcher  = regexp.MustCompile(`([a-z_]+)(=~|!~|!=|=)"`)
	series   = regexp.MustCompile(`_(bucket|count|sum)$`)
)

// checkNames checks the metrics of an expression and the labels by which they are selected, and returns the metrics.
func checkNames(t *testing.T, labels map[string]map[string]bool, expr string) (names []string) {
	t.Helper()
	known := make(map[string]bool)
	for _, found := range selector.FindAllStringSubmatch(expr, -1) {
		name := found[1]
		if labels[name] == nil {
			name = series.ReplaceAllString(name, "")
		}
		if labels[name] == nil {
			t.Errorf("no metric %s, in %s", found[1], expr)
			continue
		}
		names = append(names, name)
		maps.Copy(known, labels[name])
		for _, m := range matcher.FindAllStringSubmatch(found[2], -1) {
			if !labels[name][m[1]] {
				t.Errorf("%s has no label %s, in %s", name, m[1], expr)
			}
		}
	}
	for _, found := range grouped.FindAllStringSubmatch(expr, -1) {
		for label := range strings.SplitSeq(found[1], ", ") {
			if len(names) > 0 && !known[label] {
				t.Errorf("no label %s, in %s", label, expr)
			}
		}
	}
	return names
}

// expressions returns those of the dashboard, with values for its variables.
func expressions(t *testing.T) (all []string) {
	t.Helper()
	text, err := os.ReadFile(ops + "/program-dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	values := strings.NewReplacer("$__rate_interval", "5m", "$job", ".*", "$lock", ".*")
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			all = append(all, values.Replace(target.Expr))
		}
	}
	if len(all) < 20 {
		t.Fatalf("only %d expressions", len(all))
	}
	return all
}
