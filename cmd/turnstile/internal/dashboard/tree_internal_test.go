package dashboard

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/ensemble"
	"github.com/seed-a3166700/turnstile/internal/survey"
	"github.com/seed-a3166700/turnstile/zk"
)

func TestTreeShowsNodesBelowItsRootAndTheirDataOnlyIfItMay(t *testing.T) {
	t.Parallel()
	hash := zk.ACL{Perms: zk.PermRead, ID: zk.ID{Scheme: "digest", ID: "ann:aGFzaA=="}}
	w := &world{nodes: map[string]ensemble.Node{
		"/app": {
			Stat: zk.Stat{NumChildren: 9, DataLength: 99}, Data: []byte("secret <i>\nline\x1b"), ACL: []zk.ACL{hash},
			Children: []ensemble.Child{
				{Name: "a b&\"<b>"},
				{Name: "lock", Stat: zk.Stat{NumChildren: 2}},
				{Name: "mine", Stat: zk.Stat{EphemeralOwner: 0x77}},
			},
		},
		"/app/mine": {Stat: zk.Stat{EphemeralOwner: 0x77, DataLength: 3}},
		"/other":    {Data: []byte("other")},
	}}
	s := &survey.Snapshot{Mode: survey.Live, Listed: 3}
	w.add(s, "/app/lock", survey.Lock, "ann")
	w.nodes["/app/lock"] = ensemble.Node{ACL: zk.OpenACL()}
	closed, open := board(t, w, s, Config{Root: "/app"}), board(t, w, s, Config{Root: "/app", Data: true})
	for _, c := range []struct {
		d             *Dashboard
		path          string
		status        int
		wanted, never []string
	}{
		{closed, "/app", 200, []string{
			"99 bytes", "--show-data", "digest:ann:…", "a b&amp;&#34;&lt;b&gt;", "tree?path=%2Fapp%2Fmine",
			"6 more are not read",
		}, []string{"secret", "aGFzaA", "<b>"}},
		{closed, "", 200, []string{"99 bytes"}, nil},
		{closed, "/app&q=min", 200, []string{"mine"}, []string{"lock</a>"}},
		{closed, "/app&q=none", 200, []string{"Nothing matches."}, nil},
		{open, "/app", 200, []string{"secret &lt;i&gt;\nline\\x1b</pre>", "83 bytes more"}, []string{"--show-data"}},
		{open, "/app/mine", 200, []string{"0x77", "ephemeral", "cannot be read", "Nothing is below it."}, nil},
		{open, "/app/lock", 200, []string{
			`href="lock?path=%2Fapp%2Flock"`, "world:anyone:cdrwa", `href="tree?path=%2Fapp"`,
		}, nil},
		{open, "/app/gone", 200, []string{"no such node"}, nil},
		{open, "/other", 404, []string{"does not show this path"}, []string{"other</pre>"}},
		{open, "/app/../other", 404, []string{"does not show this path"}, nil},
		{open, "/application", 404, []string{"does not show this path"}, nil},
		{open, "nothing", 404, []string{"does not show this path"}, nil},
	} {
		path, rest, _ := strings.Cut(c.path, "&")
		got := get(c.d, "/tree?"+url.Values{"path": {path}}.Encode()+"&"+rest)
		body := got.Body.String()
		if got.Code != c.status || got.Header().Get("Content-Type") != "text/html; charset=utf-8" {
			t.Errorf("%q: status %d %s", c.path, got.Code, http.StatusText(got.Code))
		}
		for _, want := range c.wanted {
			if !strings.Contains(body, want) {
				t.Errorf("%q does not show %q:\n%s", c.path, want, body)
			}
		}
		for _, bad := range c.never {
			if strings.Contains(body, bad) {
				t.Errorf("%q shows %q:\n%s", c.path, bad, body)
			}
		}
	}
}
