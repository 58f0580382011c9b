package cli

// turnstile locks --watch.

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
	"github.com/seed-a3166700/turnstile/internal/survey"
	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zk"
)

// watchEvery is how often a list that is watched is printed: as often as its ages change.
const watchEvery = time.Second

// follow prints what changes, until ctx ends.
func (l *locks) follow(ctx context.Context, client *zk.Client) error {
	s, err := survey.Follow(ctx, client, survey.FollowConfig{
		Config: survey.Config{Root: l.Path, Time: time.Duration(l.readFor)},
	})
	if err != nil {
		return err
	}
	defer s.Close()
	next, show := s.Next, l.again
	file, isFile := l.App.Stdout.(*os.File)
	terminal := isFile && term.IsTerminal(int(file.Fd()))
	if terminal || l.stuck > 0 { // ages change, and waits become long, though nothing else does
		next = atLeast(next, watchEvery)
	}
	switch {
	case l.AsJSON:
		show = l.changes()
	case terminal:
		show = l.draw(file)
		if _, err := file.WriteString(enter); err != nil {
			return command.OutputError(err)
		}
		defer func() { _, _ = file.WriteString(leave) }()
	}
	var last *survey.Snapshot
	var paths []string
	for {
		before, were := last, paths
		if last, err = next(ctx, last, paths); err != nil {
			return err
		}
		if err := closed(last, l.Path); err != nil {
			return err
		}
		now := time.Now()
		shown, more := l.choose(last.Entries, now)
		paths = nil
		for _, e := range shown {
			paths = append(paths, e.Path)
		}
		if terminal || last != before || !slices.Equal(paths, were) {
			if err := show(last, shown, more, now); err != nil {
				return err
			}
		}
		select {
		case <-time.After(watchEvery):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// nextSnapshot is survey.Survey.Next.
type nextSnapshot = func(context.Context, *survey.Snapshot, []string) (*survey.Snapshot, error)

// atLeast returns the same snapshot again when there is no other for so long.
func atLeast(next nextSnapshot, every time.Duration) nextSnapshot {
	return func(ctx context.Context, last *survey.Snapshot, shown []string) (*survey.Snapshot, error) {
		limited := ctx
		if last != nil {
			var cancel context.CancelFunc
			limited, cancel = context.WithTimeout(ctx, every)
			defer cancel()
		}
		s, err := next(limited, last, shown)
		if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
			return last, nil
		}
		return s, err
	}
}

// again prints the list again.
func (l *locks) again(s *survey.Snapshot, shown []survey.Entry, more int, now time.Time) error {
	if err := l.App.Printf("%s\n", l.headline(s, shown, now)); err != nil {
		return err
	}
	if err := l.print(l.App.Stdout, s, shown, now); err != nil {
		return err
	}
	for _, note := range notes(s, shown, more) {
		if err := l.App.Printf("%s\n", note); err != nil {
			return err
		}
	}
	return l.App.Printf("\n")
}

// notes are what else is to be said.
func notes(s *survey.Snapshot, shown []survey.Entry, more int) []command.Text {
	list := slices.Concat(lacks(s), warnings(shown))
	if more > 0 {
		list = append(list, command.Sprintf("%d more are left out by --limit", more))
	}
	return list
}

// headline says what is shown, and how old it is.
func (l *locks) headline(s *survey.Snapshot, shown []survey.Entry, now time.Time) command.Text {
	waiting := 0
	for _, e := range shown {
		waiting += e.Waiting
	}
	state := ""
	switch s.Mode {
	case survey.Sampled:
		state = fmt.Sprintf(", read %v ago", now.Sub(s.Asked).Round(time.Second))
	case survey.Cut:
		state = ", no server is connected: this was at " + s.Since.Local().Format(time.TimeOnly)
	case survey.Live:
	}
	return command.Sprintf("%s  %s at %s: %d shown, %d waiting%s",
		now.Local().Format(time.TimeOnly), s.Server, l.Path, len(shown), waiting, state)
}

// What a terminal is told: another screen, without a cursor and without wrapping lines, and back.
const (
	enter = "\x1b[?1049h\x1b[?25l\x1b[?7l"
	leave = "\x1b[?7h\x1b[?25h\x1b[?1049l"
)

// draw fills the terminal with the list. Lines that do not fit are cut, and rows left out.
func (l *locks) draw(file *os.File) func(*survey.Snapshot, []survey.Entry, int, time.Time) error {
	return func(s *survey.Snapshot, shown []survey.Entry, more int, now time.Time) error {
		width, height, err := term.GetSize(int(file.Fd()))
		if err != nil || width < 1 || height < 4 {
			width, height = 80, 24
		}
		extra := notes(s, shown, more)
		rows := height - 3 - len(extra) // besides the head line, an empty line and the columns' names
		if len(shown) > rows {
			rows = max(1, rows-1)
			extra = append(extra, command.Sprintf("%d more do not fit", len(shown)-min(rows, len(shown))))
		}
		var table bytes.Buffer
		if err := l.print(&table, s, shown[:min(len(shown), rows)], now); err != nil {
			return err
		}
		lines := []string{string(l.headline(s, shown, now)), ""}
		lines = append(lines, strings.Split(strings.TrimSuffix(table.String(), "\n"), "\n")...)
		for _, note := range extra {
			lines = append(lines, string(note))
		}
		// Each line overwrites what was there: nothing flickers.
		lines = lines[:min(len(lines), height)]
		for i, line := range lines {
			lines[i] = command.Cut(line, width-1) + "\x1b[K"
		}
		_, err = file.WriteString("\x1b[H" + strings.Join(lines, "\r\n") + "\x1b[J")
		return command.OutputError(err)
	}
}

// changes prints a line of JSON for each entry that is another than before, and one when it is no longer shown.
func (l *locks) changes() func(*survey.Snapshot, []survey.Entry, int, time.Time) error {
	before := make(map[string]survey.Entry)
	return func(s *survey.Snapshot, shown []survey.Entry, _ int, now time.Time) error {
		if s.Mode == survey.Cut {
			return nil
		}
		after := make(map[string]survey.Entry, len(shown))
		var list []survey.Entry
		for _, e := range shown {
			after[e.Path] = e
			if old, ok := before[e.Path]; !ok || !reflect.DeepEqual(old, e) {
				list = append(list, e)
			}
		}
		for path := range before {
			if _, ok := after[path]; ok {
				continue
			}
			e, ok := s.Entry(path)
			if !ok {
				e = survey.Entry{Path: path, Kind: survey.Absent, Summary: lock.Summary{}}
			}
			list = append(list, e)
		}
		before = after
		slices.SortFunc(list, func(a, b survey.Entry) int { return strings.Compare(a.Path, b.Path) })
		for _, e := range list {
			if err := l.App.JSON(newLocksJSON(s, e, now)); err != nil {
				return err
			}
		}
		return nil
	}
}
