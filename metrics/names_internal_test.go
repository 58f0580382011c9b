package metrics

import (
	"fmt"
	"strings"
	"testing"
)

func TestNamesAreTheProgramsAndBounded(t *testing.T) {
	t.Parallel()
	asked := 0
	n := newNames(func(path string) string {
		asked++
		if strings.HasPrefix(path, "/tenant") {
			return "tenants"
		}
		return strings.TrimPrefix(path, "/")
	}, func(name string) *string { return &name })
	for i := range 3 * maxPaths {
		if got := *n.of(fmt.Sprintf("/tenant-%d", i)); got != "tenants" {
			t.Fatalf("got %q", got)
		}
	}
	kept := 0
	n.paths.Range(func(any, any) bool {
		kept++
		return true
	})
	if kept != n.known || kept > maxPaths || len(n.byName) != 1 {
		t.Errorf("%d paths and %d names are kept", kept, len(n.byName))
	}
	before := asked
	for range 10 {
		n.of("/again")
	}
	if asked != before+1 {
		t.Errorf("asked %d times for one path", asked-before)
	}
	if got := *n.of("/"); got != other {
		t.Errorf("no name is %q, want %q", got, other)
	}
	if got := *n.of("/\xff"); got != "\uFFFD" {
		t.Errorf("got %q for a path that is not UTF-8", got)
	}
	for i := range 2 * maxNames {
		n.of(fmt.Sprintf("/%d", i))
	}
	if len(n.byName) != maxNames+0 && len(n.byName) != maxNames+1 {
		t.Errorf("%d names are kept", len(n.byName))
	}
}
