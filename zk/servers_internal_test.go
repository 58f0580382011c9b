package zk

import (
	"fmt"
	"strings"
	"testing"
)

func TestConnectStringsAreReadAsPeopleWriteThem(t *testing.T) {
	t.Parallel()
	cases := []struct{ in, want string }{
		{"zk1", "[zk1:2181] "},
		{"zk1:2182", "[zk1:2182] "},
		{"zk1, zk2:2181 ,zk3", "[zk1:2181 zk2:2181 zk3:2181] "},
		{"zk1,zk2/app/one", "[zk1:2181 zk2:2181] /app/one"},
		{"zk1/", "[zk1:2181] "},
		{"zk1!/app,with,commas", "[zk1:2181] /app,with,commas"},
		{"zk1!/app", "[zk1:2181] /app"},
		{"10.0.0.1:2181", "[10.0.0.1:2181] "},
		{"[::1]:2182/app", "[[::1]:2182] /app"},
		{"[::1]", "[[::1]:2181] "},
		{"[fe80::1%eth0]:1", "[[fe80::1%eth0]:1] "},
		{"unix:/run/zk.sock", "[unix:/run/zk.sock] "},
		{"unix:/run/zk.sock!/app", "[unix:/run/zk.sock] /app"},
		{"unix:/run/a,unix:/run/b,zk1/app", "[unix:/run/a unix:/run/b zk1:2181] /app"},
		{"unix:@abstract!/", "[unix:@abstract] "},
	}
	for _, c := range cases {
		servers, root, err := parseServers(c.in)
		if got := fmt.Sprintf("%v %s", servers, root); err != nil || got != c.want {
			t.Errorf("%q: got %q, %v; want %q", c.in, got, err, c.want)
		}
	}
}

func TestChrootPrefixesAndStripsWholeComponents(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ root, path, server string }{
		{"", "/a", "/a"},
		{"/app", "/", "/app"},
		{"/app", "/a/b", "/app/a/b"},
		{"/app", configPath, configPath},
	} {
		got := chroot(c.root).server(c.path)
		if got != c.server {
			t.Errorf("%s below %q: got %q, want %q", c.path, c.root, got, c.server)
		}
		if back := chroot(c.root).local(got); back != c.path {
			t.Errorf("%s below %q comes back as %q", c.path, c.root, back)
		}
	}
	for _, foreign := range []string{"/application", "/zookeeper/quota", "/"} {
		if got := chroot("/app").local(foreign); got != foreign {
			t.Errorf("foreign path %s: got %q, want it as it is", foreign, got)
		}
	}
}

func TestPathsAreCheckedAsServersDo(t *testing.T) {
	t.Parallel()
	for _, good := range []string{
		"/", "/a", "/a/b", "/..a", "/a.b", "/ ", "/ä", "/\uffef", "/\uf900", "/zookeeper/config",
	} {
		if err := ValidatePath(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, bad := range []string{
		"", "a", "/a/", "//", "/a//b", "/.", "/a/./b", "/..", "/a/..",
		"/a\x00", "/\x1f", "/\x7f", "/\u009f", "/\ue000", "/\ufff0",
		"/😀", "/\xff", "/\ufffd",
	} {
		if err := ValidatePath(bad); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
	if err := validateNew("/q/", EphemeralSequential); err != nil {
		t.Errorf("sequential path that ends with a slash: %v", err)
	}
	if err := validateNew("/q/", Ephemeral); err == nil {
		t.Error("path that ends with a slash was taken")
	}
}

func FuzzConnectString(f *testing.F) {
	for _, s := range []string{"a", "a:1,b/c", "[::1]:2181/x", "unix:/a,unix:/b!/c", ",", "!", "a!b", "unix:!"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		servers, root, err := parseServers(s)
		if err != nil {
			return
		}
		if len(servers) == 0 || root != "" && ValidatePath(string(root)) != nil {
			t.Errorf("%q: servers %v, chroot %q", s, servers, root)
		}
		var list []string
		for _, srv := range servers {
			list = append(list, srv.String())
		}
		again := strings.Join(list, ",")
		if root != "" {
			again += "!" + string(root)
		}
		twice, root2, err := parseServers(again)
		if err != nil || fmt.Sprint(twice) != fmt.Sprint(servers) || root2 != root {
			t.Errorf("%q, written as %q, reads as %v %q, %v", s, again, twice, root2, err)
		}
	})
}
