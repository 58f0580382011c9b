package zk

import (
	"fmt"
	"strings"
	"testing"
)

// Promise: 9
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

func TestConnectStringThatIsWrongSaysWhatToWrite(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"zk://h:2182/app":           `zk: servers "zk://h:2182/app": it is a URL: write h:2182/app`,
		"zk://a:1,zk://b:1/x":       "it is a URL: write a:1,b:1/x",
		"zk://ann:secret@a:1,b:1/x": `"zk://…@a:1,b:1/x": a user and a password are given apart`,
		"tcp://10.0.0.1:2181":       "it is a URL: write 10.0.0.1:2181",
		"a:1;b:1":                   "commas separate servers: write a:1,b:1",
		"a:1; b:1/app":              "commas separate servers: write a:1,b:1/app",
		"a:1 b:1":                   "commas separate servers: write a:1,b:1",
		"a:1\nb:1":                  "commas separate servers: write a:1,b:1",
		"a:1/app;b:1/app":           "commas separate servers, and the chroot stands once",
		"a:1/app b:1/app":           "write a:1,b:1/app",
		"a:1/app,b:1/app":           "the chroot stands once, behind the last server: write a:1,b:1/app",
		"a:1,":                      "there is an empty entry between commas: write a:1",
		",a:1,,b:1":                 "there is an empty entry between commas: write a:1,b:1",
		`"a:1"`:                     "it has quotes: write a:1",
		"'a:1','b:1'":               "it has quotes: write a:1,b:1",
		"a:1/app/":                  "a chroot does not end with a slash: write a:1/app",
		"::1":                       "an IPv6 address needs brackets: write [::1]:2181",
		"::1:18407/app":             "an IPv6 address needs brackets: write [::1]:18407/app",
		"fd00::5:2181,10.0.0.1:1":   "an IPv6 address needs brackets: write [fd00::5]:2181,10.0.0.1:1",
		"a/app:2181":                `":2181": put it after the last server and its port, or write a:2181!/app:2181`,
		"a:1/app,b:1":               `",": put it after the last server and its port, or write a:1!/app,b:1`,
		"a:1/my app":                "or write a:1!/my app",
		"a:1/x//y":                  "chroot",
		"a:b":                       `invalid port: "b"`,
		"a:1:2":                     "too many colons",
		"a:0;b:1":                   `commas separate servers: in a:0,b:1, invalid port: "0"`,
		"http://":                   "",
		"unix:/a;b:1,":              "empty entry between commas",
	} {
		servers, root, err := parseServers(in)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v %q %v, want %q", in, servers, root, err, want)
			continue
		}
		if strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: the error tells a password: %v", in, err)
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

// Promise: 9
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

// Promise: 9
func FuzzConnectString(f *testing.F) {
	for _, s := range []string{
		"a", "a:1,b/c", "[::1]:2181/x", "unix:/a,unix:/b!/c", ",", "!", "a!b", "unix:!",
		"zk://a:b@c:1,d:1/x;", `"a b"/c/`, "::1:1 ::2", "zk://zk://a",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		servers, root, err := parseServers(s)
		if err != nil {
			if hint, ok := instead(s, false); ok {
				_, mended, found := strings.Cut(hint, toWrite)
				if _, _, err := parseServers(mended); found && err != nil {
					t.Errorf("%q: %s, which is wrong: %v", s, hint, err)
				}
			}
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
