package queuecmd

// The times of queue cron: cron expressions, their time zones, and @every.

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // zones are known where the system has none, as in a container of one file

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
	"github.com/seed-a3166700/turnstile/queue"
)

// suchSchedules are what messages show.
const suchSchedules = "such are '30 3 * * *' (daily at 3:30 UTC), 'CRON_TZ=Europe/Berlin 30 3 * * *' and '@every 10m'"

// parsed is what a SCHEDULE says.
type parsed struct {
	queue.Schedule
	zone    *time.Location
	unzoned bool // it names no zone, and its times depend on one
}

// parseSchedule parses SCHEDULE. What it returns depends on the text alone, not on the machine: processes that are
// given the same text have the same times.
func parseSchedule(text string) (parsed, error) {
	p, err := readSchedule(strings.Fields(text))
	if err != nil {
		return parsed{}, fmt.Errorf("SCHEDULE %q is not understood: %w; %s", text, err, suchSchedules)
	}
	if p.Next(time.Now()).IsZero() {
		return parsed{}, fmt.Errorf("SCHEDULE %q never comes: there is no such day", text)
	}
	return p, nil
}

func readSchedule(fields []string) (parsed, error) {
	p := parsed{zone: time.UTC, unzoned: true}
	if len(fields) > 0 {
		if variable, zone, ok := strings.Cut(fields[0], "="); ok {
			var err error
			if p.zone, err = readZone(variable, zone); err != nil {
				return p, err
			}
			p.unzoned, fields = false, fields[1:]
		}
	}
	if len(fields) == 0 {
		return p, errors.New("it has no times")
	}
	if strings.HasPrefix(fields[0], "@") {
		switch common, ok := commonExpressions[fields[0]]; {
		case fields[0] == "@every":
			p.unzoned = false
			every, err := readEvery(fields[1:])
			p.Schedule = every
			return p, err
		case !ok:
			return p, fmt.Errorf("%s is not one of @hourly, @daily, @weekly, @monthly, @yearly and @every", fields[0])
		case len(fields) > 1:
			return p, fmt.Errorf("nothing can follow %s", fields[0])
		default:
			fields = strings.Fields(common)
		}
	}
	e, err := readExpression(fields, p.zone)
	p.Schedule = e
	return p, err
}

// commonExpressions are names that cron has for some expressions.
var commonExpressions = map[string]string{
	"@hourly": "0 * * * *", "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@weekly": "0 0 * * 0",
	"@monthly": "0 0 1 * *", "@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *",
}

// readZone reads the assignment that a SCHEDULE may begin with.
func readZone(variable, name string) (*time.Location, error) {
	switch {
	case variable != "CRON_TZ" && variable != "TZ":
		return nil, fmt.Errorf("the only variable before it can be CRON_TZ, not %q", variable)
	case name == "":
		return nil, fmt.Errorf("%s= names no time zone: such are UTC and Europe/Berlin", variable)
	case name == "Local" || name == "localtime" || name == "posixrules" || strings.HasPrefix(name, "right/"):
		// The first three are whatever this machine is set to; the last counts leap seconds.
		return nil, fmt.Errorf("%q is not the same time on every machine: name a place such as Europe/Berlin", name)
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("there is no time zone %q: such are UTC and Europe/Berlin", name)
	}
	return zone, nil
}

// multiples are the times that are a multiple of a duration after 1970: the same for all processes, whenever they
// began.
type multiples time.Duration

// Next returns the first multiple after t.
func (m multiples) Next(t time.Time) time.Time {
	d := time.Duration(m)
	return t.Add(d - time.Duration(t.UnixNano())%d)
}

// longestEvery is as long as limits elsewhere may be: ten years.
const longestEvery = 10 * 365 * 24 * time.Hour

func readEvery(words []string) (multiples, error) {
	if len(words) != 1 {
		return 0, errors.New("one duration must follow @every")
	}
	d, err := command.ParseDuration(words[0])
	switch {
	case err != nil:
		return 0, err
	case d > longestEvery:
		return 0, fmt.Errorf("%s is too long: @every takes at most ten years, 87600h", words[0])
	case d < time.Second:
		return 0, fmt.Errorf("%s is too short: @every takes at least 1s", words[0])
	case d%time.Second != 0:
		return 0, fmt.Errorf("%s is not a whole number of seconds", words[0])
	}
	return multiples(d), nil
}

// A bound says what one field of an expression may be.
type bound struct {
	what     string
	min, max int
	names    []string // of the numbers from min on
}

// bounds are those of the five fields. The seventh day of the week is Sunday, as its day 0 is.
var bounds = []bound{
	{what: "minute", max: 59},
	{what: "hour", max: 23},
	{what: "day of the month", min: 1, max: 31},
	{what: "month", min: 1, max: 12, names: []string{
		"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
	}},
	{what: "day of the week", max: 7, names: []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}},
}

// expression is a cron expression of five fields: for each the set of its values, as bits.
type expression struct {
	minutes, hours, days, months, weekdays uint64

	// A day must be in both days and weekdays. If neither field begins with a star, one suffices, as for cron.
	either bool
	zone   *time.Location
}

func readExpression(fields []string, zone *time.Location) (*expression, error) {
	if len(fields) != len(bounds) {
		return nil, fmt.Errorf("it has %d fields instead of 5: minute, hour, day of the month, month, day of the week",
			len(fields))
	}
	var sets [5]uint64
	for i, field := range fields {
		var err error
		if sets[i], err = bounds[i].read(field); err != nil {
			return nil, fmt.Errorf("%s %q: %w", bounds[i].what, field, err)
		}
	}
	return &expression{
		minutes: sets[0], hours: sets[1], days: sets[2], months: sets[3], weekdays: sets[4]&^(1<<7) | sets[4]>>7,
		either: !strings.ContainsAny(fields[2][:1]+fields[4][:1], "*?"),
		zone:   zone,
	}, nil
}

// read reads a field: a list of numbers and ranges.
func (b *bound) read(field string) (set uint64, err error) {
	for part := range strings.SplitSeq(field, ",") {
		first, last, step, err := b.readRange(part)
		if err != nil {
			return 0, err
		}
		for n := first; n <= last; n += step {
			set |= 1 << n
		}
	}
	return set, nil
}

// readRange reads one number, a range, or a star, which stands for all numbers, and the step between its numbers.
func (b *bound) readRange(part string) (first, last, step int, err error) {
	numbers, steps, stepped := strings.Cut(part, "/")
	low, high, ranged := strings.Cut(numbers, "-")
	switch {
	case low == "*" || low == "?":
		if ranged {
			return 0, 0, 0, fmt.Errorf("%s stands for all numbers, so nothing but a step can follow it", low)
		}
		first, last = b.min, b.whole()
	case ranged:
		if first, err = b.number(low); err == nil {
			last, err = b.number(high)
		}
		if sunday := 7; last == 0 && first > 0 && b.max == sunday { // FRI-SUN
			last = sunday
		}
		if err == nil && first > last {
			err = fmt.Errorf("%s goes backwards: write two ranges, separated by a comma", numbers)
		}
	default:
		first, err = b.number(low)
		if last = first; stepped {
			last = max(first, b.whole()) // 5/15 is from 5 on
		}
	}
	if err != nil || !stepped {
		return first, last, 1, err
	}
	most := b.whole() - b.min + 1
	if step, err = digits(steps); err != nil || step < 1 || step > most {
		return 0, 0, 0, fmt.Errorf("the step %q must be a number from 1 to %d", steps, most)
	}
	return first, last, step, nil
}

// whole is the last number of all, each once.
func (b *bound) whole() int {
	if b.max == 7 {
		return 6
	}
	return b.max
}

// number reads a number or its name.
func (b *bound) number(text string) (int, error) {
	if i := slices.Index(b.names, strings.ToLower(text)); i >= 0 {
		return b.min + i, nil
	}
	n, err := digits(text)
	switch {
	case err == nil && b.min <= n && n <= b.max:
		return n, nil
	case b.names != nil:
		return 0, fmt.Errorf("%q must be a number from %d to %d, or one of %s to %s", text, b.min, b.max,
			strings.ToUpper(b.names[0]), strings.ToUpper(b.names[len(b.names)-1]))
	}
	return 0, fmt.Errorf("%q must be a number from %d to %d", text, b.min, b.max)
}

// digits reads a number of digits alone, without a sign.
func digits(text string) (int, error) {
	n, err := strconv.ParseUint(text, 10, 16)
	return int(n), err
}

// searched is for how many years Next looks: a 29 February that is a certain day of the week may be 40 years off.
const searched = 41

// Next returns the first time after t, or the zero Time if there is none.
func (e *expression) Next(t time.Time) time.Time {
	t = t.In(e.zone).Truncate(time.Minute).Add(time.Minute)
	for end := t.Year() + searched; t.Year() <= end; {
		switch hour, minute := t.Hour(), t.Minute(); {
		case !e.onDay(t):
			// Clocks may be put forward by up to three hours around midnight: the last hours are looked at one by one.
			t = t.Add(time.Duration(max(1, 21-hour))*time.Hour - time.Duration(minute)*time.Minute)
		case e.hours&(1<<hour) == 0:
			t = t.Add(time.Duration(60-minute) * time.Minute)
		case e.minutes&(1<<minute) == 0:
			t = t.Add(time.Minute)
		default:
			return t
		}
	}
	return time.Time{}
}

func (e *expression) onDay(t time.Time) bool {
	day, weekday := e.days&(1<<t.Day()) != 0, e.weekdays&(1<<t.Weekday()) != 0
	switch {
	case e.months&(1<<t.Month()) == 0:
		return false
	case e.either:
		return day || weekday
	}
	return day && weekday
}
