package elect

// The leader as other clients see it.

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/internal/line"
	"github.com/seed-a3166700/turnstile/zk"
)

// Limits of a candidate's data. Servers refuse nodes of more than a mebibyte by closing the connection.
const (
	maxID    = 1 << 10
	maxValue = 1 << 19
)

// Leader is the leader as other clients see it. The zero Leader means that there is none.
type Leader struct {
	ID      string    // of the candidate; can be empty
	Value   []byte    // that it has proclaimed; nil if none
	Path    string    // of its node; empty if there is no leader
	Session int64     // that owns the node
	Since   time.Time // when it joined the line, by the server's clock
	Token   Token
}

// Nobody reports whether there is no leader.
func (l Leader) Nobody() bool { return l.Path == "" }

func (l Leader) same(other Leader) bool {
	return l.Path == other.Path && l.Token == other.Token && l.ID == other.ID && bytes.Equal(l.Value, other.Value)
}

// Participant is a candidate that leads or waits to.
type Participant struct {
	Leader      // its id, its node, and the token that it has or will have
	Leads  bool // first in line
}

// describe decodes a candidate's node.
func describe(path string, data []byte, stat zk.Stat) (Leader, error) {
	token, err := line.Token(stat.Czxid, 0)
	if err != nil {
		return Leader{}, err
	}
	record := line.DecodeCandidate(data)
	return Leader{
		ID:      record.ID,
		Value:   record.Value,
		Path:    path,
		Session: stat.EphemeralOwner,
		Since:   time.UnixMilli(stat.Ctime),
		Token:   Token(token),
	}, nil
}

// Participants returns the leader and the waiting candidates, in the order in which they will lead, also those of
// other programs with the same layout. The list is empty if there are none, or if the path does not exist. Candidates
// that leave meanwhile are left out. If a node of no session is first (see Hooks.Stray), no candidate leads.
func (c *Candidate) Participants(ctx context.Context) ([]Participant, error) {
	list, err := attempt.Run(ctx, c.client, func(sess *zk.Session) ([]Participant, error) {
		return c.participants(ctx, sess)
	})
	if err != nil {
		return nil, c.failed(err)
	}
	return list, nil
}

func (c *Candidate) participants(ctx context.Context, sess *zk.Session) ([]Participant, error) {
	children, _, err := sess.Children(ctx, c.path)
	if err != nil && !errors.Is(err, zk.NoNode) {
		return nil, err
	}
	if err := c.access.Check(ctx, sess, c.path); err != nil {
		return nil, err
	}
	contenders, _ := line.Fold(line.Contenders(children, c.line.Markers)) // one each, also of those with two nodes
	line.Sort(contenders)
	paths := make([]string, len(contenders))
	for i, s := range contenders {
		paths[i] = c.path + "/" + s.Name
	}
	list := make([]Participant, 0, len(contenders))
	blocked := false
	for path, read := range attempt.Each(sess, paths, (*zk.Batch).Get) {
		node, err := read.Get(ctx)
		if errors.Is(err, zk.NoNode) {
			continue
		}
		if err == nil && node.Stat.EphemeralOwner == 0 { // no candidate, but those behind it wait for it
			blocked = true
			continue
		}
		var l Leader
		if err == nil {
			l, err = describe(path, node.Data, node.Stat)
		}
		if err != nil {
			return nil, err
		}
		list = append(list, Participant{Leader: l, Leads: len(list) == 0 && !blocked})
	}
	return list, nil
}
