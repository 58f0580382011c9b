package server

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/seed-a3166700/turnstile/internal/test/soak"
	"github.com/seed-a3166700/turnstile/internal/wire"
)

// acked is what the server has acknowledged, all of which must survive. A node that is missing here may exist or not.
type acked struct {
	nodes map[string][]byte // data of nodes whose last change was acknowledged; nil if that was a deletion
	loose map[string]bool   // nodes with a change that was sent and is not acknowledged yet
	owner map[string]int64  // sessions of ephemeral nodes
	live  map[int64][]byte  // sessions and their passwords
	zxid  int64             // the highest in a reply
}

func (a *acked) clone() *acked {
	return &acked{maps.Clone(a.nodes), maps.Clone(a.loose), maps.Clone(a.owner), maps.Clone(a.live), a.zxid}
}

// crashPoint is a disk after a crash, and what was acknowledged before.
type crashPoint struct {
	op   string
	disk *vfs.MemFS
	told *acked
}

// crashDisk records a crash point at every write and sync that reaches the disk.
type crashDisk struct {
	mem *vfs.MemFS
	rng *rand.Rand

	mu     sync.Mutex // guards the fields below
	told   *acked
	points []crashPoint
	limit  int
	seen   int
}

func (d *crashDisk) String() string { return "crash disk" }

func (d *crashDisk) MaybeError(op errorfs.Op) error {
	if op.Kind.ReadOrWrite() != errorfs.OpIsWrite {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.seen++
	// Later writes are recorded less and less often: there are many, mostly from writing tables and removing logs.
	if len(d.points) < d.limit && d.rng.IntN(1+d.seen/1000) == 0 {
		told := d.told.clone() // before cloning the disk, which must contain all of it
		cfg := vfs.CrashCloneCfg{UnsyncedDataPercent: []int{0, 50, 100}[d.rng.IntN(3)], RNG: d.rng}
		d.points = append(d.points, crashPoint{
			fmt.Sprintf("%d (%v of %s)", len(d.points), op.Kind, op.Path),
			d.mem.CrashClone(cfg), told,
		})
	}
	return nil
}

func (d *crashDisk) tell(f func(a *acked)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f(d.told)
}

// write sends a change of a node and records its acknowledgement.
func (d *crashDisk) write(c *rawClient, path string, data []byte, ephemeral bool, do func() error) error {
	d.tell(func(a *acked) { a.loose[path] = true })
	err := do()
	if err != nil {
		if _, refused := errors.AsType[codeError](err); !refused {
			return err
		}
	}
	d.tell(func(a *acked) {
		delete(a.loose, path)
		a.zxid = max(a.zxid, c.zxid)
		if err != nil {
			return
		}
		a.nodes[path] = data
		delete(a.owner, path)
		if ephemeral {
			a.owner[path] = c.session
		}
	})
	return nil
}

// work makes all kinds of writes, refused ones too, and closes the session at the end.
func (d *crashDisk) work(s *Server, id, rounds int) error {
	c, err := s.connect(wire.ConnectRequest{})
	if err != nil {
		return err
	}
	d.tell(func(a *acked) { a.live[c.session] = c.password })
	for i := range rounds {
		path := fmt.Sprintf("/w%d-%d", id, i)
		data := bytes.Repeat([]byte{byte(i)}, 1+i*i%3000)
		flags := int32(i % 2) // every second one is ephemeral
		steps := []func() error{
			func() error {
				return d.write(c, path, data, flags == 1,
					func() error { _, err := c.create(path, data, flags); return err })
			},
			func() error { // refused, but it uses a zxid
				return d.write(c, "/no/such", nil, false, func() error { return c.delete("/no/such") })
			},
		}
		switch i % 3 {
		case 0:
			steps = append(steps, func() error {
				return d.write(c, path, nil, false, func() error { return c.delete(path) })
			})
		case 1:
			changed := []byte(path)
			steps = append(steps, func() error {
				return d.write(c, path, changed, flags == 1, func() error { return c.set(path, changed) })
			})
		}
		for _, step := range steps {
			if err := step(); err != nil {
				return err
			}
		}
	}
	return d.leave(c)
}

// leave closes the session: after the request its nodes may be gone, after the reply they must be.
func (d *crashDisk) leave(c *rawClient) error {
	var mine []string
	d.tell(func(a *acked) {
		delete(a.live, c.session)
		for path, owner := range a.owner {
			if owner == c.session {
				mine = append(mine, path)
				a.loose[path] = true
			}
		}
	})
	if err := c.call(wire.OpCloseSession, &wire.Empty{}, nil); err != nil {
		return err
	}
	d.tell(func(a *acked) {
		for _, path := range mine {
			delete(a.loose, path)
			delete(a.owner, path)
			a.nodes[path] = nil
		}
		a.zxid = max(a.zxid, c.zxid)
	})
	return c.nc.Close()
}

// check starts a server on the disk after the crash and checks everything that was acknowledged.
func (p *crashPoint) check(t *testing.T) {
	t.Helper()
	s := serve(t, Config{Data: "data"}, disk{fs: p.disk})
	defer s.Close()
	if s.owner.zxid < p.told.zxid {
		t.Errorf("crash at %s: got zxid %d after the restart, want at least the answered %d", p.op, s.owner.zxid,
			p.told.zxid)
	}
	for session, password := range p.told.live {
		c := &rawClient{session: session, password: password, zxid: p.told.zxid}
		again, err := c.resume(s)
		if err != nil {
			t.Errorf("crash at %s: session %x: got %v", p.op, session, err)
			continue
		}
		_ = again.nc.Close()
	}
	c, err := s.connect(wire.ConnectRequest{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.nc.Close()
	for path, data := range p.told.nodes {
		if p.told.loose[path] {
			continue
		}
		got, stat, err := c.get(path)
		switch {
		case data == nil && !errors.Is(err, codeError(wire.NoNode)):
			t.Errorf("crash at %s: %s: got %v, want the acknowledged deletion", p.op, path, err)
		case data != nil && (err != nil || !bytes.Equal(got, data)):
			t.Errorf("crash at %s: %s: got %d bytes %v, want the %d acknowledged", p.op, path, len(got), err, len(data))
		case data != nil && stat.EphemeralOwner != p.told.owner[path]:
			t.Errorf("crash at %s: %s: got owner %x, want %x", p.op, path, stat.EphemeralOwner, p.told.owner[path])
		}
	}
}

// Promise: 10
func TestCrashAtAnyWriteLosesNothingAcknowledged(t *testing.T) {
	t.Parallel()
	limit, rounds := soak.Pick(60, 400), soak.Pick(40, 100)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	mem := vfs.NewCrashableMem()
	d := &crashDisk{
		mem: mem, rng: rand.New(rand.NewPCG(seed, 0)), limit: limit,
		told: &acked{make(map[string][]byte), make(map[string]bool), make(map[string]int64), make(map[int64][]byte), 0},
	}
	s := serve(t, Config{Data: "data"}, disk{fs: errorfs.Wrap(mem, d), memory: 64 << 10})
	var wg sync.WaitGroup
	for id := range 4 {
		wg.Go(func() {
			for day := range 3 {
				if err := d.work(s, 10*id+day, rounds); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if len(d.points) < limit/2 {
		t.Errorf("got %d crash points, want more for a meaningful test", len(d.points))
	}
	for i := range d.points {
		d.points[i].check(t)
	}
	t.Logf("%d crash points", len(d.points))
}
