package classic_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/queue/classic"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// open makes a queue of whatever kind.
func open[Q any](
	t *testing.T, w *world, with func(*zk.Client, string, classic.Config) (*Q, error), cfg classic.Config,
) *Q {
	t.Helper()
	q, err := with(w.Client(t, timeout), path, cfg)
	must(t, err)
	return q
}

func TestItemsAreNamedAsTheOriginalsNameThem(t *testing.T) {
	t.Parallel()
	body := []byte("hello")
	const framed = "00010001010000000568656c6c6f02"
	raw := hex.EncodeToString(body)
	rows := []struct {
		name string
		put  func(t *testing.T, w *world) error
		node string // below the queue's path
		data string // in hexadecimal
		dirs []string
	}{
		{"simple", func(t *testing.T, w *world) error {
			return open(t, w, classic.NewSimple, classic.Config{}).Offer(t.Context(), body)
		}, "/qn-0000000000", raw, nil},
		{"curator", func(t *testing.T, w *world) error {
			return open(t, w, classic.NewCurator, classic.Config{}).Put(t.Context(), body)
		}, "/queue-0000000000", framed, nil},
		{"several", func(t *testing.T, w *world) error {
			return open(t, w, classic.NewCurator, classic.Config{}).PutMulti(t.Context(), []byte("a"), nil)
		}, "/queue-0000000000", "000100010100000001610100000000" + "02", nil},
		{"none", func(t *testing.T, w *world) error {
			return open(t, w, classic.NewCurator, classic.Config{}).PutMulti(t.Context())
		}, "/queue-0000000000", "0001000102", nil},
		{"priority", func(t *testing.T, w *world) error {
			return open(t, w, classic.NewCuratorPriority, classic.Config{}).Put(t.Context(), 5, body)
		}, "/queue-1000000050000000000", framed, nil},
		{"negative priority", func(t *testing.T, w *world) error {
			return open(t, w, classic.NewCuratorPriority, classic.Config{}).Put(t.Context(), -1, body)
		}, "/queue-0FFFFFFFF0000000000", framed, nil},
		{"delay", func(t *testing.T, w *world) error {
			q := open(t, w, classic.NewCuratorDelay, classic.Config{})
			return q.Put(t.Context(), time.UnixMilli(1795000000000), body)
		}, "/queue-|1A1EE565E00|0000000000", framed, nil},
		{"early delay", func(t *testing.T, w *world) error {
			return open(t, w, classic.NewCuratorDelay, classic.Config{}).Put(t.Context(), time.UnixMilli(-5), body)
		}, "/queue-|00000000|0000000000", framed, nil},
		{"id", func(t *testing.T, w *world) error {
			return open(t, w, classic.NewCuratorID, classic.Config{}).Put(t.Context(), "a/b|c", body)
		}, "/queue-|a_b_c|0000000000", framed, nil},
		{"kazoo", func(t *testing.T, w *world) error {
			return open(t, w, classic.NewKazoo, classic.Config{}).Put(t.Context(), body, 7)
		}, "/entry-007-0000000000", raw, nil},
		{"kazoo locking", func(t *testing.T, w *world) error {
			return open(t, w, classic.NewKazooLocking, classic.Config{}).Put(t.Context(), body, 100)
		}, "/entries/entry-100-0000000000", raw, nil},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				must(t, row.put(t, w))
				data, stat, err := w.Session(t, timeout).Get(t.Context(), path+row.node)
				must(t, err)
				if got := hex.EncodeToString(data); got != row.data {
					t.Errorf("got %s, want %s", got, row.data)
				}
				if stat.EphemeralOwner != 0 {
					t.Error("the item goes with its producer's session")
				}
			})
		})
	}
}

// An empty container is collected. kazoo does not find that out, and ZooKeeper's own queue fails where two of its
// users do.
func TestDirectoryOfAnEmptyQueueStays(t *testing.T) {
	onAll(t, func(t *testing.T, w *world, k kind) {
		q := w.queue(k)
		fill(t, q, 1)
		wantBodies(t, drain(t, q), "body 0")
		time.Sleep(5 * time.Minute) // the server collects each minute
		if _, exists, err := w.Session(t, timeout).Exists(t.Context(), k.dir); err != nil || !exists {
			t.Errorf("got %t, %v, want it there", exists, err)
		}
	})
}

// Promise: 7
func TestItemsComeInTheOrderOfTheirKind(t *testing.T) {
	t.Parallel()
	collect := func(t *testing.T, take func(context.Context) (*classic.Item, error)) []string {
		t.Helper()
		var got []string
		for {
			item, err := take(t.Context())
			if errors.Is(err, classic.ErrEmpty) {
				return got
			}
			must(t, err)
			must(t, item.Done(t.Context()))
			got = append(got, string(item.Body()))
		}
	}
	t.Run("priority", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *world) {
			q := open(t, w, classic.NewCuratorPriority, classic.Config{})
			for _, p := range []int32{3, 0, -1, math.MaxInt32, 3, -2, math.MinInt32} {
				must(t, q.Put(t.Context(), p, fmt.Append(nil, p)))
			}
			body := classic.MarshalElements([]byte("put back by Curator"))
			_, err := w.Session(t, timeout).Create(t.Context(), path+"/queue-", body, zk.PersistentSequential)
			must(t, err)
			want := []string{"put back by Curator", "-2147483648", "-2", "-1", "0", "3", "3", "2147483647"}
			wantBodies(t, collect(t, q.TryTake), want...)
		})
	})
	t.Run("time", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *world) {
			q := open(t, w, classic.NewCuratorDelay, classic.Config{})
			now := time.Now()
			for _, d := range []int{3, 1, 2} {
				must(t, q.Put(t.Context(), now.Add(time.Duration(d)*time.Second), fmt.Append(nil, d)))
			}
			body := classic.MarshalElements([]byte("unreadable"))
			_, err := w.Session(t, timeout).Create(t.Context(), path+"/queue-|soon|", body, zk.PersistentSequential)
			must(t, err)
			wantBodies(t, collect(t, q.TryTake), "unreadable")
			time.Sleep(2 * time.Second)
			wantBodies(t, collect(t, q.TryTake), "1", "2")
			time.Sleep(time.Second)
			wantBodies(t, collect(t, q.TryTake), "3")
		})
	})
	t.Run("kazoo", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *world) {
			q := open(t, w, classic.NewKazoo, classic.Config{})
			for _, p := range []int{100, 20, 999, 0, 20} {
				must(t, q.Put(t.Context(), fmt.Append(nil, p), p))
			}
			wantBodies(t, collect(t, q.TryTake), "0", "20", "20", "100", "999")
		})
	})
}

// A list that was read once is good for many items, but not for those that come later and belong further ahead.
//
// Promise: 7
func TestSmallerPriorityOvertakesWhatWasListedBefore(t *testing.T) {
	t.Parallel()
	for _, lockPath := range []string{"", locks} {
		t.Run(lockPath, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				q := open(t, w, classic.NewCuratorPriority, classic.Config{LockPath: lockPath})
				for range 10 {
					must(t, q.Put(t.Context(), 5, []byte("ordinary")))
				}
				for i := range 5 {
					item, err := q.TryTake(t.Context())
					must(t, err)
					must(t, item.Done(t.Context()))
					if want := []string{"ordinary", "urgent"}[min(1, i)]; string(item.Body()) != want {
						t.Errorf("item %d: got %s, want %s", i, item.Body(), want)
					}
					must(t, q.Put(t.Context(), 1, []byte("urgent")))
				}
			})
		})
	}
}

// Promise: 7
func TestDueItemComesAtItsTimeAlsoIfOthersComeMeanwhile(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := open(t, w, classic.NewCuratorDelay, classic.Config{LockPath: locks})
		began := time.Now()
		must(t, q.Put(t.Context(), began.Add(10*time.Minute), []byte("late")))
		at := make(chan string, 2)
		go func() {
			for range 2 {
				item, err := q.Take(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				must(t, item.Done(t.Context()))
				at <- fmt.Sprintf("%s at %v", item.Body(), time.Since(began).Truncate(time.Millisecond))
			}
		}()
		time.Sleep(time.Minute)
		must(t, q.Put(t.Context(), began.Add(2*time.Minute), []byte("early")))
		wantBodies(t, []string{<-at, <-at}, "early at 2m0s", "late at 10m0s")
	})
}

// In nanoseconds the time until then would overflow, and the consumer would ask without a pause.
func TestConsumerWaitsForAnItemThatIsDueInCenturies(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := open(t, w, classic.NewCuratorDelay, classic.Config{LockPath: locks})
		must(t, q.Put(t.Context(), time.Now().AddDate(1000, 0, 0), []byte("late")))
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		asked := 0
		w.Control(func(r zktest.Request) zktest.Fault {
			if asked = r.Seq; asked > 1000 {
				cancel()
			}
			return zktest.Pass
		})
		_, err := q.Take(ctx)
		w.Control(nil)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v after %d requests, want DeadlineExceeded", err, asked)
		}
	})
}

// Promise: 7
func TestForeignNodesAreLeftAloneAndNotCounted(t *testing.T) {
	onAll(t, func(t *testing.T, w *world, k kind) {
		q := w.queue(k)
		must(t, makeAll(t, w, k.dir))
		foreign := []string{
			"00-first", "entry-", "entry-100", "entry-100-0000000001-x", "entry-100-12",
			"qn-", "qn-12", "qn-abcdefghij", "zzz",
		}
		sess := w.Session(t, timeout)
		for _, name := range foreign {
			_, err := sess.Create(t.Context(), k.dir+"/"+name, []byte("foreign"), zk.Persistent)
			must(t, err)
		}
		fill(t, q, 2)
		wantBodies(t, drain(t, q), "body 0", "body 1")
		wantBodies(t, w.names(k.dir), foreign...)
	})
}

// Promise: 7
func TestCorruptItemStaysAndIsToldOfOnce(t *testing.T) {
	t.Parallel()
	for _, lockPath := range []string{"", locks} {
		t.Run(lockPath, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				q := open(t, w, classic.NewCurator, classic.Config{LockPath: lockPath})
				must(t, makeAll(t, w, path))
				sess := w.Session(t, timeout)
				_, err := sess.Create(t.Context(), path+"/queue-", []byte("nonsense"), zk.PersistentSequential)
				must(t, err)
				must(t, q.Put(t.Context(), []byte("good")))
				_, err = q.Take(t.Context())
				corrupt, ok := errors.AsType[*classic.CorruptError](err)
				if !ok || !errors.Is(err, classic.ErrCorrupt) || string(corrupt.Data) != "nonsense" ||
					corrupt.Path != path+"/queue-0000000000" {
					t.Fatalf("got %v, want a CorruptError", err)
				}
				item, err := q.Take(t.Context())
				must(t, err)
				must(t, item.Done(t.Context()))
				if _, err := q.TryTake(t.Context()); !errors.Is(err, classic.ErrEmpty) {
					t.Errorf("got %v, want ErrEmpty", err)
				}
				wantBodies(t, w.names(path), "queue-0000000000")
				wantBodies(t, w.names(locks))
			})
		})
	}
}

// Promise: 7
func TestOrderGoesOnAcrossTheWrapOfTheSequence(t *testing.T) {
	onAll(t, func(t *testing.T, w *world, k kind) {
		q := w.queue(k)
		must(t, makeAll(t, w, k.dir))
		w.PresetSequence(k.dir, math.MaxInt32-2)
		want := fill(t, q, 6)
		wantBodies(t, drain(t, q), want...)
	})
}

func TestItemsThatDoNotFitAreRefusedBeforeTheyAreSent(t *testing.T) {
	onAll(t, func(t *testing.T, w *world, k kind) {
		q := w.queue(k)
		before := w.Traffic().Requests[zktest.OpMulti]
		if err := q.put(t.Context(), strings.Repeat("x", 1<<20)); !errors.Is(err, classic.ErrTooLarge) {
			t.Errorf("got %v, want ErrTooLarge", err)
		}
		if got := w.Traffic().Requests[zktest.OpMulti]; got != before {
			t.Errorf("%d requests were sent", got-before)
		}
	})
}

func TestBadConfigIsRefused(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		client := w.Client(t, timeout)
		rows := map[string]func() error{
			"path": func() error {
				_, err := classic.NewCurator(client, "queue", classic.Config{})
				return err
			},
			"root": func() error { _, err := classic.NewSimple(client, "/", classic.Config{}); return err },
			"lock path": func() error {
				_, err := classic.NewCurator(client, path, classic.Config{LockPath: "x"})
				return err
			},
			"same path": func() error {
				_, err := classic.NewCuratorID(client, path, classic.Config{LockPath: path})
				return err
			},
			"locks of none": func() error {
				_, err := classic.NewSimple(client, path, classic.Config{LockPath: locks})
				return err
			},
			"kazoo's locks": func() error {
				_, err := classic.NewKazooLocking(client, path, classic.Config{LockPath: locks})
				return err
			},
			"mode": func() error { _, err := classic.NewCurator(client, path, classic.Config{OnError: 7}); return err },
			"mode, no locks": func() error {
				_, err := classic.NewCurator(client, path, classic.Config{OnError: classic.Drop})
				return err
			},
			"packet": func() error {
				_, err := classic.NewKazoo(client, path, classic.Config{MaxPacket: 10})
				return err
			},
			"receipts": func() error {
				_, err := classic.NewKazoo(client, path, classic.Config{Receipts: path})
				return err
			},
			"priority": func() error {
				return open(t, w, classic.NewKazoo, classic.Config{}).Put(t.Context(), nil, 1000)
			},
			"negative priority": func() error {
				return open(t, w, classic.NewKazooLocking, classic.Config{}).PutAll(t.Context(), [][]byte{nil}, -1)
			},
		}
		for name, f := range rows {
			if err := f(); !errors.Is(err, zk.BadArguments) {
				t.Errorf("%s: got %v, want zk.BadArguments", name, err)
			}
		}
	})
}

func TestElementsSurviveTheirFraming(t *testing.T) {
	t.Parallel()
	for _, want := range [][][]byte{nil, {[]byte("a")}, {{}, []byte("b"), bytes.Repeat([]byte("c"), 1000)}} {
		got, err := classic.UnmarshalElements(append(classic.MarshalElements(want...), "what follows is ignored"...))
		if err != nil || !slices.EqualFunc(got, want, bytes.Equal) {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}
	for _, bad := range []string{
		"", "000100", "00010001", "0001000202", "0001000103", "000100010100000001",
		"0001000101ffffffff", "0001000101000000016100", "00010001010000",
	} {
		b, err := hex.DecodeString(bad)
		must(t, err)
		if got, err := classic.UnmarshalElements(b); err == nil {
			t.Errorf("%s: got %q, want an error", bad, got)
		}
	}
}

func FuzzUnmarshalElements(f *testing.F) {
	f.Add(classic.MarshalElements([]byte("hello"), nil))
	f.Add([]byte("\x00\x01\x00\x01\x01\x7f\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, data []byte) {
		elements, err := classic.UnmarshalElements(data)
		if err != nil {
			return
		}
		again := classic.MarshalElements(elements...)
		if !bytes.HasPrefix(data, again) {
			t.Errorf("%x became %x", data, again)
		}
	})
}

// kazoo#175: watches must not add up with the items that are taken.
//
// Promise: 7
func TestWatchesDoNotAddUp(t *testing.T) {
	onAll(t, func(t *testing.T, w *world, k kind) {
		q, writer := w.queue(k), w.queue(k)
		for range 5 {
			got := make(chan *taken, 1)
			go func() {
				if x, err := q.take(t.Context(), true); err == nil {
					got <- x
				}
			}()
			synctest.Wait()
			fill(t, writer, 1)
			must(t, (<-got).done(t.Context()))
		}
		w.NoWatches(t)
	})
}
