package counter

// Sequence.

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/seed-a3166700/turnstile/zk"
)

// Sequence gives out numbers that no other call of any process gets: ids. It claims them in blocks, by adding to a
// counter, so that most calls of Next need no server. Its methods may be called from several goroutines at once.
//
// The ids of one Sequence increase. Those of several processes do not increase together: each has its own blocks. A
// process that ends loses the ids that it has claimed and not given out. An id is a value that an Add of 1 could have
// returned, so Counters, and Curator's DistributedAtomicLong and CachedAtomicLong by their postValue, may take ids from
// the same node. The first one of a new node is 1.
type Sequence struct {
	counter *Counter
	block   int64

	mu      sync.Mutex    // guards what follows
	spans   []span        // claimed, in their order
	left    int64         // how many ids are in them
	low     int64         // with less of them left, more are claimed ahead
	claim   *claim        // under way, or nil
	blocks  int64         // how many the next claim is of
	claimed time.Time     // when the last claim began
	took    time.Duration // how long it took
}

// span is n ids from next on.
type span struct{ next, n int64 }

// claim is a claim of ids that is under way.
type claim struct {
	done chan struct{} // closed at its end
	err  error
}

const (
	defaultBlock = 1000
	// maxBlocks bounds a claim, and so the ids that are lost with a process: two claims at most.
	maxBlocks = 1 << 12
	// A claim should last so many times as long as the next one takes. If it lasts less than the first, the next claim
	// is twice as large; if it lasts longer than the second, half as large.
	lastsLeast, lastsMost = 16, 256
)

// NewSequence returns the sequence at path. It does not contact the server: a node that is missing counts as 0. It
// returns an error if the path or the configuration is invalid.
func NewSequence(client *zk.Client, path string, config SequenceConfig) (*Sequence, error) {
	if config.Block < 0 {
		return nil, fmt.Errorf("counter: %w: Block must not be negative: %d", zk.BadArguments, config.Block)
	}
	c, err := New(client, path, Config{Layout: config.Layout, ACL: config.ACL, AnyACL: config.AnyACL})
	if err != nil {
		return nil, err
	}
	s := &Sequence{counter: c, block: int64(config.Block), blocks: 1}
	if s.block == 0 {
		s.block = defaultBlock
	}
	return s, nil
}

// Close is Counter.Close. It first waits for ids that are being claimed ahead, because their claim has a receipt. Ids
// that were claimed and not given out stay at hand.
func (s *Sequence) Close(ctx context.Context) error {
	s.mu.Lock()
	c := s.claim
	s.mu.Unlock()
	if c != nil {
		select {
		case <-c.done:
		case <-ctx.Done():
			return s.counter.reg.failed("remove the receipts of", context.Cause(ctx))
		}
	}
	return s.counter.Close(ctx)
}

// Path returns the path of the sequence's node.
func (s *Sequence) Path() string { return s.counter.Path() }

// Next returns an id that no other call gets. As a rule it is at hand, and Next does not look at ctx. Otherwise it
// waits until ids are claimed or ctx ends. It returns ErrOverflow once the last id has been given out. Its other
// errors are those of Counter.Add. If it returns one, no id is given out twice for that; some may be lost.
func (s *Sequence) Next(ctx context.Context) (int64, error) {
	for {
		s.mu.Lock()
		if len(s.spans) > 0 {
			id := s.pop(ctx)
			s.mu.Unlock()
			return id, nil
		}
		c := s.claim
		if c == nil {
			if err := ctx.Err(); err != nil {
				s.mu.Unlock()
				return 0, s.counter.reg.failed("claim ids of", context.Cause(ctx))
			}
			c = s.more(ctx)
		}
		s.mu.Unlock()
		select {
		case <-c.done:
		case <-ctx.Done():
			return 0, s.counter.reg.failed("claim ids of", context.Cause(ctx))
		}
		if c.err != nil {
			return 0, c.err
		}
	}
}

// pop returns the first id at hand, and claims more if few are left. The caller holds mu.
func (s *Sequence) pop(ctx context.Context) int64 {
	first := &s.spans[0]
	id := first.next
	first.next++
	if first.n--; first.n == 0 {
		s.spans = s.spans[1:]
	}
	if s.left--; s.left < s.low && s.claim == nil {
		s.more(ctx)
	}
	return id
}

// more begins to claim ids. The caller holds mu.
func (s *Sequence) more(ctx context.Context) *claim {
	if lasted := time.Since(s.claimed); !s.claimed.IsZero() {
		switch {
		case lasted < lastsLeast*s.took:
			s.blocks = min(2*s.blocks, maxBlocks)
		case lasted > lastsMost*s.took:
			s.blocks = max(s.blocks/2, 1)
		}
	}
	c := &claim{done: make(chan struct{})}
	s.claim, s.claimed = c, time.Now()
	go s.run(context.WithoutCancel(ctx), c, s.blocks) // others get the ids if the caller leaves
	return c
}

// run claims ids. It ends, at the latest, with the client.
func (s *Sequence) run(ctx context.Context, c *claim, blocks int64) {
	n := blocks * s.block
	if n/blocks != s.block || s.block > math.MaxInt64/maxBlocks {
		n = s.block
	}
	limit := s.counter.layout.largest()
	end, added, err := s.counter.AddUpTo(ctx, n, limit)
	for err == nil && !added { // the last ids, as far as other claims leave any
		if n = limit - end; n == 0 {
			err = s.counter.reg.failed("claim ids of", ErrOverflow)
			break
		}
		end, added, err = s.counter.AddUpTo(ctx, n, limit)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.claim, s.took = nil, time.Since(s.claimed)
	if c.err = err; err == nil {
		s.spans = append(s.spans, span{end - n + 1, n})
		s.left += n
		s.low = n / 2
	} else if errors.Is(err, ErrOverflow) {
		s.low = 0 // no more ahead
	}
	close(c.done)
}
