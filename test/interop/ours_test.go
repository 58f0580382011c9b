package interop_test

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/seed-a3166700/turnstile/elect"
	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zk"
)

// work is the program of our worker processes.
func work(args []string) error {
	if len(args) != 8 {
		return errors.New("want SERVERS REFEREE PARTY PATH KIND SESSION_MS CONTENDERS PERMITS")
	}
	session, err := strconv.Atoi(args[5])
	if err != nil {
		return err
	}
	contenders, err := strconv.Atoi(args[6])
	if err != nil {
		return err
	}
	permits, err := strconv.Atoi(args[7])
	if err != nil {
		return err
	}
	ctx := context.Background()
	servers, referee, party, path, kind := args[0], args[1], args[2], args[3], args[4]
	// The contenders share a client, as those of one program do, and so pass a mutex on in memory.
	client, err := zk.Open(ctx, zk.Config{Servers: servers, Timeout: time.Duration(session) * time.Millisecond})
	if err != nil {
		return err
	}
	defer client.Close()
	turn, err := ourTurn(client, path, kind, permits)
	if err != nil {
		return err
	}
	ends := make(chan error, contenders)
	for range contenders {
		go func() { ends <- serve(ctx, referee, party, turn) }()
	}
	for range contenders {
		err = errors.Join(err, <-ends)
	}
	return err
}

// A turn uses the resource once, under a lock. It reports whether to finish.
type turn func(context.Context, *resource) (bool, error)

// ourTurn returns the turn of one client's contenders.
func ourTurn(client *zk.Client, path, kind string, permits int) (turn, error) {
	kind, option, _ := strings.Cut(kind, ":")
	recipe, layout, _ := strings.Cut(kind, "-") // "mutex-curator"
	cfg := lock.Config{
		Label:   "interop",
		Layout:  map[string]lock.Layout{"curator": lock.Curator, "kazoo": lock.Kazoo, "both": lock.Both}[layout],
		Handoff: lock.Handoff{Count: 2}, // few, so that the lock often goes to the other side
	}
	switch recipe {
	case "mutex":
		cfg.Retain = 5 * time.Millisecond // keep the lock for a moment if there are no other contenders
		m, err := lock.NewMutex(client, path, cfg)
		return func(ctx context.Context, d *resource) (bool, error) { return held(ctx, d, m.Lock, 1) }, err
	case "rwlock":
		rw := lock.RWConfig{Label: cfg.Label, Layout: cfg.Layout, Handoff: cfg.Handoff}
		m, err := lock.NewRWMutex(client, path, rw)
		return func(ctx context.Context, d *resource) (bool, error) {
			if rand.IntN(10) < 7 && option != "write" {
				return held(ctx, d, m.RLock, 0)
			}
			return held(ctx, d, m.Lock, 1)
		}, err
	case "semaphore":
		limit := lock.AgreedLimit(permits)
		if layout == "stored" || layout == "kazoo" {
			limit = lock.StoredLimit(permits)
		}
		sc := lock.SemaphoreConfig{Label: cfg.Label, Layout: cfg.Layout}
		s, err := lock.NewSemaphore(client, path, limit, sc)
		fixed := 0
		if option != "" {
			if fixed, err = strconv.Atoi(option); err != nil {
				return nil, err
			}
		}
		return func(ctx context.Context, d *resource) (bool, error) {
			n := cmp.Or(fixed, 1+rand.IntN(2))
			return held(ctx, d, func(ctx context.Context) (*lock.Hold, error) { return s.Acquire(ctx, n) }, n)
		}, err
	case "elect":
		layouts := map[string]elect.Layout{
			"latch": elect.LeaderLatch, "selector": elect.LeaderSelector,
			"kazoo": elect.KazooElection, "both": elect.Both, "support": elect.LeaderElectionSupport,
		}
		cfg := elect.Config{Layout: layouts[layout]}
		if layout == "both" {
			cfg.Retry = elect.Exponential(10*time.Millisecond, time.Second).Within(time.Minute)
		}
		c, err := elect.NewCandidate(client, path, "ours", cfg)
		return elected(c), err
	default:
		return nil, fmt.Errorf("unknown kind %q", kind)
	}
}

// elected is a turn as the leader.
func elected(c *elect.Candidate) turn {
	return func(ctx context.Context, d *resource) (end bool, err error) {
		err = c.Run(ctx, func(context.Context, *elect.Leadership) error {
			end, err = d.use(1)
			return err
		})
		return end, err
	}
}

// held uses the resource under what acquire returns.
func held(
	ctx context.Context, d *resource, acquire func(context.Context) (*lock.Hold, error), weight int,
) (bool, error) {
	hold, err := acquire(ctx)
	if err != nil {
		return false, err
	}
	end, err := d.use(weight)
	return end, errors.Join(err, hold.Unlock())
}

// serve takes turns until the referee dismisses it.
func serve(ctx context.Context, referee, party string, turn turn) error {
	d, err := openResource(ctx, referee, party)
	if err != nil {
		return err
	}
	defer d.conn.Close()
	for {
		if end, err := turn(ctx, d); end || err != nil {
			return err
		}
	}
}

// A resource is a contender's connection to the referee, which stands for what the lock protects.
type resource struct {
	conn    net.Conn
	answers *bufio.Reader
}

func openResource(ctx context.Context, referee, party string) (*resource, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", referee)
	if err != nil {
		return nil, err
	}
	if _, err := fmt.Fprintln(conn, "hello", party); err != nil {
		return nil, err
	}
	return &resource{conn, bufio.NewReader(conn)}, nil
}

// use enters and leaves, and reports whether to finish.
func (d *resource) use(weight int) (bool, error) {
	if _, err := d.ask("enter " + strconv.Itoa(weight)); err != nil {
		return false, err
	}
	answer, err := d.ask("leave")
	return answer == "bye", err
}

func (d *resource) ask(line string) (string, error) {
	if _, err := fmt.Fprintln(d.conn, line); err != nil {
		return "", err
	}
	answer, err := d.answers.ReadString('\n')
	return strings.TrimSpace(answer), err
}
