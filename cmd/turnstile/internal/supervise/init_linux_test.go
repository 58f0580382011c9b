package supervise_test

import (
	"fmt"
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/supervise"
)

// The test binary is also a process that gets the orphans of its children, as the first one of a container does.
func TestMain(m *testing.M) {
	script := os.Getenv("INIT_SCRIPT")
	if script == "" {
		os.Exit(m.Run())
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		panic(err)
	}
	ending, err := supervise.Init("/bin/sh", []string{"sh", "-c", script})
	if err != nil {
		panic(err)
	}
	fmt.Printf("code %d\n", ending.Code)
}

func TestInitReapsOrphansAndEndsAsItsProgram(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]string{
		"exit 3":                                "code 3\n",
		"kill -9 $$":                            "code 137\n",
		"kill -TERM $PPID; while :; do :; done": "code 143\n", // which it passes on
		// Without Init the orphan would stay a zombie.
		`orphan=$(sh -c 'true & echo $!'); while kill -0 $orphan 2>/dev/null; do :; done; exit 4`: "code 4\n",
	} {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), "INIT_SCRIPT="+script)
		cmd.Stderr = os.Stderr
		if out, err := cmd.Output(); err != nil || string(out) != want {
			t.Errorf("%s: got %q %v, want %q", script, out, err, want)
		}
	}
}
