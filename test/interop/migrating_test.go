package interop_test

import (
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/internal/test/peer"
)

// TestCodeOfThePeersInMigratingRuns runs the Java code of docs/migrating-curator.md and the Python code of
// docs/migrating-kazoo.md.
func TestCodeOfThePeersInMigratingRuns(t *testing.T) {
	t.Parallel()
	t.Run("Curator", func(t *testing.T) {
		t.Parallel()
		needJava(t)
		onEach(t, options{}, func(t *testing.T, h *host) {
			t.Helper()
			runJava(t, "Migrating", h.addr)
		})
	})
	t.Run("kazoo", func(t *testing.T) {
		t.Parallel()
		peer.Need(t, python, kazooDir)
		onEach(t, options{own: true}, func(t *testing.T, h *host) {
			t.Helper()
			run(t, 10*time.Minute, python, "testdata/migrating.py", h.addr)
		})
	})
}
