package doctor_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/internal/doctor"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

func off(_ context.Context, _, word string, _ int64) (string, error) {
	return "", errors.New(word + " is not executed because it is not in the whitelist")
}

func lookup(context.Context, string) ([]string, error) { return nil, nil }

// reads are the requests that change nothing.
var reads = map[zktest.Op]bool{
	zktest.OpConnect: true, zktest.OpPing: true, zktest.OpSync: true, zktest.OpExists: true, zktest.OpGetData: true,
	zktest.OpGetChildren: true, zktest.OpGetACL: true, zktest.OpCloseSession: true,
}

// Nothing is written unless it is asked for; then the node is gone at the end, and so it is if the reply to its
// creation is lost.
func TestOnlyWriteWrites(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
		for _, c := range []struct {
			write, lost bool
			want        int64 // writes
			unknown     bool  // latency and clocks
		}{{false, false, 0, true}, {true, false, 21, false}, {true, true, 1, true}} {
			client := srv.Client(t, 20*time.Second)
			var writes atomic.Int64
			srv.Control(func(r zktest.Request) zktest.Fault {
				if !reads[r.Op] {
					writes.Add(1)
					if c.lost && r.Op == zktest.OpCreate {
						return zktest.DropReply
					}
				}
				return zktest.Pass
			})
			report, err := doctor.Examine(t.Context(), client, doctor.Config{
				Word: off, Lookup: lookup, Write: c.write, Asked: 20 * time.Second,
			})
			if err != nil {
				t.Fatal(err)
			}
			if err := client.Close(); err != nil {
				t.Fatal(err)
			}
			srv.Control(nil)
			if got := writes.Load(); got != c.want {
				t.Errorf("%+v: %d writes", c, got)
			}
			unknown := 0
			for _, f := range report.Findings {
				if (f.Check == "latency" || f.Check == "clocks") && f.Unknown {
					unknown++
				}
			}
			if (unknown == 2) != c.unknown {
				t.Errorf("%+v: %+v", c, report.Findings)
			}
			names, _, err := srv.Session(t, 20*time.Second).Children(t.Context(), "/")
			if err != nil || len(names) != 1 {
				t.Errorf("%+v: %q are left, %v", c, names, err)
			}
		}
	})
}

// Where the client may not create a node, what needs one is unknown.
func TestProbeThatIsRefused(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
		sess := srv.Session(t, 20*time.Second)
		if _, err := sess.SetACL(t.Context(), "/", zk.ReadOnlyACL(), -1); err != nil {
			t.Fatal(err)
		}
		report, err := doctor.Examine(t.Context(), srv.Client(t, 20*time.Second), doctor.Config{
			Word: off, Lookup: lookup, Write: true, Asked: 20 * time.Second,
		})
		if err != nil {
			t.Fatal(err)
		}
		unknown := 0
		for _, f := range report.Findings {
			if f.Unknown && len(f.Evidence) > 0 && strings.Contains(f.Evidence[0], "could not be made") {
				unknown++
			}
		}
		if unknown != 2 {
			t.Errorf("%+v", report.Findings)
		}
	})
}

// An examination that is cancelled says why.
func TestExaminationEndsWithItsContext(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
		ctx, cancel := context.WithCancelCause(t.Context())
		why := errors.New("enough")
		client := srv.Client(t, 20*time.Second)
		_, err := doctor.Examine(ctx, client, doctor.Config{
			Asked: 20 * time.Second, Lookup: lookup,
			Word: func(ctx context.Context, server, word string, most int64) (string, error) {
				cancel(why)
				return off(ctx, server, word, most)
			},
		})
		if !errors.Is(err, why) {
			t.Error(err)
		}
	})
}
