package barrier

// Where a party of Rounds stands, after a reply was lost.

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/zk"
)

// locate returns the record, and the directory that the party's node is in, after what was asked for before. The
// directory is empty if the node is not there. The record may be out of date: a node is moved by its party only, and
// the directories of each record are all that have living parties.
func (p *Party) locate(ctx context.Context) (*record, string, error) {
	r := p.rounds
	rec, err := attempt.Ask(ctx, p.sess, func() (*record, error) {
		b := p.sess.Batch()
		passed, data := attempt.Fence(b), b.Get(r.path)
		b.Send()
		if err := passed(ctx); err != nil {
			return nil, err
		}
		d, err := data.Get(ctx)
		if err != nil {
			return nil, err
		}
		return p.decode(d.Data, d.Stat)
	})
	if errors.Is(err, zk.NoNode) {
		return nil, "", p.noPath()
	}
	if err != nil {
		return nil, "", err
	}
	dir, err := p.search(ctx, rec)
	return rec, dir, err
}

func (p *Party) noPath() error {
	return fmt.Errorf("%w: another client deleted %s", ErrNotJoined, p.rounds.path)
}

// search looks for the party's node in the directories of rec.
func (p *Party) search(ctx context.Context, rec *record) (string, error) {
	dirs := append(slices.Clone(rec.Behind), rec.Arrived)
	there, err := exist(ctx, p.sess, dirs, p.path)
	if err != nil {
		return "", err
	}
	found := ""
	for i, e := range there {
		if e.Exists {
			found = dirs[i]
		}
	}
	return found, nil
}

// find finds out where the party's node is, after a reply was lost.
func (p *Party) find(ctx context.Context) error {
	rec, dir, err := p.locate(ctx)
	if err != nil {
		return err
	}
	p.rec, p.asked = rec, false
	if dir == "" {
		return fmt.Errorf("%w: another client deleted its node", ErrNotJoined)
	}
	p.dir = dir
	if rec.Round > p.round { // it was passed with this party, which lives, or has failed
		p.arrived = true
		return nil
	}
	if dir == rec.Arrived {
		p.arrived = true
		return p.settle(ctx)
	}
	return nil
}
