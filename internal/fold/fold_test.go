package fold_test

import (
	"testing"

	"github.com/seed-a3166700/turnstile/internal/fold"
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
		if got := fold.Path(path); got != want {
			t.Errorf("%s is folded to %s, want %s", path, got, want)
		}
	}
}
