package queuecmd

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/robfig/cron/v3"
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

// inUTC returns the next times of a schedule after a day's beginning.
func inUTC(t *testing.T, schedule, day string, n int) (times []string) {
	t.Helper()
	s, err := parseSchedule(schedule)
	if err != nil {
		t.Fatal(err)
	}
	at, err := time.Parse(time.DateOnly, day)
	if err != nil {
		t.Fatal(err)
	}
	for at = at.Add(-time.Nanosecond); len(times) < n; {
		at = s.Next(at)
		times = append(times, at.UTC().Format("Mon 01-02 15:04"))
	}
	return times
}

// 2026-06-01 was a Monday. A day must be in both fields if one of them begins with a star.
func TestScheduleHasTheTimesThatCronWouldGiveIt(t *testing.T) {
	t.Parallel()
	for schedule, want := range map[string][]string{
		"0 9 * * 7":              {"Sun 06-07 09:00", "Sun 06-14 09:00"},
		"0 9 * * 0":              {"Sun 06-07 09:00", "Sun 06-14 09:00"},
		"0 9 * * 5-7":            {"Fri 06-05 09:00", "Sat 06-06 09:00", "Sun 06-07 09:00", "Fri 06-12 09:00"},
		"0 9 * * FRI-SUN":        {"Fri 06-05 09:00", "Sat 06-06 09:00", "Sun 06-07 09:00", "Fri 06-12 09:00"},
		"0 9 * * 3,7":            {"Wed 06-03 09:00", "Sun 06-07 09:00", "Wed 06-10 09:00"},
		"0 9 * * 1-7/3":          {"Mon 06-01 09:00", "Thu 06-04 09:00", "Sun 06-07 09:00", "Mon 06-08 09:00"},
		"0 9 * * 7/2":            {"Sun 06-07 09:00", "Sun 06-14 09:00"},
		"0 9 * * 0-7":            {"Mon 06-01 09:00", "Tue 06-02 09:00"},
		"0 9 * * sun-Mon":        {"Mon 06-01 09:00", "Sun 06-07 09:00", "Mon 06-08 09:00"},
		"0 9 */10 * 1":           {"Mon 06-01 09:00", "Mon 08-31 09:00", "Mon 09-21 09:00"},
		"0 9 11,21 * 1":          {"Mon 06-01 09:00", "Mon 06-08 09:00", "Thu 06-11 09:00", "Mon 06-15 09:00"},
		"0 9 ? JUN,jul 2":        {"Tue 06-02 09:00", "Tue 06-09 09:00"},
		"5/20 0 1 1 *":           {"Fri 01-01 00:05", "Fri 01-01 00:25", "Fri 01-01 00:45", "Sat 01-01 00:05"},
		"CRON_TZ=UTC\t0 9 * * 1": {"Mon 06-01 09:00", "Mon 06-08 09:00"},
		"TZ=Asia/Tokyo @daily":   {"Mon 06-01 15:00", "Tue 06-02 15:00"},
		"0 0 29 2 *":             {"Tue 02-29 00:00", "Sun 02-29 00:00"},
		"@every 12h":             {"Mon 06-01 00:00", "Mon 06-01 12:00"},
		"@yearly":                {"Fri 01-01 00:00"},
		"@weekly":                {"Sun 06-07 00:00"},
		"*/60 */24 * * *":        {"Mon 06-01 00:00", "Tue 06-02 00:00"},
	} {
		if got := inUTC(t, schedule, "2026-06-01", len(want)); !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", schedule, got, want)
		}
	}
	both, err := readExpression(strings.Fields("0 0 29 2 MON"), time.UTC)
	if err != nil {
		t.Fatal(err)
	}
	both.either = false
	const want = "2112-02-29" // the one before is in 2072
	if got := both.Next(time.Date(2072, time.March, 1, 0, 0, 0, 0, time.UTC)); got.Format(time.DateOnly) != want {
		t.Errorf("a Monday, 29 February: got %v, want %s", got, want)
	}
}

func TestScheduleThatIsWrongSaysWhatIs(t *testing.T) {
	t.Parallel()
	for schedule, want := range map[string]string{
		"":                         "it has no times",
		"TZ=":                      "TZ= names no time zone",
		"TZ= * * * * *":            "TZ= names no time zone",
		"TZ=Europe/Berlin":         "it has no times",
		"CRON_TZ=UTC":              "it has no times",
		"CRON_TZ=Nowhere/X @daily": `there is no time zone "Nowhere/X"`,
		"CRON_TZ=../UTC @daily":    `there is no time zone "../UTC"`,
		"CRON_TZ=Europe @daily":    `there is no time zone "Europe"`,
		"CRON_TZ=0 @daily":         `there is no time zone "0"`,
		"CRON_TZ=Local @daily":     `"Local" is not the same time on every machine`,
		"MAILTO=ann @daily":        `the only variable before it can be CRON_TZ, not "MAILTO"`,
		"@every":                   "one duration must follow @every",
		"@every 1h 30m":            "one duration must follow @every",
		"@every 1900ms":            "1900ms is not a whole number of seconds",
		"@every 1ms":               "1ms is too short",
		"@every -1h":               `"-1h" is negative`,
		"@every 3000000h":          `"3000000h" is out of range: it is too long`,
		"@every 90000h":            "90000h is too long: @every takes at most ten years",
		"@every 99999999999h":      `"99999999999h" is out of range: it is too long`,
		"@every 10":                `"10" is not a duration`,
		"@reboot":                  "@reboot is not one of",
		"@Daily":                   "@Daily is not one of",
		"@daily *":                 "nothing can follow @daily",
		"* * * *":                  "it has 4 fields instead of 5",
		"0 0 * * * *":              "it has 6 fields instead of 5",
		"60 * * * *":               `minute "60": "60" must be a number from 0 to 59`,
		"+5 * * * *":               `must be a number from 0 to 59`,
		"5, * * * *":               `"" must be a number from 0 to 59`,
		", * * * *":                `"" must be a number from 0 to 59`,
		"*-5 * * * *":              "nothing but a step can follow it",
		"1-2-3 * * * *":            `"2-3" must be a number`,
		"*/0 * * * *":              `the step "0" must be a number from 1 to 60`,
		"*/90 * * * *":             `the step "90" must be a number from 1 to 60`,
		"*/1/2 * * * *":            `the step "1/2" must be`,
		"* 22-2 * * *":             "22-2 goes backwards: write two ranges",
		"* * 0 * *":                `day of the month "0": "0" must be a number from 1 to 31`,
		"* * L * *":                `"L" must be a number from 1 to 31`,
		"* * * MON *":              `"MON" must be a number from 1 to 12, or one of JAN to DEC`,
		"* * * * 8":                `day of the week "8": "8" must be a number from 0 to 7, or one of SUN to SAT`,
		"* * * * 5#3":              "must be a number from 0 to 7",
		"0 0 31 2,4,6 *":           "never comes",
	} {
		switch s, err := parseSchedule(schedule); {
		case err == nil:
			t.Errorf("%q: is taken for %+v", schedule, s)
		case !strings.Contains(err.Error(), want):
			t.Errorf("%q: got %q, want %q in it", schedule, err, want)
		}
	}
}

func TestOnlyZonesThatShowUTCAllYearAreUTC(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"UTC": true, "Africa/Abidjan": true, "Europe/London": false, "Europe/Berlin": false, "Pacific/Auckland": false,
	} {
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := isUTC(zone, 2026); got != want {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
}

// byMinutes looks for the next time of an expression at each minute.
func byMinutes(e *expression, t time.Time, atMost time.Duration) time.Time {
	for end := t.Add(atMost); !t.After(end); {
		t = t.Truncate(time.Minute).Add(time.Minute)
		if here := t.In(e.zone); e.onDay(here) && e.hours&(1<<here.Hour()) != 0 && e.minutes&(1<<here.Minute()) != 0 {
			return t
		}
	}
	return time.Time{}
}

// Clocks of these zones are changed at midnight, by two hours, by half an hour, and by a whole day.
func TestScheduleMissesNoTimeWhenClocksAreChanged(t *testing.T) {
	t.Parallel()
	for zone, days := range map[string][]string{
		"America/Sao_Paulo": {"2018-11-03", "2018-02-17"}, "Antarctica/Troll": {"2026-03-28", "2026-10-24"},
		"Australia/Lord_Howe": {"2026-04-04", "2026-10-03"}, "Pacific/Apia": {"2011-12-28"},
		"America/Havana": {"2026-03-07", "2026-10-31"}, "Africa/Cairo": {"2026-04-23", "2026-10-29"},
	} {
		for _, fields := range []string{
			"0 0 * * *", "30 0 * * *", "*/20 23,0-3 * * *", "15 * * * *", "0 12 * * *", "0 1 4 * *", "0 5 * * 0",
			"59 23 * * *",
		} {
			p, err := parseSchedule("CRON_TZ=" + zone + " " + fields)
			if err != nil {
				t.Fatal(err)
			}
			for _, day := range days {
				at, err := time.Parse(time.DateOnly, day)
				if err != nil {
					t.Fatal(err)
				}
				for end := at.AddDate(0, 0, 4); at.Before(end); {
					got, want := p.Next(at), byMinutes(p.Schedule.(*expression), at, 40*24*time.Hour)
					if !got.Equal(want) {
						t.Fatalf("%s in %s after %v: got %v, want %v", fields, zone, at, got, want)
					}
					at = got
				}
			}
		}
	}
}

// Whatever the text, the parser does not panic. What it takes, github.com/robfig/cron, which most Go programs use,
// takes, too, and has the same times, except for the day 7 and for steps behind a star.
func FuzzSchedule(f *testing.F) {
	for _, text := range []string{
		"30 3 * * *", "TZ=Europe/Berlin", "CRON_TZ=UTC", "TZ= * * * * *", "CRON_TZ=Nowhere/X * * * * *",
		"@every", "@every 1900ms",
		"@every 3000000h", "0 9 */2 * 1", "*/15 0-6,22 1,15 JAN-mar 1-5",
		"5/10 ? * * SUN", "0 0 31 2 *",
		"@weekly", "* * * * 7",
		"CRON_TZ=Asia/Tokyo @daily", "0 0 29 2 1", "*/7 */5 */3 */2 *",
	} {
		f.Add(text, int64(1780272000))
	}
	f.Fuzz(func(t *testing.T, text string, unix int64) {
		p, err := parseSchedule(text)
		if err != nil {
			return
		}
		at := time.Unix(unix%4e9, 0).UTC()
		next := p.Next(at)
		if !next.IsZero() && !next.After(at) {
			t.Fatalf("%q: the time after %v is %v", text, at, next)
		}
		e, ok := p.Schedule.(*expression)
		if !ok || p.zone != time.UTC || len(strings.Fields(text)) != len(bounds) {
			return
		}
		fields := strings.Fields(text)
		if strings.Contains(fields[4], "7") || strings.Contains(strings.ToLower(fields[4]), "-sun") ||
			strings.ContainsAny(fields[2]+fields[4], "*?") && (len(fields[2]) > 1 && len(fields[4]) > 1) {
			return // the peer knows no day 7, and takes a star with a step for no star
		}
		peer, err := cron.ParseStandard(text)
		if err != nil {
			t.Fatalf("%q is taken, but not by the peer: %v", text, err)
		}
		if e.either != (peer.(*cron.SpecSchedule).Dom>>63 == 0 && peer.(*cron.SpecSchedule).Dow>>63 == 0) {
			return
		}
		if want := peer.Next(at); !want.IsZero() && !next.Equal(want) {
			t.Fatalf("%q after %v: got %v, the peer says %v", text, at, next, want)
		}
	})
}
