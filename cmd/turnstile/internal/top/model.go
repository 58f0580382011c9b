// Package top draws what is at an ensemble, and keeps it up to date: locks, waits, leaders, queues, sessions, servers.
package top

// The screen's state, and what changes it.

import (
	"context"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/ensemble"
	"github.com/seed-a3166700/turnstile/internal/survey"
	"github.com/seed-a3166700/turnstile/lock"
)

// view is what a screen shows.
type view int

const (
	viewLocks view = iota
	viewWaits
	viewLeaders
	viewQueues
	viewSessions
	viewServers
	views // how many there are

	viewLock // the line of one
	viewHelp
)

// titles are the names of the views.
var titles = [views]string{ //nolint:gochecknoglobals // a table
	"Locks", "Waits", "Leaders", "Queues", "Sessions", "Servers",
}

// Config says how a screen is.
type Config struct {
	Ensemble string // its name, which the screen always shows
	Root     string // the path below which it looks
	Interval time.Duration
	Changes  bool // allow revoke, force and the end of sessions
	Plain    bool // no colours
}

// model is a tea.Model.
type model struct {
	ctx    context.Context //nolint:containedctx // of the requests that a screen makes; tea hands none to it
	source ensemble.Source
	cfg    Config
	styles styles

	view, back    view // back is the one below the line of a lock, or below the help
	path          string
	width, height int
	lists         map[view]*list
	now           time.Time
	paused        bool
	prompt        *prompt
	notice        string
	noticeUntil   time.Time
	err           error

	snapshot  *survey.Snapshot // what is shown
	latest    *survey.Snapshot // what has come
	lines     map[string]ensemble.Line
	past      ensemble.History
	deadlocks []lock.FoundDeadlock
	queues    map[string]ensemble.Queue
	sessions  []ensemble.Session
	asked     time.Time // the servers for them
	lacks     []string
	servers   []ensemble.Server
	loading   bool
	loaded    time.Time
}

// What has happened.
type (
	snapshotMsg struct{ snapshot *survey.Snapshot }
	errorMsg    struct{ err error }
	tickMsg     struct{}
	loadedMsg   struct {
		view      view
		lines     map[string]ensemble.Line
		deadlocks []lock.FoundDeadlock
		queues    map[string]ensemble.Queue
		sessions  []ensemble.Session
		lacks     []string
		servers   []ensemble.Server
	}
	doneMsg struct {
		text string
		err  error
	}
)

// newModel returns a screen on which nothing is yet.
func newModel(ctx context.Context, source ensemble.Source, cfg Config) *model {
	m := &model{
		ctx: ctx, source: source, cfg: cfg, styles: newStyles(""), width: 80, height: 24, now: time.Now(),
		lists: make(map[view]*list), lines: make(map[string]ensemble.Line), past: make(ensemble.History),
		queues: make(map[string]ensemble.Queue),
	}
	for v := range viewHelp + 1 {
		m.lists[v] = new(list)
	}
	return m
}

// Run shows a screen until the user leaves it or ctx ends.
func Run(ctx context.Context, source ensemble.Source, cfg Config, opts ...tea.ProgramOption) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	m := newModel(ctx, source, cfg)
	// The caller has ctx end with a signal.
	_, err := tea.NewProgram(m, append(opts, tea.WithContext(ctx), tea.WithoutSignalHandler())...).Run()
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case m.err != nil:
		return m.err
	}
	return err
}

// Init implements tea.Model.
func (m *model) Init() tea.Cmd {
	cmds := []tea.Cmd{m.next(nil, 0), m.tick()}
	if !m.cfg.Plain {
		cmds = append(cmds, tea.RequestBackgroundColor)
	}
	return tea.Batch(cmds...)
}

// safe returns a command that turns a panic into an error: the terminal is restored before it is reported.
func safe(f func() tea.Msg) tea.Cmd {
	return func() (msg tea.Msg) {
		defer func() {
			if r := recover(); r != nil {
				msg = errorMsg{panicked(r)}
			}
		}()
		return f()
	}
}

func panicked(r any) error { return fmt.Errorf("panic: %v\n%s", r, debug.Stack()) }

// next waits for another snapshot, and for a while before that.
func (m *model) next(last *survey.Snapshot, pause time.Duration) tea.Cmd {
	var shown []string
	for _, r := range m.lists[m.view].rows {
		if r.path != "" && len(shown) < m.height {
			shown = append(shown, r.path)
		}
	}
	return safe(func() tea.Msg {
		select {
		case <-time.After(pause):
		case <-m.ctx.Done():
			return errorMsg{context.Cause(m.ctx)}
		}
		s, err := m.source.Next(m.ctx, last, shown)
		if err != nil {
			return errorMsg{err}
		}
		return snapshotMsg{s}
	})
}

func (m *model) tick() tea.Cmd {
	return tea.Tick(m.cfg.Interval, func(time.Time) tea.Msg { return tickMsg{} })
}

// Update implements tea.Model.
func (m *model) Update(msg tea.Msg) (next tea.Model, cmd tea.Cmd) {
	defer func() {
		if r := recover(); r != nil {
			m.err = panicked(r)
			next, cmd = m, tea.Quit
		}
	}()
	return m, m.update(msg)
}

func (m *model) update(msg tea.Msg) tea.Cmd {
	if m.err != nil { // View has panicked
		return tea.Quit
	}
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case tea.BackgroundColorMsg:
		m.styles = newStyles("254")
		if msg.IsDark() {
			m.styles = newStyles("236")
		}
	case errorMsg:
		m.err = msg.err
		return tea.Quit
	case snapshotMsg:
		m.latest = msg.snapshot
		if !m.paused {
			m.take()
		}
		return tea.Batch(m.next(msg.snapshot, m.cfg.Interval), m.load())
	case tickMsg:
		if !m.paused {
			m.now = time.Now()
			m.arrange(false)
		}
		return tea.Batch(m.tick(), m.load())
	case loadedMsg:
		m.loading = false
		m.takeLoaded(msg)
	case doneMsg:
		m.say(msg.text)
		if msg.err != nil {
			m.say("not done: " + msg.err.Error())
		}
	case tea.PasteMsg:
		if m.prompt != nil {
			m.prompt.add(msg.Content)
			return m.typed()
		}
	case tea.KeyPressMsg:
		return m.key(msg)
	}
	return nil
}

// say shows a line for some seconds.
func (m *model) say(text string) {
	m.notice, m.noticeUntil = clean(text), time.Now().Add(10*time.Second)
}

// take shows the snapshot that has come last.
func (m *model) take() {
	if m.latest == nil {
		return
	}
	m.now = time.Now()
	m.past.Note(m.snapshot, m.latest, m.source.Owner, m.now)
	m.snapshot = m.latest
	m.arrange(false)
}

// arrange makes the rows of the view anew.
func (m *model) arrange(force bool) {
	l := m.lists[m.view]
	if m.snapshot == nil || l == nil {
		return
	}
	rows := slices.DeleteFunc(m.page().rows, func(r row) bool { return !r.matches(l.filter) })
	l.arrange(rows, m.now, force)
}

// show changes the view.
func (m *model) show(v view) tea.Cmd {
	m.view = v
	m.loaded = time.Time{}
	m.arrange(true)
	return m.load()
}

// key does what a key asks for.
func (m *model) key(k tea.KeyPressMsg) tea.Cmd {
	name := k.String()
	if name == "ctrl+c" {
		return tea.Quit
	}
	if m.prompt != nil {
		return m.promptKey(k)
	}
	l := m.lists[m.view]
	if m.view == viewHelp {
		m.view = m.back
		return nil
	}
	page := max(1, m.room()-1)
	switch name {
	case "q":
		return tea.Quit
	case "ctrl+z":
		return tea.Suspend
	case "1", "2", "3", "4", "5", "6":
		return m.show(view(name[0] - '1'))
	case "tab", "shift+tab":
		step := view(1)
		if name == "shift+tab" {
			step = views - 1
		}
		if m.view >= views {
			return m.show(m.back)
		}
		return m.show((m.view + step) % views)
	case "down", "j":
		l.choose(l.at() + 1)
	case "up", "k":
		l.choose(l.at() - 1)
	case "pgdown", "space":
		l.choose(l.at() + page)
	case "pgup":
		l.choose(l.at() - page)
	case "home", "g":
		l.choose(0)
	case "end", "G":
		l.choose(len(l.rows) - 1)
	case "/":
		m.prompt = newFilter(l.filter)
	case "s":
		if names := orders[m.view]; len(names) > 0 {
			l.order = (l.order + 1) % len(names)
			m.arrange(true)
		}
	case "p":
		if m.paused = !m.paused; !m.paused {
			m.take()
		}
	case "enter":
		if r, ok := l.chosen(); ok && r.path != "" && m.view != viewLock && m.view != viewQueues {
			m.back, m.path = m.view, r.path
			m.lists[viewLock] = new(list)
			return m.show(viewLock)
		}
	case "esc":
		return m.escape(l)
	case "y":
		if path := m.chosenPath(); path != "" {
			m.say("copied " + path)
			return tea.SetClipboard(path)
		}
	case "r", "F":
		m.ask(name == "F")
	case "x":
		m.askToEnd()
	case "?":
		m.back, m.view = m.belowHelp(), viewHelp
	}
	return nil
}

func (m *model) belowHelp() view {
	if m.view == viewLock { // it has a view below itself
		return m.back
	}
	return m.view
}

// escape leaves a lock's line, or takes the filter away.
func (m *model) escape(l *list) tea.Cmd {
	if m.view == viewLock {
		return m.show(m.back)
	}
	l.filter = ""
	m.arrange(true)
	return nil
}

// chosenPath returns the path that the cursor is at.
func (m *model) chosenPath() string {
	if m.view == viewLock {
		return m.path
	}
	r, _ := m.lists[m.view].chosen()
	return r.path
}

// sessionsEvery is how often servers are asked for their sessions.
const sessionsEvery = 5 * time.Second

// load reads what the view shows besides the snapshot, unless it is being read.
func (m *model) load() tea.Cmd {
	if m.loading || m.paused && !m.loaded.IsZero() || m.snapshot == nil || m.snapshot.Mode == survey.Cut {
		return nil
	}
	v := m.view
	pause := m.cfg.Interval * 9 / 10
	if v == viewSessions { // dump names each ephemeral node
		pause = max(pause, sessionsEvery)
	}
	due := time.Since(m.loaded) >= pause
	if v >= viewQueues && v <= viewServers && !due {
		return nil
	}
	var f func() loadedMsg
	switch v {
	case viewWaits, viewLock, viewSessions:
		stale := m.stale(v)
		f = func() (msg loadedMsg) {
			msg.lines = m.source.ReadLines(m.ctx, stale)
			switch v {
			case viewSessions:
				msg.sessions, msg.lacks = m.source.Sessions(m.ctx)
			case viewWaits:
				msg.deadlocks, _ = m.source.Deadlocks(m.ctx) // the next look may get an answer
			default:
			}
			return msg
		}
		if len(stale) == 0 && v != viewSessions && (v != viewWaits || !due) {
			return nil
		}
	case viewQueues:
		s, last := m.snapshot, m.queues
		f = func() loadedMsg { return loadedMsg{queues: m.source.ReadQueues(m.ctx, s, last)} }
	case viewServers:
		f = func() loadedMsg { return loadedMsg{servers: m.source.Servers(m.ctx)} }
	default:
		return nil
	}
	m.loading, m.loaded = true, time.Now()
	return safe(func() tea.Msg {
		msg := f()
		msg.view = v
		return msg
	})
}

func (m *model) takeLoaded(msg loadedMsg) {
	maps.Copy(m.lines, msg.lines)
	if msg.queues != nil {
		m.queues = msg.queues
	}
	switch msg.view {
	case viewSessions:
		m.sessions, m.lacks, m.asked = msg.sessions, msg.lacks, time.Now()
	case viewWaits:
		m.deadlocks = msg.deadlocks
	case viewServers:
		m.servers = msg.servers
	default:
	}
	m.arrange(false)
}

// lastPart returns the last part of a path.
func lastPart(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// stale returns the locks whose lines the view shows and that have changed since they were read.
func (m *model) stale(v view) []survey.Entry {
	now := time.Now()
	if v == viewLock {
		e, ok := m.snapshotEntry(m.path)
		if !ok || e.Holding+e.Waiting == 0 || ensemble.TooLong(e) {
			return nil
		}
		return ensemble.Stale([]survey.Entry{e}, m.lines, now)
	}
	for path := range m.lines {
		if e, ok := m.snapshot.Entry(path); !ok || e.Holding+e.Waiting == 0 || ensemble.TooLong(e) {
			delete(m.lines, path)
		}
	}
	return ensemble.Stale(ensemble.Crowded(m.snapshot, v == viewSessions, now), m.lines, now)
}
