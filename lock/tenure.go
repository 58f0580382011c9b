package lock

import (
	"context"

	"github.com/seed-a3166700/turnstile/internal/line"
	"github.com/seed-a3166700/turnstile/zk"
)

// tenure is the time for which a node of ours is first in line. It serves holds, one after the other, each a turn.
type tenure struct {
	*line.Tenure
	place *line.Place // that it began with; nil if it has no place in a line
	sess  *zk.Session
	ctx   context.Context //nolint:containedctx // ends with the tenure
	czxid int64           // of the tokens
	turn  int             // of the next hold
}

// newTenure begins the tenure of a place that is first in line. It returns ErrEpoch if the node gives no token.
func newTenure(place *line.Place) (*tenure, error) {
	t, err := tenureOn(place)
	if err == nil {
		t.place = place
	}
	return t, err
}

// tenureOn begins a tenure on whatever nodes of ours are what others wait for.
func tenureOn(ground line.Ground) (*tenure, error) {
	czxid := ground.Stat().Czxid
	if _, err := newToken(czxid, 0); err != nil {
		return nil, err
	}
	t := &tenure{Tenure: line.NewTenure(ground, ErrDeleted), sess: ground.Session(), czxid: czxid}
	t.ctx = t.Context()
	return t, nil
}

// err returns nil while the tenure lasts, and why it has ended afterwards.
func (t *tenure) err() error { return t.Err() }

// exhausted reports whether there is no token left for another hold.
func (t *tenure) exhausted() bool { return t.turn >= 1<<line.TurnBits }

// hold gives out the next turn. Release is what the hold calls when it is unlocked, once.
func (t *tenure) hold(release func(*tenure) *line.Removal) *Hold {
	return &Hold{tenure: t, token: t.take(), release: release}
}

// take takes the token of the next turn.
func (t *tenure) take() Token {
	token, _ := newToken(t.czxid, t.turn) // was checked when the tenure began
	t.turn++
	return token
}

// leave ends the tenure and its holds, and removes the node.
func (t *tenure) leave() *line.Removal { return t.Leave(ErrUnlocked) }
