package lock

import (
	"context"

	"github.com/seed-a3166700/turnstile/internal/line"
	"github.com/seed-a3166700/turnstile/zk"
)

// tenure is the time for which a node of ours is first in line. It serves holds, one after the other, each a turn.
type tenure struct {
	*line.Tenure
	place *line.Place
	sess  *zk.Session
	ctx   context.Context //nolint:containedctx // ends with the tenure
	turn  int             // of the next hold
}

// newTenure begins the tenure of a place that is first in line, unless standing in line has failed with err. If the node gives no token
// it leaves the place and returns ErrEpoch.
func newTenure(place *line.Place, err error) (*tenure, error) {
	if err != nil {
		return nil, err
	}
	if _, err := newToken(place.Stat().Czxid, 0); err != nil {
		place.Leave()
		return nil, err
	}
	t := &tenure{Tenure: line.NewTenure(place, ErrDeleted), place: place, sess: place.Session()}
	t.ctx = t.Context()
	return t, nil
}

// err returns nil while the tenure lasts, and why it has ended afterwards.
func (t *tenure) err() error { return t.Err() }

// exhausted reports whether there is no token left for another hold.
func (t *tenure) exhausted() bool { return t.turn >= 1<<line.TurnBits }

// hold gives out the next turn. Release is what the hold calls when it is unlocked, once.
func (t *tenure) hold(release func(*tenure) *line.Removal) *Hold {
	token, _ := newToken(t.place.Stat().Czxid, t.turn) // was checked when the tenure began
	t.turn++
	return &Hold{tenure: t, token: token, release: release}
}

// leave ends the tenure and its holds, and removes the node.
func (t *tenure) leave() *line.Removal { return t.Leave(ErrUnlocked) }
