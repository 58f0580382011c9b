package ensemble_test

import (
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/ensemble"
)

func TestTimesAreShort(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 59 * time.Second: "59s", 61 * time.Second: "1m01s", 3*time.Hour + 5*time.Minute: "3h05m",
		50 * time.Hour: "2d02h", 24000 * time.Hour: "1000d",
	} {
		if got := ensemble.Ago(d); got != want {
			t.Errorf("%v: got %q, want %q", d, got, want)
		}
	}
}
