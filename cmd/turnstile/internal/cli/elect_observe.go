package cli

// turnstile elect --observe.

import (
	"context"
	"fmt"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
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
	client, candidate, err := e.connect(ctx)
	if client != nil {
		defer client.Close() // nothing of ours is at the server
	}
	if err != nil {
		return err
	}
	for leader, err := range candidate.Observe(ctx) {
		if err != nil {
			return err
		}
		if err := e.print(leader); err != nil {
			return err
		}
	}
	return nil
}

func (e *elector) print(l elect.Leader) error {
	if l.Nobody() {
		return e.app.Report(e.json, electionJSON{Path: e.run.Path}, "%s: nobody leads\n", e.run.Path)
	}
	j := &leaderJSON{
		ID:      l.ID,
		Node:    l.Path,
		Since:   command.Timestamp(l.Since),
		Session: command.SessionID(l.Session),
		Token:   int64(l.Token),
	}
	text := fmt.Sprintf("%s: %s leads, token %d", e.run.Path, command.Plain(l.ID), l.Token)
	if l.Value != nil {
		value := string(l.Value)
		j.Value = &value
		text += ", value " + command.Excerpt(command.Plain(value))
	}
	return e.app.Report(e.json, electionJSON{Path: e.run.Path, Leader: j}, "%s\n", text)
}
