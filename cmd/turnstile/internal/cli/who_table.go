package cli

// The table of turnstile who.

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
	"github.com/seed-a3166700/turnstile/internal/survey"
	"github.com/seed-a3166700/turnstile/lock"
)

// printLine prints the contenders for people, each group by itself, and those of the other lines that they hold. If
// titled is set it prints the path, too.
func printLine(app *command.App, l lineAt, others []lineAt, titled bool, server string) error {
	if len(l.list) == 0 {
		absent := ""
		if l.found.kind == survey.Absent {
			absent = "; there is no such path now"
		}
		return app.Printf("nobody holds %s or waits for it (asked %s%s)\n", l.path, server, absent)
	}
	w := app.Table()
	tree := &heldTree{w: w, drawn: map[string]bool{l.path: true}, lines: others}
	for group := range l.groups() {
		title := ""
		if titled {
			title = l.path
		}
		if group > 0 {
			title = "and besides"
			_ = command.Fprintf(w, "\n") // Flush says whether it could be written
		}
		_ = command.Fprintf(w, "%s\tOWNER\tSINCE\tSESSION\tTOKEN\n", title)
		tree.printGroup("", slices.DeleteFunc(slices.Clone(l.list), func(s contender) bool { return s.Group != group }))
	}
	return command.OutputError(w.Flush())
}

// A heldTree draws below each waiter who waits for what it holds.
type heldTree struct {
	w     io.Writer
	lines []lineAt        // that may be drawn
	drawn map[string]bool // paths
}

// printGroup prints the contenders of a group, each with the prefix.
func (t *heldTree) printGroup(prefix string, line []contender) {
	waiting := 0
	for _, c := range line {
		token := strconv.FormatInt(int64(c.Token), 10)
		if !c.Holder {
			token = "-"
		}
		if !c.Holder && !c.MayHold {
			waiting++
		}
		_ = command.Fprintf(t.w, "%s%s\t%s\t%s\t%s\t%s\n",
			prefix, role(c, waiting), c.describe(), command.Since(c.Since), command.SessionID(c.Session), token)
		for _, h := range c.holds {
			for _, path := range h.Paths {
				t.printHeld(prefix, path)
			}
		}
	}
}

// printHeld prints who waits at a path, unless that is above.
func (t *heldTree) printHeld(prefix, path string) {
	i := slices.IndexFunc(t.lines, func(l lineAt) bool { return l.path == path })
	if i < 0 || t.drawn[path] {
		return
	}
	t.drawn[path] = true
	indent := strings.Repeat(" ", len(prefix)-len(strings.TrimLeft(prefix, " "))+2)
	t.printGroup(indent+command.Excerpt(command.Plain(path))+" ",
		slices.DeleteFunc(slices.Clone(t.lines[i].list), func(c contender) bool { return c.Holder }))
}

// describe says whose the contender is, and what concerns it besides its place.
func (c contender) describe() string {
	who := owner(c.Contender)
	if c.Revoked != nil {
		who += ", asked to give it up"
	}
	if len(c.waitsAt) > 0 {
		who += ", waits at " + command.Excerpt(strings.Join(c.waitsAt, " "))
	}
	if len(c.waitsFor) > 0 {
		who += ", waits for " + command.Excerpt(command.Plain(strings.Join(c.waitsFor, " ")))
	}
	var held []string
	for _, h := range c.holds {
		held = appendMissing(held, h.Paths)
	}
	if len(held) > 0 {
		who += ", holds " + command.Excerpt(command.Plain(strings.Join(held, " "))) + " meanwhile"
	}
	return who
}

// role says what a contender is: a waiter is the n-th one.
func role(c contender, n int) string {
	holder, waiter := "holder", "waiter"
	switch c.Kind {
	case lock.Candidate:
		holder, waiter = "leader", "candidate"
	case lock.Reader, lock.Writer:
		holder, waiter = holder+", "+c.Kind.String(), c.Kind.String()
	case lock.Permit:
		if c.permits > 1 {
			holder = fmt.Sprintf("%s of %d", holder, c.permits)
		}
	case lock.Exclusive:
	}
	switch {
	case c.Holder:
		return holder
	case c.MayHold && c.Kind == lock.Exclusive:
		return "may hold"
	case c.MayHold:
		return "may hold, " + c.Kind.String()
	}
	return waiter + " " + strconv.Itoa(n)
}

// owner describes the owner of a contender.
func owner(c lock.Contender) string {
	switch {
	case !c.Known && len(c.Data) == 0:
		return "?"
	case !c.Known:
		return command.Plain(string(c.Data[:min(len(c.Data), 60)]))
	}
	var more []string
	if c.Owner.Label != "" {
		more = append(more, command.Excerpt(c.Owner.Label))
	}
	if len(c.Owner.Set) > 0 {
		more = append(more, "set of "+command.Excerpt(strings.Join(c.Owner.Set, " ")))
	}
	text := fmt.Sprintf("%s pid %d", command.Excerpt(command.Plain(c.Owner.Host)), c.Owner.PID)
	if len(more) > 0 {
		text += " (" + strings.Join(more, "; ") + ")"
	}
	return text
}
