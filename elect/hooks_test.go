package elect_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/elect"
	"github.com/seed-a3166700/turnstile/internal/test/soak"
	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// A diary writes down what hooks are told, and checks that the calls come in the promised order.
type diary struct {
	t *testing.T

	mu     sync.Mutex // guards the fields below
	told   []string
	events []elect.Event
	last   map[uint64]string
	count  map[string]int
}

func newDiary(t *testing.T) *diary {
	t.Helper()
	return &diary{t: t, last: make(map[uint64]string), count: make(map[string]int)}
}

func (d *diary) write(what string, e elect.Event, after ...string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	led := what != "campaign" && what != "failed"
	if last := d.last[e.ID]; !slices.Contains(after, last) || e.Path != path || e.Took < 0 || led != (e.Token != 0) ||
		led != (e.Node != "") || (what == "failed" || what == "lost") && e.Err == nil {
		d.t.Errorf("%q after %q: %+v", what, last, e)
	}
	if what != "returned" {
		d.last[e.ID] = what
	}
	d.count[what]++
	d.told, d.events = append(d.told, what), append(d.events, e)
}

func (d *diary) config() elect.Config {
	return elect.Config{Hooks: elect.Hooks{
		Campaign: func(_ context.Context, e elect.Event) { d.write("campaign", e, "") },
		Elected:  func(_ context.Context, e elect.Event) { d.write("elected", e, "campaign") },
		Failed:   func(_ context.Context, e elect.Event) { d.write("failed", e, "campaign") },
		Resigned: func(e elect.Event) { d.write("resigned", e, "elected") },
		Lost:     func(e elect.Event) { d.write("lost", e, "elected") },
		Returned: func(e elect.Event) { d.write("returned", e, "elected", "resigned", "lost") },
	}}
}

// want checks what was told since the last time, and returns the last event.
func (d *diary) want(want ...string) elect.Event {
	d.t.Helper()
	synctest.Wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	if !slices.Equal(d.told, want) {
		d.t.Errorf("the hooks were told %v, want %v", d.told, want)
	}
	d.told = nil
	if len(d.events) == 0 {
		return elect.Event{}
	}
	return d.events[len(d.events)-1]
}

func TestHooksAreToldOfCampaignsAndLeaderships(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		d := newDiary(t)
		c := w.candidate("a", d.config())
		for _, stand := range []func(context.Context) (*elect.Leadership, error){c.Campaign, c.TryCampaign} {
			l, err := stand(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if e := d.want("campaign", "elected"); e.Node != l.Path() || e.Token != l.Token() || e.Took != 0 {
				t.Errorf("got %+v", e)
			}
			time.Sleep(3 * time.Second)
			resign(t, l)
			resign(t, l)
			if e := d.want("resigned"); e.Token != l.Token() || e.Took != 3*time.Second || e.Err != nil {
				t.Errorf("got %+v", e)
			}
		}

		l := win(t, c)
		if err := l.ResignWait(l.Context()); err != nil {
			t.Error(err)
		}
		d.want("campaign", "elected", "resigned")

		other := win(t, w.candidate("b", elect.Config{}))
		next := campaign(t.Context(), c)
		time.Sleep(5 * time.Second)
		d.want("campaign")
		resign(t, other)
		l = won(t, next)
		if e := d.want("elected"); e.Took != 5*time.Second {
			t.Errorf("got %v for a campaign of 5s", e.Took)
		}
		time.Sleep(2 * time.Second)
		w.ExpireSession(l.Session().ID())
		<-l.Context().Done()
		if e := d.want("lost"); !errors.Is(e.Err, zk.ErrExpired) || e.Token != l.Token() || e.Took >= 5*time.Second {
			t.Errorf("got %+v, want zk.ErrExpired", e)
		}
		_ = l.Resign() // was lost
		d.want()
	})
}

func TestRunTellsItsHooks(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		d := newDiary(t)
		c := w.candidate("a", d.config())
		terms := 0
		ctx, cancel := context.WithCancel(t.Context())
		err := c.Run(ctx, func(ctx context.Context, l *elect.Leadership) error {
			switch terms++; terms {
			case 1:
				w.ExpireSession(l.Session().ID())
			case 2:
				w.revoke(lock.RevokeOptions{Grace: time.Hour})
			case 3:
				cancel()
			}
			<-ctx.Done()
			return errors.New("ended")
		})
		if err == nil || terms != 3 {
			t.Errorf("got %v after %d terms", err, terms)
		}
		d.want("campaign", "elected", "lost", "returned", "campaign", "elected", "resigned", "returned",
			"campaign", "elected", "resigned")
		if e := d.events[6]; !errors.Is(e.Err, elect.ErrRevoked) {
			t.Errorf("got %v, want elect.ErrRevoked", e.Err)
		}
		if e := d.events[7]; e.Err == nil || e.Err.Error() != "ended" {
			t.Errorf("got %v, want the function's error", e.Err)
		}
		if err := c.Run(ctx, func(context.Context, *elect.Leadership) error { return nil }); err != nil {
			t.Error(err)
		}
		if e := d.want("campaign", "failed"); !errors.Is(e.Err, context.Canceled) {
			t.Errorf("got %v", e.Err)
		}
		func() {
			defer func() { _ = recover() }()
			_ = c.Run(t.Context(), func(context.Context, *elect.Leadership) error { panic("no") })
		}()
		d.want("campaign", "elected", "resigned")
	})
}

func TestEachCampaignThatFailsIsToldOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		d := newDiary(t)
		client := w.Client(t, 20*time.Second)
		c := candidate(t, client, "a", d.config())
		fails := func(stand func(context.Context) (*elect.Leadership, error), ctx context.Context, want error,
			took time.Duration,
		) {
			t.Helper()
			if _, err := stand(ctx); !errors.Is(err, want) {
				t.Errorf("got %v, want %v", err, want)
			}
			if e := d.want("campaign", "failed"); !errors.Is(e.Err, want) || e.Took != took {
				t.Errorf("got %+v, want %v after %v", e, want, took)
			}
		}
		other := win(t, w.candidate("b", elect.Config{}))
		fails(c.TryCampaign, t.Context(), elect.ErrLed, 0)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		fails(c.Campaign, ctx, context.DeadlineExceeded, time.Second)
		fails(c.TryCampaign, ctx, context.DeadlineExceeded, 0)
		resign(t, other)
		time.Sleep(time.Second)

		// The candidate leaves while the reply is under way, or it is lost and asked for again.
		w.Control(func(r zktest.Request) zktest.Fault {
			if r.Op == zktest.OpCreate || r.Op == zktest.OpMulti {
				return zktest.DelayReply(5 * time.Second)
			}
			return zktest.Pass
		})
		short, cancelShort := context.WithTimeout(t.Context(), time.Second)
		defer cancelShort()
		fails(c.Campaign, short, context.DeadlineExceeded, time.Second)
		w.Control(nil)
		time.Sleep(time.Minute)
		dropped := 0
		w.Control(func(r zktest.Request) zktest.Fault {
			if dropped++; dropped < 3 {
				return zktest.DropReply
			}
			return zktest.Pass
		})
		resign(t, win(t, c))
		w.Control(nil)
		d.want("campaign", "elected", "resigned")
		time.Sleep(time.Minute)

		w.Control(func(r zktest.Request) zktest.Fault {
			if r.Op == zktest.OpCreate || r.Op == zktest.OpMulti {
				return zktest.Answer(zk.NoAuth)
			}
			return zktest.Pass
		})
		fails(c.Campaign, t.Context(), zk.NoAuth, 0)
		w.Control(nil)
		_ = client.Close()
		fails(c.Campaign, t.Context(), zk.ErrClosed, 0)
	})
}

// Whatever goes wrong, what begins ends: gauges that add and subtract return to zero.
func TestHooksBalanceUnderRandomFaults(t *testing.T) {
	t.Parallel()
	for range soak.Pick(2, 20) {
		t.Run("", func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) { balances(t, w, rand.Uint64()) })
		})
	}
}

func balances(t *testing.T, w *world, seed uint64) {
	t.Helper()
	t.Logf("seed %d", seed)
	random, dice := rand.New(rand.NewPCG(seed, 0)), rand.New(rand.NewPCG(seed, 1))
	faults := []zktest.Fault{
		zktest.Refuse, zktest.CutBefore, zktest.DropReply, zktest.CutAfter, zktest.Mute, zktest.DelayReply(time.Second),
	}
	w.Control(func(zktest.Request) zktest.Fault {
		if i := dice.IntN(100); i < len(faults) {
			return faults[i]
		}
		return zktest.Pass
	})
	d := newDiary(t)
	ctx, calm := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for range 4 {
		c := candidate(t, w.Client(t, time.Duration(2+random.IntN(8))*time.Second), "", d.config())
		for range 2 {
			taste := rand.New(rand.NewPCG(seed, random.Uint64()))
			wg.Go(func() {
				for ctx.Err() == nil {
					inside, cancel := context.WithTimeout(ctx, time.Duration(taste.IntN(4000))*time.Millisecond)
					pause := time.Duration(1+taste.IntN(3000)) * time.Millisecond
					stand := c.Campaign
					switch taste.IntN(4) {
					case 0:
						stand = c.TryCampaign
					case 1:
						stand = func(ctx context.Context) (*elect.Leadership, error) {
							return nil, c.Run(ctx, func(context.Context, *elect.Leadership) error {
								time.Sleep(pause)
								return nil
							})
						}
					}
					l, err := stand(inside)
					time.Sleep(pause)
					cancel()
					if err == nil && l != nil {
						_ = l.Resign() // it may have been lost
					}
				}
			})
		}
	}
	for range 30 {
		time.Sleep(time.Duration(random.IntN(3000)) * time.Millisecond)
		ids := w.Sessions()
		if len(ids) == 0 {
			continue
		}
		victim := ids[random.IntN(len(ids))]
		switch random.IntN(5) {
		case 0:
			w.Drop(victim)
		case 1:
			w.ExpireSession(victim)
		case 2:
			w.HalfOpen(victim)
		case 3:
			w.Cut(victim)
		default:
			w.Heal()
		}
	}
	w.Control(nil)
	w.Heal()
	calm()
	wg.Wait()
	time.Sleep(time.Minute)
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, last := range d.last {
		if last == "campaign" || last == "elected" {
			t.Errorf("the last that was told of a campaign is %q", last)
		}
	}
	n := d.count
	if n["campaign"] != len(d.last) || n["elected"]+n["failed"] != len(d.last) ||
		n["resigned"]+n["lost"] != n["elected"] || n["elected"] == 0 || n["failed"] == 0 {
		t.Errorf("told %v of %d campaigns", n, len(d.last))
	}
}
