package line

import "github.com/seed-a3166700/turnstile/zk"

// maxCrowd is how many seats a place remembers who stand behind it.
const maxCrowd = 64

// early is a watch on the seat that will most likely be the nearest ahead, asked for in one write with the creation of a place. It saves the
// list of the line, and a write after it, to whoever gives a lock up and asks for it again while others wait: the last who waits is the
// nearest ahead then, unless somebody has come meanwhile.
type early struct {
	seat        Seat
	watch       *zk.Future[zk.WatchedData]
	reconnected <-chan struct{} // closed when the connection has changed since
}

// last returns the last seat that stood in the line at p's last look, behind p. It reports false if there is none, or if somebody there does
// not block: who does not may become one who does, where they stand.
func (p *Place) last() (Seat, bool) {
	if p.ahead > 0 || p.line.width() > 1 {
		return Seat{}, false
	}
	last := p.seat
	for _, s := range p.crowd {
		if !p.line.Blocks(s) {
			return Seat{}, false
		}
		if Before(last, s) {
			last = s
		}
	}
	return last, last.Name != p.seat.Name
}

// watchEarly adds the watch on seat to the batch that creates p.
func (p *Place) watchEarly(b *zk.Batch, seat Seat) {
	_, reconnected := p.sess.State()
	p.early = &early{seat: seat, watch: b.GetW(join(p.line.Dir, seat.Name)), reconnected: reconnected}
}

// abandonEarly ends the early watch, if there is one that nobody uses.
func (p *Place) abandonEarly() {
	if e := p.early; e != nil {
		p.early = nil
		e.watch.Abandon()
	}
}
