package command

import (
	"strings"
	"testing"
	"time"
)

func TestDurationsAreGosOrSeconds(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"1": time.Second, "0": 0, "0.5": time.Second / 2, ".25": time.Second / 4,
		"90s": 90 * time.Second, "1m30s": 90 * time.Second, "250ms": time.Second / 4,
		"2562047h": 2562047 * time.Hour, "1h0.5s": time.Hour + time.Second/2,
		"2µs": 2 * time.Microsecond,
	} {
		var d Duration
		if err := d.Set(text); err != nil || time.Duration(d) != want {
			t.Errorf("%q: %v, %v, want %v", text, time.Duration(d), err, want)
		}
	}
}

func TestDurationsThatAreNoneSayWhatIsWrong(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"9999999h": "it is too long", "99999999999999999999s": "it is too long",
		"9999999h30m": "it is too long", "9223372037": "it is too long",
		"-1s": "is negative", "-5": "is negative", "-9999999h": "is negative",
		"": "is not a duration", "soon": "is not a duration", "5 s": "is not a duration", "1d": "is not a duration",
		"NaN": "is out of range", "Inf": "is out of range", "-infinity": "is out of range",
		"h":   "is not a duration",
		"1s2": "is not a duration",
		"0_2": "is not a duration", "1_0": "is not a duration", "1e1": "is not a duration",
		"0x1p1": "is not a duration", "0X10": "is not a duration", "1.5E1": "is not a duration",
	} {
		var d Duration
		if err := d.Set(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v %v, want %q in it", text, time.Duration(d), err, want)
		}
	}
}

// Whatever the text, what is taken is not negative, and is taken again as it is shown.
func FuzzDuration(f *testing.F) {
	for _, text := range []string{
		"1.5", "90s", "9999999h", "1e999", "-0", "NaN", "1h1h", "0x1p4", ".5h",
		"2562047h47m16.854775807s",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var d, again Duration
		if d.Set(text) != nil {
			return
		}
		if err := again.Set(d.String()); err != nil || again != d || d < 0 {
			t.Errorf("%q: got %v, which is taken for %v, %v", text, time.Duration(d), time.Duration(again), err)
		}
	})
}
