package command

import (
	"testing"
	"time"
)

func TestDurationsAreGosOrSeconds(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"1": time.Second, "0": 0, "0.5": time.Second / 2, ".25": time.Second / 4, "1.5e1": 15 * time.Second,
		"90s": 90 * time.Second, "1m30s": 90 * time.Second, "250ms": time.Second / 4,
	} {
		var d Duration
		if err := d.Set(text); err != nil || time.Duration(d) != want {
			t.Errorf("%q: %v, %v, want %v", text, time.Duration(d), err, want)
		}
	}
}
