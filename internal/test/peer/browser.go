package peer

// Chromium.

import (
	"os"
	"path/filepath"
	"testing"
)

// Browser returns where the modules are that make peers installs to drive a browser with. scripts is the folder
// test/browser, whose lock file says which. It looks at the scripts there, so that go test runs a test again, not from
// its cache, when one has changed.
func Browser(t *testing.T, scripts string) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(cache, "turnstile-browser")
	Need(t, "chromium")
	Need(t, "node", dir+"/node_modules/axe-core", dir+"/node_modules/playwright-core")
	files, err := filepath.Glob(filepath.Join(scripts, "*.mjs"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, name := range files {
		if _, err := os.Stat(name); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(filepath.Join(scripts, "package-lock.json"))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "package-lock.json")); err != nil || string(got) != string(want) {
		Need(t, "node", filepath.Join(dir, "package-lock.json of this version"))
	}
	return dir
}
