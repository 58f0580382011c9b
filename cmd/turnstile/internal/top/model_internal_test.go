package top

import (
	"bytes"
	"context"
	"fmt"
	"image/color"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/ensemble"
	"github.com/seed-a3166700/turnstile/internal/survey"
	"github.com/seed-a3166700/turnstile/lock"
)

func rowsOf(keys string) (rows []row) {
	for key := range strings.SplitSeq(keys, "") {
		rows = append(rows, row{key: key, cells: []cell{{key, plain}}})
	}
	return rows
}

func (l *list) drawn() string {
	var b strings.Builder
	for _, r := range l.rows {
		if b.WriteString(r.key); r.gone {
			b.WriteByte('!')
		}
	}
	return b.String()
}

// Nothing jumps under the cursor: what vanishes stays for two seconds, and so does the order.
func TestRowsKeepTheirPlaces(t *testing.T) {
	t.Parallel()
	var l list
	start := time.Now()
	for _, step := range []struct {
		after        time.Duration
		rows, drawn  string
		cursor, move string
	}{
		{0, "abc", "abc", "a", "b"},
		{time.Second, "cbad", "abcd", "b", ""},
		{1500 * time.Millisecond, "cad", "ab!cd", "b", ""},
		{2 * time.Second, "cad", "cb!ad", "b", ""},
		{3600 * time.Millisecond, "cad", "cad", "a", ""},
		{3700 * time.Millisecond, "cabd", "cadb", "a", "d"},
		{5 * time.Second, "dcab", "dcab", "d", ""},
	} {
		l.arrange(rowsOf(step.rows), start.Add(step.after), false)
		if l.drawn() != step.drawn || l.cursor != step.cursor {
			t.Errorf("after %v: got %s at %s, want %s at %s", step.after, l.drawn(), l.cursor, step.drawn, step.cursor)
		}
		if step.move != "" {
			l.cursor = step.move
		}
	}
}

// crowd is a screen on which sessions, named by digits, hold and wait: "/a 1 23" is a lock of 1 for which 2 and 3 wait.
func crowd(t *testing.T, locks ...string) *model {
	t.Helper()
	now := time.Now()
	s := &survey.Snapshot{Mode: survey.Live}
	m := newModel(t.Context(), ensemble.Source{Owner: func(c lock.Contender) string { return string(c.Data) }},
		Config{Ensemble: "here", Root: "/", Interval: time.Second})
	for _, text := range locks {
		path, holder, waiters := "", "", ""
		_, _ = fmt.Sscan(text, &path, &holder, &waiters) // there may be no waiters
		var list []lock.Contender
		for i, who := range holder + waiters {
			list = append(list, lock.Contender{
				Path: fmt.Sprintf("%s/%d", path, i), Session: int64(who), Holder: i == 0, Data: []byte(string(who)),
				Since: now.Add(time.Duration(i-10) * time.Second), Token: lock.Token(i + 1),
			})
		}
		e := survey.Entry{Path: path, Kind: survey.Lock, Summary: lock.Summary{
			Holders: list[:1], Holding: 1, Waiting: len(waiters), Groups: 1,
		}}
		if len(waiters) > 0 {
			e.First = &list[1]
		}
		s.Entries = append(s.Entries, e)
		m.lines[path] = ensemble.Line{Entry: e, List: list, Read: now}
	}
	m.latest = s
	m.view = viewWaits
	m.take()
	return m
}

func TestWaitsAreATree(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		locks []string
		want  []string
	}{
		{[]string{"/a 1 23"}, []string{"1 /a 2", "├─ 2 /a ·", "└─ 3 /a ·"}}, // one blocker, several waiters
		{[]string{"/a 1 2", "/b 2 3", "/c 9"}, []string{"1 /a 2", "└─ 2 /a 1", "   └─ 3 /b ·"}},
		{
			[]string{"/a 1 2", "/b 2 1"},
			[]string{"possible circle: 1 /a 2", "└─ 2 /a 1", "   └─ 1 /b ·"},
		},
		{[]string{"/a 1"}, nil},
	} {
		m := crowd(t, test.locks...)
		var got []string
		for _, r := range m.page().rows {
			got = append(got, r.cells[0].text+" "+r.cells[1].text+" "+r.cells[3].text)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%q: got %q, want %q", test.locks, got, test.want)
		}
	}
}

// A holder whose node is as old as its wait has held since it was first seen to hold.
func TestLineShowsForHowLongTheHolderHolds(t *testing.T) {
	t.Parallel()
	m := crowd(t, "/a 1 2")
	m.path = "/a"
	m.show(viewLock)
	since := m.snapshot.Entries[0].Holders[0].Since
	m.now = since.Add(2 * time.Minute)
	shows := func(want time.Duration) {
		t.Helper()
		if got := m.page().rows[0].cells[2].text; got != ensemble.Ago(want) {
			t.Errorf("got %q, want %q", got, ensemble.Ago(want))
		}
	}
	shows(2 * time.Minute)
	m.past["/a"] = &ensemble.Past{Last: []ensemble.Change{{Path: "/a", At: since.Add(90 * time.Second)}}}
	shows(30 * time.Second)
}

// A line of thousands is not read. What the survey tells of it is shown.
func TestLineThatIsTooLongIsNotRead(t *testing.T) {
	t.Parallel()
	m := crowd(t, "/a 1 "+strings.Repeat("2", 5000), "/b 1 2")
	m.lines = make(map[string]ensemble.Line)
	if stale := m.stale(viewWaits); len(stale) != 1 || stale[0].Path != "/b" {
		t.Errorf("the waits: got %v, want /b alone", stale)
	}
	m.path = "/a"
	m.show(viewLock)
	if stale := m.stale(viewLock); len(stale) > 0 {
		t.Errorf("the line: got %v, want that it is not read", stale)
	}
	const told = "The line is too long to be read. Those in front are shown."
	if p := m.page(); len(p.rows) != 2 || !slices.Contains(p.top, told) {
		t.Errorf("got %d rows below %q", len(p.rows), p.top)
	}
}

// Whatever the size, each view fits.
func TestViewsFitIntoEachSize(t *testing.T) {
	t.Parallel()
	m := crowd(t, "/a 1 2345", "/世界/b 2 13", "/"+strings.Repeat("long/", 30)+"c 3")
	m.cfg.Changes = true
	for v := range viewHelp + 1 {
		for columns := 1; columns < 140; columns += 7 {
			for lines := 1; lines < 40; lines += 3 {
				m.update(tea.WindowSizeMsg{Width: columns, Height: lines})
				m.path = "/a"
				m.show(v)
				if v == viewLocks && lines > 12 {
					m.ask(true)
				}
				screen := m.screen()
				for _, line := range screen {
					if width(line) > columns && columns > 40 {
						t.Fatalf("view %d at %dx%d: %q has %d", v, columns, lines, line, width(line))
					}
				}
				if len(screen) != lines && columns >= 40 && lines >= 10 {
					t.Fatalf("view %d at %dx%d: %d lines", v, columns, lines, len(screen))
				}
				m.prompt = nil
			}
		}
	}
}

// Snapshots that come while the help is shown are not lost.
func TestSnapshotsComeWhileHelpIsShown(t *testing.T) {
	t.Parallel()
	m := crowd(t, "/a 1 2")
	m.show(viewHelp)
	m.view = viewHelp
	m.update(snapshotMsg{m.latest})
	if screen := strings.Join(m.screen(), "\n"); m.err != nil || !strings.Contains(screen, "change the view") {
		t.Errorf("%v: %q", m.err, screen)
	}
}

// The background of the chosen row suits that of the terminal, which is asked for it unless there are no colours.
func TestChosenRowSuitsTheTerminal(t *testing.T) {
	t.Parallel()
	m, plain := crowd(t, "/a 1 2"), crowd(t, "/a 1 2")
	plain.cfg.Plain = true
	if a, b := len(m.Init()().(tea.BatchMsg)), len(plain.Init()().(tea.BatchMsg)); a != b+1 {
		t.Errorf("got %d commands at first and %d without colours, want one less", a, b)
	}
	for terminal, want := range map[color.Color]string{color.Black: "236", color.White: "254"} {
		m.update(tea.BackgroundColorMsg{Color: terminal})
		if got := m.styles.chosen.GetBackground(); got != lipgloss.Color(want) {
			t.Errorf("on %v: got %v, want colour %s", terminal, got, want)
		}
	}
}

// A session is ended only if that is allowed and the end of its name was typed.
func TestSessionIsEndedOnlyWhenItsNameWasTyped(t *testing.T) {
	t.Parallel()
	m := crowd(t, "/a 1 2")
	m.update(tea.WindowSizeMsg{Width: 80, Height: 24})
	var ended []int64
	m.source.EndSession = func(_ context.Context, id int64, _ string) error {
		ended = append(ended, id)
		return nil
	}
	m.show(viewSessions)
	m.askToEnd()
	if m.prompt != nil {
		t.Error("it is asked for without --allow-changes")
	}
	m.cfg.Changes = true
	for _, typed := range []string{"", "0x31", "32", "31"} {
		m.askToEnd() // the session at the cursor, the first one, is 0x31
		m.prompt.add(typed)
		if do := m.confirm(m.prompt); do != nil {
			do()
		}
	}
	if !slices.Equal(ended, []int64{'1'}) {
		t.Errorf("ended %x", ended)
	}
}

// A panic is reported after the terminal has been restored.
func TestPanicRestoresTheTerminal(t *testing.T) {
	t.Parallel()
	for name, source := range map[string]ensemble.Source{
		"while it reads": {
			Next: func(context.Context, *survey.Snapshot, []string) (*survey.Snapshot, error) { panic("oh") },
		},
		"while it draws": {
			Next: func(context.Context, *survey.Snapshot, []string) (*survey.Snapshot, error) {
				<-time.After(100 * time.Millisecond) // it is drawn without locks before
				e := survey.Entry{Path: "/a", Kind: survey.Lock, Summary: lock.Summary{
					Holders: make([]lock.Contender, 1), Holding: 1,
				}}
				return &survey.Snapshot{Entries: []survey.Entry{e}, Mode: survey.Live}, nil
			},
			Owner: func(lock.Contender) string { panic("oh") },
		},
	} {
		var out bytes.Buffer
		err := Run(t.Context(), source, Config{Interval: 10 * time.Millisecond, Root: "/"},
			tea.WithInput(strings.NewReader("")), tea.WithOutput(&out), tea.WithWindowSize(80, 24),
			tea.WithEnvironment([]string{"TERM=xterm-256color"}))
		if err == nil || !strings.Contains(err.Error(), "panic: oh") {
			t.Errorf("%s: got %v", name, err)
		}
		enter, leave := strings.LastIndex(out.String(), "\x1b[?1049h"), strings.LastIndex(out.String(), "\x1b[?1049l")
		if enter >= 0 && leave < enter {
			t.Errorf("%s: the screen is not left: %q", name, out.String())
		}
	}
}
