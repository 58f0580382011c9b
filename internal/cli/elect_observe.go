package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"syscall"

	"github.com/seed-a3166700/turnstile/elect"
)

// electionJSON is what "turnstile elect --observe --json" prints for every change.
type electionJSON struct {
	Path   string      `json:"path"`
	Leader *leaderJSON `json:"leader"` // null when nobody leads
}

type leaderJSON struct {
	ID      string  `json:"id"`
	Value   *string `json:"value,omitempty"`
	Node    string  `json:"node"`
	Since   string  `json:"since"`
	Session string  `json:"session"`
	Token   int64   `json:"token"`
}

// watch prints who leads, until a signal comes.
func (e *elector) watch(ctx context.Context) error {
	ctx, stop := untilSignal(ctx)
	defer stop()
	client, candidate, err := e.candidate(ctx)
	if client != nil {
		defer client.Close() // nothing of ours is at the server
	}
	if err != nil {
		return failed(err)
	}
	for leader, err := range candidate.Observe(ctx) {
		if err != nil {
			return failed(err)
		}
		if err := e.print(leader); err != nil {
			return unheard(err)
		}
	}
	return nil
}

// unheard is the error of output that cannot be written. When nobody reads it any more, as after "| head -1", there is nothing to say.
func unheard(err error) error {
	if errors.Is(err, syscall.EPIPE) {
		return &exitError{code: ExitSignal + int(syscall.SIGPIPE)}
	}
	return failed(err)
}

func (e *elector) print(l elect.Leader) error {
	switch {
	case e.json:
		return e.cli.json(election(e.path, l))
	case l.Nobody():
		_, err := fmt.Fprintf(e.stdout, "%s: nobody leads\n", e.path)
		return err
	}
	line := fmt.Sprintf("%s: %s leads, token %d", e.path, plain(l.ID), l.Token)
	if l.Value != nil {
		line += ", value " + plain(string(l.Value))
	}
	_, err := fmt.Fprintln(e.stdout, line)
	return err
}

// plain quotes what others have written, unless it is a plain word.
func plain(s string) string {
	if quoted := strconv.QuoteToGraphic(s); s == "" || quoted != `"`+s+`"` {
		return quoted
	}
	return s
}

// printable is plain without the quotes: control characters, with which others could write over a terminal, come out as escapes.
func printable(s string) string {
	quoted := strconv.QuoteToGraphic(s)
	return quoted[1 : len(quoted)-1]
}

func election(path string, l elect.Leader) electionJSON {
	if l.Nobody() {
		return electionJSON{Path: path}
	}
	leader := &leaderJSON{
		ID:      l.ID,
		Node:    l.Path,
		Since:   timestamp(l.Since),
		Session: sessionID(l.Session),
		Token:   int64(l.Token),
	}
	if l.Value != nil {
		value := string(l.Value)
		leader.Value = &value
	}
	return electionJSON{Path: path, Leader: leader}
}
