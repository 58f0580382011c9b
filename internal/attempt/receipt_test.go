package attempt_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

const (
	dir     = "/receipts"
	timeout = 20 * time.Second
)

var faults = map[string]zktest.Fault{"cut before": zktest.CutBefore, "reply lost": zktest.DropReply}

// world is a server, and time, that belong to one test.
type world struct {
	*zktest.Server
	t      *testing.T
	client *zk.Client
	pool   *attempt.Pool
	made   []string // the receipts that the pool says it has created
}

func inWorld(t *testing.T, mode zk.Mode, test func(t *testing.T, w *world)) {
	t.Helper()
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
		w := &world{Server: srv, t: t}
		w.client = w.Client(t, timeout)
		next := 0
		w.pool = &attempt.Pool{
			Node: func() zk.Node {
				next++
				return zk.Node{Path: fmt.Sprintf("%s/%d", dir, next), Mode: mode}
			},
			MakeDir: func(ctx context.Context, sess *zk.Session, dir string) error {
				_, err := sess.Create(ctx, dir, nil, zk.Persistent)
				return err
			},
			Created: func(path string, _ int64) { w.made = append(w.made, path) },
		}
		test(t, w)
	}, zktest.SessionTimeouts(time.Second, time.Minute))
}

// session returns the live session.
func (w *world) session() *zk.Session {
	w.t.Helper()
	sess, err := w.client.Session(w.t.Context())
	must(w.t, err)
	return sess
}

// sent is the transactions that a test has sent with one receipt, without an answer. The i-th creates the node /i.
type sent struct {
	ops    [][]zk.Op
	stamps []string
}

// send sends n transactions one behind the other. The first ones are done, and the receipt does not learn of it: their
// replies are lost. The others are still on their way.
func (w *world) send(r *attempt.Receipt, n, done int) *sent {
	w.t.Helper()
	s := new(sent)
	for i := range n {
		op, stamp := r.Stamp(i)
		s.ops = append(s.ops, []zk.Op{op, zk.CreateOp(fmt.Sprintf("/%d", i), nil, zk.Persistent)})
		s.stamps = append(s.stamps, stamp)
		if i < done {
			_, err := w.session().Multi(w.t.Context(), s.ops[i]...)
			must(w.t, err)
		}
	}
	return s
}

// wantDone checks that Resolve finds as many transactions done as were, and that no other can be done afterwards.
func (w *world) wantDone(r *attempt.Receipt, s *sent, want int) {
	w.t.Helper()
	ctx := w.t.Context()
	var told int64
	done, err := r.Resolve(ctx, w.client.Session, s.stamps, func(ms int64) { told = ms })
	must(w.t, err)
	if done != want {
		w.t.Fatalf("got %d transactions done, want %d", done, want)
	}
	if want == 0 && told == 0 {
		w.t.Error("the server's time was not told")
	}
	for i := range s.ops {
		_, exists, err := w.session().Exists(ctx, fmt.Sprintf("/%d", i))
		must(w.t, err)
		if exists != (i < want) {
			w.t.Errorf("transaction %d: done %v, want %v", i, exists, i < want)
		}
	}
	w.Control(nil)
	for i, ops := range s.ops { // as if it had been under way all the time
		if _, err := w.session().Multi(ctx, ops...); !errors.Is(err, zk.BadVersion) {
			w.t.Errorf("transaction %d arrived late: got %v, want BadVersion", i, err)
		}
	}
	op, _ := r.Stamp(0)
	_, err = w.session().Multi(ctx, op)
	must(w.t, err) // the receipt goes on from there
}

func TestTransactionsWithLostRepliesAreResolved(t *testing.T) {
	t.Parallel()
	const n = 4
	for done := range n + 1 {
		t.Run(strconv.Itoa(done), func(t *testing.T) {
			inWorld(t, zk.Persistent, func(t *testing.T, w *world) {
				r, err := w.pool.Get(t.Context(), w.session())
				must(t, err)
				w.wantDone(r, w.send(r, n, done), done)
			})
		})
	}
}

// A transaction may arrive between the attempts to find out what was done.
func TestTransactionThatArrivesWhileOthersAreResolvedCounts(t *testing.T) {
	inWorld(t, zk.Persistent, func(t *testing.T, w *world) {
		r, err := w.pool.Get(t.Context(), w.session())
		must(t, err)
		s := w.send(r, 3, 1)
		arrived := 0
		done, err := r.Resolve(t.Context(), func(ctx context.Context) (*zk.Session, error) {
			if arrived++; arrived == 2 {
				_, err := w.session().Multi(ctx, s.ops[1]...)
				must(t, err)
			}
			return w.client.Session(ctx)
		}, s.stamps, func(int64) {})
		must(t, err)
		if done != 2 || arrived < 2 {
			t.Errorf("got %d transactions done after %d attempts, want 2", done, arrived)
		}
	})
}

func TestResolvingSurvivesTheLossOfItsOwnReplies(t *testing.T) {
	t.Parallel()
	for _, op := range []zktest.Op{zktest.OpMulti, zktest.OpSync, zktest.OpGetData} {
		for name, fault := range faults {
			for done := range 3 {
				t.Run(fmt.Sprintf("%v %s %d", op, name, done), func(t *testing.T) {
					inWorld(t, zk.Persistent, func(t *testing.T, w *world) {
						r, err := w.pool.Get(t.Context(), w.session())
						must(t, err)
						s := w.send(r, 2, done)
						failed := false
						w.Control(func(r zktest.Request) zktest.Fault {
							if r.Op != op || failed {
								return zktest.Pass
							}
							failed = true
							return fault
						})
						w.wantDone(r, s, done)
					})
				})
			}
		}
	}
}

func TestTransactionsAreResolvedUnderTheNextSession(t *testing.T) {
	inWorld(t, zk.Persistent, func(t *testing.T, w *world) {
		r, err := w.pool.Get(t.Context(), w.session())
		must(t, err)
		sess := w.session()
		s := w.send(r, 3, 2)
		w.ExpireSession(sess.ID())
		<-sess.Context().Done()
		w.wantDone(r, s, 2)
	})
}

func TestReceiptThatAnotherClientDeletesIsGone(t *testing.T) {
	inWorld(t, zk.Persistent, func(t *testing.T, w *world) {
		ctx := t.Context()
		r, err := w.pool.Get(ctx, w.session())
		must(t, err)
		s := w.send(r, 2, 1)
		must(t, w.session().Delete(ctx, r.Path, -1))
		_, err = r.Resolve(ctx, w.client.Session, s.stamps, func(int64) {})
		if !errors.Is(err, attempt.ErrGone) {
			t.Errorf("got %v, want ErrGone", err)
		}
	})
}

func TestPoolGivesAReceiptToOneCallerAtATime(t *testing.T) {
	inWorld(t, zk.Persistent, func(t *testing.T, w *world) {
		ctx, sess := t.Context(), w.session()
		a, err := w.pool.Get(ctx, sess)
		must(t, err)
		b, err := w.pool.Get(ctx, sess)
		must(t, err)
		if a == b || a.Path == b.Path {
			t.Fatalf("both callers got %s", a.Path)
		}
		w.pool.Put(a)
		w.pool.Put(nil)
		c, err := w.pool.Get(ctx, sess)
		must(t, err)
		if c != a {
			t.Errorf("got %s, want the idle receipt %s", c.Path, a.Path)
		}
		w.pool.Put(b)
		if idle := w.pool.Drain(); len(idle) != 1 || idle[0] != b {
			t.Errorf("got %v idle, want %s alone", idle, b.Path)
		}
		d, err := w.pool.Get(ctx, sess)
		must(t, err)
		if d == b {
			t.Error("a receipt was given out after Drain")
		}
	})
}

func TestReceiptOfAnEndedSessionIsNotUsed(t *testing.T) {
	inWorld(t, zk.Ephemeral, func(t *testing.T, w *world) {
		ctx, old := t.Context(), w.session()
		a, err := w.pool.Get(ctx, old)
		must(t, err)
		w.pool.Put(a)
		w.ExpireSession(old.ID())
		<-old.Context().Done()
		b, err := w.pool.Get(ctx, w.session())
		must(t, err)
		if a == b {
			t.Fatal("got a receipt that ended with its session")
		}
		w.send(b, 1, 1)
	})
}

// A lost reply to the creation leaves one receipt, and its version is known.
func TestReceiptWhoseCreationGotNoReplyIsUsed(t *testing.T) {
	t.Parallel()
	for name, fault := range faults {
		for _, op := range []zktest.Op{zktest.OpCreate, zktest.OpSetData} {
			t.Run(fmt.Sprintf("%v %s", op, name), func(t *testing.T) {
				inWorld(t, zk.Persistent, func(t *testing.T, w *world) {
					ctx := t.Context()
					_, err := w.session().Create(ctx, dir, nil, zk.Persistent)
					must(t, err)
					failed := map[zktest.Op]bool{}
					w.Control(func(r zktest.Request) zktest.Fault {
						switch {
						case failed[r.Op]:
							return zktest.Pass
						case r.Op == op:
							failed[op] = true
							return fault
						case r.Op == zktest.OpCreate: // so that the pool sets the receipt's data
							failed[r.Op] = true
							return zktest.DropReply
						}
						return zktest.Pass
					})
					r, err := w.pool.Get(ctx, w.session())
					must(t, err)
					w.Control(nil)
					w.send(r, 2, 2) // which fails if the receipt's version is wrong
					names, _, err := w.session().Children(ctx, dir)
					must(t, err)
					if len(names) != 1 || len(w.made) != 1 {
						t.Errorf("got the nodes %v, and was told of %v, want one", names, w.made)
					}
				})
			})
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
