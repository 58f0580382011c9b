package metrics

import (
	"fmt"
	"strings"
	"testing"
)

func TestPathsAreFolded(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"":                     "",
		"/":                    "/",
		"/locks/report":        "/locks/report",
		"/jobs/42":             "/jobs/*",
		"/jobs/import-42":      "/jobs/import-*",
		"/jobs/import_42_of_9": "/jobs/import_*_of_*",
		"/shard12/x":           "/shard*/x",
		"/2026-11-27":          "/*-*-*",
		"/deadbeef":            "/*",
		"/deadbee":             "/deadbee",
		"/DEADBEEF01":          "/*",
		"/x/0123abcd/y":        "/x/*/y",
		"/session-0x1000abc":   "/session-*",
		"/feedbacks":           "/feedbacks",
		"/a7c":                 "/a*c",
		"/é/7":                 "/é/*",
		"/a and /b-3":          "/a and /b-*",
		"/u/123e4567-e89b-12d3-a456-426614174000/z": "/u/*/z",
		"/u-123E4567-E89B-12D3-A456-426614174000":   "/u-*",
		"/u/123e4567-e89b-12d3-a456-4266141740001":  "/u/*-e*b-*d*-a*-*",
		"/u/123e4567-e89b-12d3-a456":                "/u/*-e*b-*d*-a*",
	} {
		if got := fold(path); got != want {
			t.Errorf("%s is folded to %s, want %s", path, got, want)
		}
	}
}

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
	if len(n.paths) > maxPaths || len(n.byName) != 1 {
		t.Errorf("%d paths and %d names are kept", len(n.paths), len(n.byName))
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
