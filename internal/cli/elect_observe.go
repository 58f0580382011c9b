package cli

import (
	"context"
	"fmt"

	"github.com/seed-a3166700/turnstile/elect"
	"github.com/seed-a3166700/turnstile/internal/cli/command"
	"github.com/seed-a3166700/turnstile/internal/supervise"
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
	ctx, stop := supervise.Until(ctx)
	defer stop()
	client, candidate, err := e.connect(ctx)
	if client != nil {
		defer client.Close() // nothing of ours is at the server
	}
	if err != nil {
		return command.Failed(err)
	}
	for leader, err := range candidate.Observe(ctx) {
		if err != nil {
			return command.Failed(err)
		}
		if err := e.print(leader); err != nil {
			return err
		}
	}
	return nil
}

func (e *elector) print(l elect.Leader) error {
	switch {
	case e.json:
		return e.app.JSON(election(e.run.Path, l))
	case l.Nobody():
		return e.app.Printf("%s: nobody leads\n", e.run.Path)
	}
	line := fmt.Sprintf("%s: %s leads, token %d", e.run.Path, command.Plain(l.ID), l.Token)
	if l.Value != nil {
		line += ", value " + command.Plain(string(l.Value))
	}
	return e.app.Printf("%s\n", line)
}

func election(path string, l elect.Leader) electionJSON {
	if l.Nobody() {
		return electionJSON{Path: path}
	}
	leader := &leaderJSON{
		ID:      l.ID,
		Node:    l.Path,
		Since:   command.Timestamp(l.Since),
		Session: command.SessionID(l.Session),
		Token:   int64(l.Token),
	}
	if l.Value != nil {
		value := string(l.Value)
		leader.Value = &value
	}
	return electionJSON{Path: path, Leader: leader}
}
