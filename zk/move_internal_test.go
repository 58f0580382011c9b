package zk

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func hosts(names string) []server {
	var list []server
	for name := range strings.SplitSeq(names, "") {
		list = append(list, server{network: "tcp", address: name + ":2181", host: name})
	}
	return list
}

// If the clients were spread evenly before, they are afterwards, whatever has changed.
//
// Promise: 18
func TestChangeOfTheServersKeepsClientsSpreadEvenly(t *testing.T) {
	t.Parallel()
	const clients = 10_000
	for _, row := range [][2]string{
		{"abc", "abc"},
		{"abc", "abcde"},
		{"abcde", "abc"},
		{"abc", "def"},
		{"abc", "abd"},
		{"abcde", "abf"},
		{"a", "ab"},
		{"ab", "a"},
		{"abc", "cdefgh"},
		{"abcdef", "abgh"},
	} {
		old, list := hosts(row[0]), hosts(row[1])
		count := make(map[server]int)
		for range clients {
			at := old[rand.IntN(len(old))]
			order, move := rebalance(old, list, func(s server) bool { return s == at }, rand.Float64)
			if !sameServers(order, list) || len(order) != len(list) {
				t.Fatalf("%v: got %v", row, order)
			}
			if !slices.Contains(list, at) && !move {
				t.Fatalf("%v: stays on a server that has gone", row)
			}
			if move {
				at = order[0]
			}
			count[at]++
		}
		for _, s := range list {
			if got, want := count[s], clients/len(list); got < want*9/10 || got > want*11/10 {
				t.Errorf("%v: got %d clients on %v, want about %d", row, got, s, want)
			}
		}
	}
}

// Promise: 18
func TestConfigurationIsReadOrIgnored(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		text    string
		secure  bool
		want    string // "" means it is ignored
		version int64
	}{
		"as ZooKeeper 3.8 writes it": {
			text: "server.1=zk1:2888:3888:participant;0.0.0.0:2181\nserver.2=zk2:2888:3888:observer;10.0.0.2:2182\n" +
				"version=100000003",
			want: "10.0.0.2:2182 zk1:2181", version: 0x100000003,
		},
		"a port alone": {text: "server.1=zk1:2888:3888;2181", want: "zk1:2181"},
		"IPv6": {
			text: "server.1=[2001:db8::1]:2888:3888:participant;[::]:2181", want: "[2001:db8::1]:2181",
		},
		"an IPv6 address":    {text: "server.1=zk1:2888:3888;[fd00::7]:2181", want: "[fd00::7]:2181"},
		"IPv6 as 3.5 did":    {text: "server.1=zk1:2888:3888;0:0:0:0:0:0:0:0:2181", want: "zk1:2181"},
		"several addresses":  {text: "server.1=a:2888:3888|b:2889:3889:participant;2181", want: "a:2181"},
		"one server twice":   {text: "server.1=a:1:2;2181\nserver.2=a:3:4;2181", want: "a:2181"},
		"for TLS":            {text: "server.1=a:1:2;2181;2281", secure: true, want: "a:2281"},
		"not for TLS":        {text: "server.1=a:1:2;2181", secure: true},
		"nothing":            {text: ""},
		"only a version":     {text: "version=7"},
		"without an address": {text: "server.1=a:1:2;2181\nserver.2=b:1:2:participant"},
		"no port":            {text: "server.1=a:1:2;"},
		"a bad port":         {text: "server.1=a:1:2;70000"},
		"a bad host":         {text: "server.1=a:1:2;b c:2181"},
		"no host":            {text: "server.1=;2181"},
		"a host with a mark": {text: "server.1=!a:1:2;2181"},
		"nonsense beside": {
			text: "x\n=\nserver.x=1\nserver=2\n\x00\nserver.1=a:1:2;2181\r\nversion=zz", want: "a:2181",
		},
		"nonsense after equal": {text: "server.1=]]]:::;;;[:"},
	} {
		list, version, err := parseConfig(row.text, row.secure)
		got := strings.Join(serverNames(list), " ")
		if got != row.want || (err != nil) != (row.want == "") || version != row.version {
			t.Errorf("%s: got %q, version %x, %v; want %q, version %x", name, got, version, err, row.want, row.version)
		}
	}
}

func FuzzConfiguration(f *testing.F) {
	f.Add("server.1=[2001:db8::1]:2888:3888:participant;[::]:2181;2281\nversion=1")
	f.Fuzz(func(t *testing.T, text string) {
		for _, secure := range []bool{false, true} {
			list, _, err := parseConfig(text, secure)
			if (err == nil) != (len(list) > 0) {
				t.Errorf("got %v, %v", list, err)
			}
			for _, s := range list {
				if _, _, err := parseServers(s.String()); err != nil {
					t.Error(err)
				}
			}
		}
	})
}

// Promise: 18
func TestConfigurationThatIsOlderIsIgnored(t *testing.T) {
	t.Parallel()
	c, err := Open(t.Context(), Config{Servers: "127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	newest := int64(-1)
	for _, row := range []struct{ text, want string }{
		{"server.1=127.0.0.1:1:2;5\nversion=5", "[127.0.0.1:5]"},
		{"server.1=127.0.0.1:1:2;4\nversion=4", "[127.0.0.1:5]"},
		{"nonsense\nversion=9", "[127.0.0.1:5]"},
		{"server.1=127.0.0.1:1:2;6\nversion=6", "[127.0.0.1:6]"},
	} {
		newest = c.follow(row.text, newest)
		if got := fmt.Sprint(c.Servers()); got != row.want {
			t.Errorf("after %q: got %s, want %s", row.text, got, row.want)
		}
	}
}
