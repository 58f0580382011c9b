package tree_test

import (
	"slices"
	"testing"

	"github.com/seed-a3166700/turnstile/internal/wire"
	"github.com/seed-a3166700/turnstile/server/internal/tree"
)

func TestNewTreeContainsTheSystemNodes(t *testing.T) {
	t.Parallel()
	s := newServer(t, tree.Config{})
	c := s.connect(1)
	for _, row := range []struct {
		path                         string
		cversion, aversion, children int32
		acl                          []wire.ACL
	}{
		{"/", -1, 0, 1, openACL},
		{"/zookeeper", -2, 0, 2, openACL},
		{"/zookeeper/quota", 0, 0, 0, openACL},
		{"/zookeeper/config", 0, -1, 0, readOnlyACL},
	} {
		if got, want := s.stat(row.path), (wire.Stat{
			Cversion: row.cversion, Aversion: row.aversion,
			NumChildren: row.children,
		}); got != want {
			t.Errorf("%s: got %+v, want %+v", row.path, got, want)
		}
		r, code := c.get(row.path, false)
		if code != wire.OK || r.Data == nil || len(r.Data) != 0 {
			t.Errorf("%s: got data %v, %v, want empty data", row.path, r, code)
		}
		body, code, _ := c.read(wire.OpGetACL, &wire.PathRequest{Path: row.path})
		if code != wire.OK || !slices.Equal(body.(*wire.ACLResponse).ACL, row.acl) {
			t.Errorf("%s: got acl %v, want %v", row.path, body, row.acl)
		}
	}
	if names, _ := c.children("/zookeeper", false); !slices.Equal(names, []string{"config", "quota"}) {
		t.Errorf("/zookeeper: got children %v", names)
	}
	body, _, _ := c.read(wire.OpGetAllChildren, &wire.PathRequest{Path: "/"})
	if got := body.(*wire.CountResponse).Count; got != 3 {
		t.Errorf("new tree: got %d nodes below the root, want 3", got)
	}
	s.wantSound()
}

func TestSystemNodesCannotBeDeleted(t *testing.T) {
	t.Parallel()
	s := newServer(t, tree.Config{})
	c := s.connect(1)
	for _, path := range []string{"/", "/zookeeper", "/zookeeper/quota", "/zookeeper/config"} {
		s.want(c.remove(path, -1).Code, wire.BadArguments, "delete "+path)
	}
	c.mk("/zookeeper/mine", 0)
	s.wantOK(c.remove("/zookeeper/mine", -1), "delete of a node below /zookeeper")
	s.wantSound()
}
