package survey_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/internal/survey"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

const guid = "_c_0f8fad5b-d9cb-469f-a165-70867728950e"

// tree makes a node of each kind, and returns what a survey of it shows.
func tree(t *testing.T, srv *zktest.Server) (want []string) {
	t.Helper()
	sess := srv.Session(t, 20*time.Second)
	lockNode, latch := guid+"-lock-", guid+"-latch-"
	for _, n := range []struct {
		path, data string
		mode       zk.Mode
	}{
		{"/config/a/b", "text", zk.Persistent},
		{"/jobs/report/" + lockNode, "10.0.0.1", zk.EphemeralSequential},
		{"/jobs/report/" + lockNode, "10.0.0.2", zk.EphemeralSequential},
		{"/jobs/report/below/0f8fad5bd9cb469fa16570867728950e__lock__", "python", zk.EphemeralSequential},
		{"/jobs/report-__revoked__", "[]", zk.Persistent},
		{"/leader/" + latch, "one", zk.EphemeralSequential},
		{"/members/m1", "10.0.0.3", zk.Ephemeral},
		{"/offers/n_", "two", zk.EphemeralSequential},
		{"/pool/leases/" + guid + "-lease-", "", zk.EphemeralSequential},
		{"/pool/locks/" + lockNode, "", zk.EphemeralSequential},
		{"/sem/6f9619ff8b86d011b42d00c04fc964ff", "host1", zk.Ephemeral},
		{"/sem/report/" + lockNode, "10.0.0.5", zk.EphemeralSequential},
		{"/sem-__lock__/1f8fad5bd9cb469fa16570867728950e__lock__", "host2", zk.EphemeralSequential},
		{"/sums/6f9619ff8b86d011b42d00c04fc964ff", "no permit", zk.Persistent},
		{"/orders/order-lock-1764500000/" + lockNode, "10.0.0.4", zk.EphemeralSequential}, // the lock of an order
		{"/prints/queue-1764500000/" + lockNode, "10.0.0.6", zk.EphemeralSequential},      // the lock of a printer
		{"/tasks/queue-", "item", zk.PersistentSequential},
	} {
		node := zk.Node{Path: n.path, Data: []byte(n.data), Mode: n.mode}
		if _, err := sess.CreateAll(t.Context(), node, zk.Parents{}); err != nil {
			t.Fatal(n.path, err)
		}
	}
	return []string{
		"/jobs/report lock curator 1 1",
		"/jobs/report/below lock kazoo 1 0",
		"/leader election latch 1 0",
		"/offers election-support support 1 0",
		"/orders/order-lock-1764500000 lock curator 1 0",
		"/pool permits curator 1 1",
		"/prints/queue-1764500000 lock curator 1 0",
		"/sem kazoo-semaphore kazoo 1 1",
		"/sem/report lock curator 1 0",
		"/tasks classic-queue  0 0",
	}
}

func shown(s *survey.Snapshot) []string {
	var list []string
	for _, e := range s.Entries {
		list = append(list, fmt.Sprintf("%s %s %s %d %d", e.Path, e.Kind, e.Layout, e.Holding, e.Waiting))
	}
	return list
}

func wantShown(t *testing.T, s *survey.Snapshot, want []string) {
	t.Helper()
	if got := shown(s); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestEveryKindIsRecognised(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
		want := tree(t, srv)
		client := srv.Client(t, 20*time.Second)
		s, err := survey.Read(t.Context(), client, survey.Config{})
		if err != nil || s.Partial != "" || s.Denied.Count+s.TooLarge.Count != 0 {
			t.Fatal(s, err)
		}
		wantShown(t, s, want)
		if s, err = survey.Read(t.Context(), client, survey.Config{Root: "/jobs"}); err != nil {
			t.Fatal(err)
		}
		wantShown(t, s, want[:2])
		if s, err = survey.Read(t.Context(), client, survey.Config{Root: "/nowhere"}); err != nil || s.Listed != 0 {
			t.Fatal(s, err)
		}
		if _, err = survey.Read(t.Context(), client, survey.Config{Root: "nowhere"}); err == nil {
			t.Error("a path without a slash was taken")
		}
	})
}

func TestLayoutIsThatOfAllContenders(t *testing.T) {
	t.Parallel()
	curators, kazoos := guid+"-lock-0000000001", "0123456789abcdef0123456789abcdef__lock__0000000002"
	for want, children := range map[string][]string{
		"":        {"child"},
		"curator": {curators},
		"kazoo":   {kazoos},
		"both":    {curators, guid + "-__lock__0000000003"},
		"mixed":   {curators, kazoos},
	} {
		if got := survey.Layout(survey.Lock, children); got != want {
			t.Errorf("%q: got %q, want %q", children, got, want)
		}
	}
}

// A lock at the root is shown, and what is too long for a path of a recipe is counted.
func TestNoPathEndsAReading(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
		want := tree(t, srv)
		sess := srv.Session(t, 20*time.Second)
		long := "/" + strings.Repeat("long", 2500)
		for _, path := range []string{"/" + guid + "-lock-", "/a" + long, "/b" + long + "/" + guid + "-lock-"} {
			node := zk.Node{Path: path, Data: []byte("data"), Mode: zk.EphemeralSequential}
			if _, err := sess.CreateAll(t.Context(), node, zk.Parents{}); err != nil {
				t.Fatal(err)
			}
		}
		s, err := survey.Read(t.Context(), srv.Client(t, 20*time.Second), survey.Config{})
		if err != nil {
			t.Fatal(err)
		}
		wantShown(t, s, append([]string{"/ lock curator 1 0"}, want...))
		if s.TooLarge.Count != 1 || s.TooLarge.Paths[0] != "/b"+long {
			t.Errorf("too large: %d", s.TooLarge.Count)
		}
	})
}

// A child that is named like a semaphore's directory does not hide the locks beside it, nor its own.
func TestDirectoryNamedLeasesHidesNoLock(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
		sess := srv.Session(t, 20*time.Second)
		held := guid + "-lock-"
		for _, path := range []string{
			"/jobs/leases/" + held, "/jobs/nightly/" + held, "/pool/leases/" + guid + "-lease-", "/pool/below/" + held,
			"/rent/leases/" + held,
		} {
			node := zk.Node{Path: path, Mode: zk.EphemeralSequential}
			if _, err := sess.CreateAll(t.Context(), node, zk.Parents{}); err != nil {
				t.Fatal(path, err)
			}
		}
		s, err := survey.Read(t.Context(), srv.Client(t, 20*time.Second), survey.Config{})
		if err != nil {
			t.Fatal(err)
		}
		wantShown(t, s, []string{
			"/jobs/leases lock curator 1 0", "/jobs/nightly lock curator 1 0", "/pool permits curator 1 0",
			"/pool/below lock curator 1 0", "/rent permits curator 0 0", "/rent/leases lock curator 1 0",
		})
	})
}

func TestNamesThatEndInAMarkerByChanceAreNoLocks(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]survey.Kind{
		"block-0000000001": survey.Other, "clock-0000000001": survey.Other, "patch-1-latch-0000000001": survey.Election,
		"lock-0000000001": survey.Lock, "app-lock-0000000001": survey.Lock, "0f8f__lock__0000000001": survey.Lock,
	} {
		if got := survey.Recognise([]string{name}, nil); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}

// Names that begin as those of a queue's items do are not items, unless they end in a number.
func TestLocksNamedLikeQueuesAreShown(t *testing.T) {
	t.Parallel()
	for want, children := range map[survey.Kind][]string{
		survey.Other:        {"queue-mail", "queue-orders"},
		survey.ClassicQueue: {"queue-0000000001", "qn-0000000002"},
	} {
		if got := survey.Recognise(children, nil); got != want {
			t.Errorf("%q: got %s, want %s", children, got, want)
		}
	}
	for _, item := range []string{"queue-|id|0000000003", "queue-0000005A0000000004", "entry-100-0000000005"} {
		if got := survey.Recognise([]string{item}, nil); got != survey.ClassicQueue {
			t.Errorf("%q: got %s", item, got)
		}
	}
}

// What may not be read is counted, and the rest is shown.
func TestForbiddenBranchesAreCounted(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
		want := tree(t, srv)
		sess := srv.Session(t, 20*time.Second)
		acl := []zk.ACL{{Perms: zk.PermAll, ID: zk.ID{Scheme: "ip", ID: "10.1.1.1"}}}
		if _, err := sess.SetACL(t.Context(), "/jobs", acl, -1); err != nil {
			t.Fatal(err)
		}
		s, err := survey.Read(t.Context(), srv.Client(t, 20*time.Second), survey.Config{})
		if err != nil {
			t.Fatal(err)
		}
		wantShown(t, s, want[2:])
		if s.Denied.Count != 1 || !slices.Equal(s.Denied.Paths, []string{"/jobs"}) {
			t.Errorf("denied: %+v", s.Denied)
		}
	})
}

func TestBoundsMakeTheAnswerPartial(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
		tree(t, srv)
		client := srv.Client(t, 20*time.Second)
		s, err := survey.Read(t.Context(), client, survey.Config{Nodes: 4})
		if err != nil || s.Listed > 4 || !strings.Contains(s.Partial, "4 nodes") {
			t.Errorf("%+v, %v", s, err)
		}
		srv.Control(func(r zktest.Request) zktest.Fault {
			if r.Path == "/jobs" {
				return zktest.Delay(3 * time.Second) // with all that follows on the connection
			}
			return zktest.Pass
		})
		s, err = survey.Read(t.Context(), client, survey.Config{Time: time.Second})
		if err != nil || !strings.Contains(s.Partial, "after 1s") {
			t.Errorf("%+v, %v", s, err)
		}
		srv.Control(nil)
		time.Sleep(10 * time.Second) // in a bubble: the delay ends
	})
}

// A fifth of the requests and of the replies is lost.
func TestSurveyIsWholeUnderFaults(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
		want := tree(t, srv)
		client := srv.Client(t, 20*time.Second)
		random := rand.New(rand.NewPCG(1, 2))
		faults := []zktest.Fault{zktest.Refuse, zktest.DropReply, zktest.CutBefore, zktest.CutAfter}
		srv.Control(func(zktest.Request) zktest.Fault {
			if n := random.IntN(80); n < len(faults)*4 {
				return faults[n%len(faults)]
			}
			return zktest.Pass
		})
		for range 5 {
			s, err := survey.Read(t.Context(), client, survey.Config{Time: time.Hour})
			if err != nil {
				t.Fatal(err)
			}
			wantShown(t, s, want)
		}
		srv.Control(nil)
	})
}

// Programs register themselves in nodes like Kafka's brokers: as ephemeral as a simple lock, and with a host.
func TestRegistrationOfAnotherProgramIsNoLock(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
		const broker = `{"jmx_port":-1,"host":"kafka-1","timestamp":"1600000000000","port":9092,"version":5}`
		node := zk.Node{Path: "/brokers/ids/1", Data: []byte(broker), Mode: zk.Ephemeral}
		if _, err := srv.Session(t, 20*time.Second).CreateAll(t.Context(), node, zk.Parents{}); err != nil {
			t.Fatal(err)
		}
		s, err := survey.Read(t.Context(), srv.Client(t, 20*time.Second), survey.Config{})
		if err != nil || len(s.Entries) > 0 {
			t.Errorf("got %+v %v", shown(s), err)
		}
	})
}
