package lock_test

import (
	"strings"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// A creation whose connection broke may be done long after another one has taken its place (see package peer's
// TestCreationMayBeDoneAfterALaterWriteOfItsSession). Its node goes while the session lives on.
func TestNodeOfACreationThatComesLateIsRemoved(t *testing.T) {
	t.Parallel()
	for name, take := range takers {
		if name == "simple" || name == "delay" { // see TestSimpleLockThatIsMadeTooLate; a delay changes nothing here
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
				client := srv.Client(t, certainTimeout)
				sess := session(t, client)
				for _, dir := range []string{"/locks", path, path + "-2", path + "/locks", path + "/leases"} {
					if _, err := sess.Create(t.Context(), dir, nil, zk.Persistent); err != nil {
						t.Fatal(err)
					}
				}
				var lost []string
				srv.Control(func(r zktest.Request) zktest.Fault {
					if len(lost) > 0 {
						return zktest.Pass
					}
					if r.Op == zktest.OpCreate {
						lost = append(lost, r.Path)
					}
					for _, part := range r.Parts {
						if part.Op == zktest.OpCreate {
							lost = append(lost, part.Path)
						}
					}
					if len(lost) > 0 {
						return zktest.Refuse
					}
					return zktest.Pass
				})
				hold, err := take(t.Context(), client)
				if err != nil {
					t.Fatal(err)
				}
				srv.Control(nil)
				late := map[string]bool{}
				for _, prefix := range lost {
					c, err := sess.CreateNode(t.Context(), zk.Node{Path: prefix, Mode: zk.EphemeralSequential})
					if err != nil {
						t.Fatal(err)
					}
					late[c.Path] = true
				}
				time.Sleep(2 * certainTimeout)
				for node := range late {
					if _, there, err := sess.Exists(t.Context(), node); there || err != nil {
						t.Errorf("%s is there still (%v)", node, err)
					}
				}
				if err := hold.Context().Err(); err != nil || late[hold.Path()] ||
					!strings.HasPrefix(hold.Path(), path) {
					t.Errorf("the hold at %s: %v", hold.Path(), err)
				}
				if err := hold.UnlockWait(t.Context()); err != nil {
					t.Error(err)
				}
			}, zktest.SessionTimeouts(time.Second, time.Minute))
		})
	}
}

// A link that stays silent for longer than a server bears is closed: what it held may come until then.
func TestNodeOfACreationThatComesVeryLateIsRemoved(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		client := w.Client(t, certainTimeout)
		sess := session(t, client)
		for _, dir := range []string{"/locks", path} {
			if _, err := sess.Create(t.Context(), dir, nil, zk.Persistent); err != nil {
				t.Fatal(err)
			}
		}
		var lost string
		w.Control(func(r zktest.Request) zktest.Fault {
			if r.Op != zktest.OpCreate || lost != "" {
				return zktest.Pass
			}
			lost = r.Path
			return zktest.Refuse
		})
		unlock(t, locked(t, mutex(t, client).Lock))
		w.Control(nil)
		time.Sleep(10 * certainTimeout)
		late, err := sess.CreateNode(t.Context(), zk.Node{Path: lost, Mode: zk.EphemeralSequential})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(6 * certainTimeout)
		if _, there, err := sess.Exists(t.Context(), late.Path); there || err != nil {
			t.Errorf("%s is there still (%v)", late.Path, err)
		}
	})
}
