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
	use   context.Context //nolint:containedctx // ends when the tenure is to serve no holds any more
	turn  int             // of the next hold

	attended bool // somebody watches the line
}

// tenure begins the tenure of nodes of ours that are what others wait for, unless getting there has failed with err.
// If the nodes give no token it leaves them and returns ErrEpoch.
func (c *Config) tenure(ground line.Ground, err error) (*tenure, error) {
	lasting, err := line.Begin(ground, err, ErrDeleted, c.asked)
	if err != nil {
		return nil, err
	}
	t := &tenure{Tenure: lasting, sess: ground.Session(), ctx: lasting.Context(), use: lasting.Use()}
	t.place, _ = ground.(*line.Place)
	if c.OnSuspend == EndHold {
		t.endSuspended()
	}
	return t, nil
}

// err returns nil while the tenure lasts, and why it has ended afterwards.
func (t *tenure) err() error { return t.Err() }

// stopped returns nil while the tenure can serve holds, and why it cannot afterwards: it has ended, or it lasts and
// is to end soon.
func (t *tenure) stopped() error { return t.Stopped() }

// exhausted reports whether there is no token left for another hold.
func (t *tenure) exhausted() bool { return t.turn >= line.Turns }

// hold gives out the next turn. Release is what the hold calls when it is unlocked, once.
func (t *tenure) hold(release func(*tenure) *line.Removal) *Hold {
	return &Hold{tenure: t, token: t.take(), release: release}
}

// take takes the token of the next turn.
func (t *tenure) take() Token {
	token := Token(t.Token(t.turn))
	t.turn++
	return token
}

// leave ends the tenure and its holds, and removes the node.
func (t *tenure) leave() *line.Removal { return t.Leave(ErrUnlocked) }
