package top

// What is typed: filters, reasons, and confirmations.

import (
	"fmt"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
	"github.com/seed-a3166700/turnstile/lock"
)

// maxTyped is how long a filter or a reason may be, in bytes.
const maxTyped = 300

// A prompt takes a line.
type prompt struct {
	label  string
	text   string
	before string   // the filter that was there
	lines  []string // what the user should know, clean
	filter bool

	session int64 // to end; 0 if it is not that

	path    string // of the lock whose holders are asked
	force   bool
	holders map[string]lock.Token
}

func newFilter(now string) *prompt {
	return &prompt{label: "Filter", text: now, before: now, filter: true}
}

// add adds text without characters that are not for a line.
func (p *prompt) add(text string) {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, text)
	if len(p.text)+len(text) <= maxTyped {
		p.text += text
	}
}

// promptKey does what a key does while a line is typed.
func (m *model) promptKey(k tea.KeyPressMsg) tea.Cmd {
	p := m.prompt
	switch k.String() {
	case "esc":
		if p.filter {
			m.lists[m.view].filter = p.before
			m.arrange(true)
		}
		m.prompt = nil
	case "enter":
		return m.confirm(p)
	case "backspace", "ctrl+h":
		if runes := []rune(p.text); len(runes) > 0 {
			p.text = string(runes[:len(runes)-1])
		}
		return m.typed()
	case "ctrl+u":
		p.text = ""
		return m.typed()
	default:
		p.add(k.Key().Text)
		return m.typed()
	}
	return nil
}

// typed takes over a filter while it is typed.
func (m *model) typed() tea.Cmd {
	if m.prompt.filter {
		m.lists[m.view].filter = m.prompt.text
		m.arrange(true)
	}
	return nil
}

// ask asks for what a revocation needs: a reason, and by force the last part of the path.
func (m *model) ask(force bool) {
	if !m.cfg.Changes {
		m.say("this screen changes nothing: start it with --allow-changes for revoke and force")
		return
	}
	path := m.chosenPath()
	e, ok := m.snapshotEntry(path)
	if !ok || len(e.Holders) == 0 || m.view != viewLocks && m.view != viewLeaders && m.view != viewLock {
		m.say("there is no holder to ask: choose a lock that is held")
		return
	}
	p := &prompt{path: path, force: force, holders: make(map[string]lock.Token)}
	holders := e.Holders
	if r, chosen := m.lists[viewLock].chosen(); m.view == viewLock && chosen {
		for _, c := range m.lines[path].List {
			if c.Holder && c.Path == r.node { // the one at the cursor alone
				holders = []lock.Contender{c}
			}
		}
	}
	for _, c := range holders {
		p.holders[c.Path] = c.Token
		if len(p.lines) < 3 {
			p.lines = append(p.lines, clean(fmt.Sprintf("holder %s, token %d", m.source.Owner(c), c.Token)))
		}
	}
	if n := e.Holding - len(p.holders); n > 0 && len(holders) == len(e.Holders) {
		p.lines = append(p.lines, fmt.Sprintf("%d more hold it, and are not asked", n))
	}
	if force {
		p.lines = append([]string{
			"FORCE " + clean(path), "The holder has 10 s to release it; then its node is deleted.",
			"Another client then has the lock, although the holder may still be working.",
		}, p.lines...)
		p.label = "Type " + clean(lastPart(path)) + " to force"
	} else {
		p.lines = append([]string{
			"REVOKE " + clean(path), "Asks the holder to release it; the holder may refuse.",
		}, p.lines...)
		p.label = "Reason"
	}
	m.prompt = p
}

// askToEnd asks for what ending a session needs: the last part of its name, so that it is the one that was meant.
func (m *model) askToEnd() {
	r, chosen := m.lists[viewSessions].chosen()
	switch {
	case m.view != viewSessions:
		return
	case !m.cfg.Changes:
		m.say("this screen changes nothing: start it with --allow-changes to end a session")
		return
	case !chosen:
		m.say("there is no session to end")
		return
	}
	id, err := strconv.ParseUint(strings.TrimPrefix(r.key, "0x"), 16, 64)
	if err != nil {
		return // the key of a row is the name of its session
	}
	m.prompt = &prompt{
		session: int64(id), //nolint:gosec // a session's number has 64 bits
		label:   "Type " + lastDigits(r.key) + " to end it",
		lines: []string{
			"END " + r.key + " " + r.cells[1].text + " " + r.cells[len(r.cells)-1].text,
			"Its nodes are deleted: others get what it holds at once, although its program",
			"may still be working. Only turnstile serve can do that.",
		},
	}
}

// lastDigits are the last eight of a session's name: the last four are often zeros.
func lastDigits(name string) string { return name[max(0, len(name)-8):] }

// confirm does what was asked for, if what was typed confirms it.
func (m *model) confirm(p *prompt) tea.Cmd {
	m.prompt = nil
	typed := strings.TrimSpace(p.text)
	last := lastPart(p.path)
	switch {
	case p.filter:
		return nil
	case p.session != 0:
		name := command.SessionID(p.session)
		if typed != lastDigits(name) {
			m.say("nothing was done: that is not the end of " + name)
			return nil
		}
		return safe(func() tea.Msg {
			err := m.source.EndSession(m.ctx, p.session, "ended in turnstile top")
			return doneMsg{"ended session " + name, err}
		})
	case p.force && typed != last && typed != clean(last):
		m.say("nothing was done: that is not the last part of " + p.path)
		return nil
	case !p.force && typed == "":
		m.say("nothing was done: the holder needs a reason")
		return nil
	}
	reason := typed
	if p.force {
		reason = "forced in turnstile top"
	}
	m.say("asked the holder of " + p.path)
	return safe(func() tea.Msg {
		text, err := m.source.Revoke(m.ctx, p.path, p.holders, reason, p.force)
		return doneMsg{text, err}
	})
}
