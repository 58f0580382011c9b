package queuecmd

import (
	"slices"
	"testing"
	"time"
)

// Clocks were put forward in New York on 2026-03-08 at 2 a.m., and back on 2026-11-01 at 2 a.m.
func TestTimesOfASchedule(t *testing.T) {
	t.Parallel()
	for schedule, days := range map[string]map[string][]string{
		"30 2 * * *": {"2026-03-07": {"03-07 02:30 EST", "03-09 02:30 EDT", "03-10 02:30 EDT"}},
		"30 1 * * *": {"2026-10-31": {"10-31 01:30 EDT", "11-01 01:30 EDT", "11-01 01:30 EST", "11-02 01:30 EST"}},
		"0 * * * *":  {"2026-03-08": {"03-08 01:00 EST", "03-08 03:00 EDT"}},
		"@daily":     {"2026-10-31": {"11-01 00:00 EDT", "11-02 00:00 EST"}},
	} {
		t.Run(schedule, func(t *testing.T) {
			t.Parallel()
			s, err := parseSchedule("CRON_TZ=America/New_York " + schedule)
			if err != nil {
				t.Fatal(err)
			}
			place, err := time.LoadLocation("America/New_York")
			if err != nil {
				t.Fatal(err)
			}
			for day, want := range days {
				at, err := time.ParseInLocation("2006-01-02 15:04", day+" 00:00", place)
				if err != nil {
					t.Fatal(err)
				}
				var got []string
				for range want {
					at = s.Next(time.UnixMilli(at.UnixMilli())) // as Queue.Repeat asks
					got = append(got, at.In(place).Format("01-02 15:04 MST"))
				}
				if !slices.Equal(got, want) {
					t.Errorf("from %s on: got %v, want %v", day, got, want)
				}
			}
		})
	}
}
