package exposition_test

import (
	"testing"

	"github.com/seed-a3166700/turnstile/internal/exposition"
)

func TestTextIsPrometheuss(t *testing.T) {
	t.Parallel()
	var x exposition.Text
	x.Gauge("up", 1)
	exposition.Set(&x, "waits", exposition.Gauge, "lock", map[string]float64{"/b": 0.5, "/a\n\"\\": 1e9})
	exposition.Set(&x, "none", exposition.Counter, "lock", map[string]int{})
	x.Value("items", exposition.Label("queue", `a"b`, "state", "ready"), 3)
	const want = "# HELP up up\n# TYPE up gauge\nup 1\n# HELP waits waits\n# TYPE waits gauge\n" +
		`waits{lock="/a\n\"\\"} 1e+09` + "\n" + `waits{lock="/b"} 0.5` + "\n" +
		`items{queue="a\"b",state="ready"} 3` + "\n"
	if got := x.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
