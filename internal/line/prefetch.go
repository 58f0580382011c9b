package line

// Watches that are asked for together with the creation.

import (
	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/zk"
)

// maxSnapshot is how many contenders of a list a position remembers.
const maxSnapshot = 64

// A prefetch is a watch on the contender that will most likely be the nearest ahead, asked for in one write with the
// creation of a contender. It saves a list of the line, and a write after it, to a client that gives a lock up and asks
// for it again while others wait: the last waiter is the nearest ahead then, unless another has come meanwhile.
type prefetch struct {
	contender   Contender
	watch       *zk.Future[zk.WatchedData]
	reconnected <-chan struct{} // closed when the connection has changed since
}

// last returns the last contender that stood in the line, behind p, when p last listed it. It reports false if there is
// none, or if one there does not block: it may become one that does, and keep its number.
func (p *position) last() (Contender, bool) {
	if p.ahead > 0 || p.line.width() > 1 {
		return Contender{}, false
	}
	last := p.self
	for _, c := range p.snapshot {
		if !p.line.Blocks(c) {
			return Contender{}, false
		}
		if Before(last, c) {
			last = c
		}
	}
	return last, last.Name != p.self.Name
}

// prefetch adds the watch on c to the batch that creates p's nodes.
func (p *position) prefetch(b *zk.Batch, c Contender) {
	_, reconnected := p.own.sess.State()
	p.prefetched = &prefetch{contender: c, watch: b.GetW(attempt.Join(p.line.Dir, c.Name)), reconnected: reconnected}
}

// cancelPrefetch ends the prefetched watch, if there is one that is not used.
func (p *position) cancelPrefetch() {
	if f := p.prefetched; f != nil {
		p.prefetched = nil
		f.watch.Abandon()
	}
}
