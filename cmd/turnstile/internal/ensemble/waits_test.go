package ensemble_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/ensemble"
	"github.com/seed-a3166700/turnstile/internal/survey"
	"github.com/seed-a3166700/turnstile/lock"
)

// drawn writes trees of waits as SESSION(CHILD CHILD).
func drawn(waits []*ensemble.Wait) string {
	list := make([]string, len(waits))
	for i, w := range waits {
		list[i] = strconv.FormatInt(w.Session, 10)
		if len(w.Children) > 0 {
			list[i] += "(" + drawn(w.Children) + ")"
		}
	}
	return strings.Join(list, " ")
}

func TestWhoWaitsForWhom(t *testing.T) {
	t.Parallel()
	hold := func(session int64) lock.Contender { return lock.Contender{Session: session, Holder: true} }
	wait := func(session int64) lock.Contender { return lock.Contender{Session: session} }
	may := func(session int64) lock.Contender { return lock.Contender{Session: session, MayHold: true} }
	for name, test := range map[string]struct {
		lines          map[string][]lock.Contender
		roots, circles string
	}{
		"a chain": {
			map[string][]lock.Contender{"/a": {hold(1), wait(2)}, "/b": {hold(2), wait(3)}}, "1(2(3))", "",
		},
		"a circle": {
			map[string][]lock.Contender{"/a": {hold(1), wait(2)}, "/b": {hold(2), wait(1)}}, "", "1(2(1))",
		},
		"threads of one process": {map[string][]lock.Contender{"/a": {hold(1), wait(1), wait(2)}}, "1(1 2)", ""},
		"threads at two locks": {
			map[string][]lock.Contender{"/a": {hold(1), wait(1)}, "/b": {hold(1), wait(1)}}, "1(1 1)", "",
		},
		"a reader beside its own writer": {map[string][]lock.Contender{"/a": {hold(1), may(1)}}, "1", ""},
		"another's reader that may hold": {map[string][]lock.Contender{"/a": {hold(1), may(2)}}, "1(2)", ""},
		"several permits of one session": {
			map[string][]lock.Contender{"/a": {hold(1), hold(1), hold(1), wait(2)}}, "1(2)", "",
		},
		"permits of two sessions": {map[string][]lock.Contender{"/a": {hold(1), hold(2), wait(3)}}, "1(3) 2(3)", ""},
	} {
		lines := make(map[string]ensemble.Line)
		s := new(survey.Snapshot)
		for _, path := range []string{"/a", "/b"} {
			if list, ok := test.lines[path]; ok {
				lines[path] = ensemble.Line{List: list}
				s.Entries = append(s.Entries, survey.Entry{Path: path, Summary: lock.Summary{Waiting: 1}})
			}
		}
		roots, circles := ensemble.Waits(s, lines, func(lock.Contender) string { return "" })
		if drawn(roots) != test.roots || drawn(circles) != test.circles {
			t.Errorf("%s: got %q and circles %q, want %q and %q",
				name, drawn(roots), drawn(circles), test.roots, test.circles)
		}
	}
}
