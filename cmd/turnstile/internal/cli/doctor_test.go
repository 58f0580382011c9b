//go:build unix

package cli_test

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/internal/test/peer"
	"github.com/seed-a3166700/turnstile/server"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// A finding is what turnstile doctor --json prints.
type finding struct {
	Check, Severity, Finding, Remedy, Page string
	Unknown                                bool
	Evidence                               []string
}

// diagnose runs turnstile doctor, and returns what it finds.
func diagnose(t *testing.T, code int, connect string, args ...string) []finding {
	t.Helper()
	r := start(t, append([]string{"doctor", "--json", "--connect", connect}, args...)...)
	out := r.rest()
	r.wantCode(code)
	var list []finding
	for line := range strings.Lines(out) {
		var f finding
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		list = append(list, f)
	}
	return list
}

// wantFinding reports if there is no such finding.
func wantFinding(t *testing.T, list []finding, check, severity, text string) {
	t.Helper()
	if !slices.ContainsFunc(list, func(f finding) bool {
		return f.Check == check && f.Severity == severity && strings.Contains(fmt.Sprint(f), text)
	}) {
		t.Errorf("no %s of %s with %q in %+v", severity, check, text, list)
	}
}

// without returns the findings of other checks.
func without(list []finding, checks ...string) []finding {
	return slices.DeleteFunc(slices.Clone(list), func(f finding) bool { return slices.Contains(checks, f.Check) })
}

func TestDoctorOfTheEmbeddedServersSettings(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t, zktest.Tick(12*time.Second), zktest.SessionTimeouts(20*time.Second, 40*time.Second),
		zktest.With(func(cfg *server.Config) { cfg.MaxClientConns = 20 }))
	list := diagnose(t, 1, srv.Addr(), "--admin-port", "0", "--session-timeout", "5s")
	wantFinding(t, list, "ticks", "error", "tickTime 12s")
	wantFinding(t, list, "ticks", "warning", "sessions of 20s to 40s")
	for range 16 {
		srv.Session(t, 40*time.Second)
	}
	list = diagnose(t, 0, srv.Addr(), "--admin-port", "0", "--session-timeout", "50s")
	wantFinding(t, list, "timeout", "warning", "40s, not 50s")
	wantFinding(t, list, "connections", "warning", "127.0.0.1 has ")
}

// The HTTP commands tell what the words do not.
func TestDoctorAsksTheEmbeddedServersCommands(t *testing.T) {
	t.Parallel()
	srv, err := server.Start(t.Context(), server.Config{
		Listen: []string{"127.0.0.1:0"}, AdminListen: "127.0.0.1:0", InMemory: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	_, port, err := net.SplitHostPort(srv.AdminAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	connect := srv.Addrs()[0].String()
	list := diagnose(t, 0, connect, "--admin-port", "0", "--write")
	wantFinding(t, list, "words", "note", "conf is not executed")
	if list = without(diagnose(t, 0, connect, "--admin-port", port, "--write"), "latency", "margin"); len(list) != 0 {
		t.Errorf("%+v", list)
	}
}

func TestDoctorOfATree(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t)
	makeUnwell(t, srv.Session(t, time.Minute))
	srv.PresetSequence("/low", 1<<30)
	mix(t, srv.Session(t, time.Minute))
	list := diagnose(t, 1, srv.Addr(), "--admin-port", "0", "--session-timeout", "1m")
	wantUnwell(t, list)
	wantFinding(t, list, "sequences", "warning", "/low: ")
	list = diagnose(t, 1, srv.Addr(), "--admin-port", "0", "--session-timeout", "1m", "--auth", "digest:ann:secret")
	wantFinding(t, list, "acl", "warning", "/mixed")
}

// makeUnwell makes nodes of which there is something to say.
func makeUnwell(t *testing.T, sess *zk.Session) {
	t.Helper()
	ctx := t.Context()
	for _, path := range []string{"/large", "/long", "/low", "/mixed"} {
		if _, err := sess.Create(ctx, path, nil, zk.Persistent); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := sess.Set(ctx, "/large", make([]byte, 900_000), -1); err != nil {
		t.Fatal(err)
	}
	batch := sess.Batch()
	var last *zk.Future[zk.Created]
	for i := range 5_000 {
		last = batch.Create(fmt.Sprintf("/long/%0200d", i), nil, zk.Persistent)
	}
	batch.Send()
	if _, err := last.Get(ctx); err != nil {
		t.Fatal(err)
	}
}

// mix makes contenders of programs that do not exclude each other.
func mix(t *testing.T, sess *zk.Session) {
	t.Helper()
	for _, path := range []string{
		"/low/_c_0f8fad5b-d9cb-469f-a165-70867728950e-lock-",
		"/mixed/_c_0f8fad5b-d9cb-469f-a165-70867728950e-lock-",
		"/mixed/1f8fad5bd9cb469fa16570867728950e-latch-",
	} {
		if _, err := sess.Create(t.Context(), path, nil, zk.EphemeralSequential); err != nil {
			t.Fatal(err)
		}
	}
}

// wantUnwell checks that these nodes are found.
func wantUnwell(t *testing.T, list []finding) {
	t.Helper()
	wantFinding(t, list, "sizes", "warning", "/large: 879 KiB")
	wantFinding(t, list, "sizes", "warning", "/long: 996 KiB")
	wantFinding(t, list, "groups", "error", "/mixed: 2 groups")
	wantFinding(t, list, "acl", "note", "/mixed")
}

// apacheKeys are settings of which there is nothing to say.
func apacheKeys(more map[string]string) peer.Options {
	keys := map[string]string{
		"tickTime": "500", "minSessionTimeout": "1000", "maxSessionTimeout": "60000", "syncLimit": "10",
	}
	maps.Copy(keys, more)
	// A disk that others write to may need a minute for what the tests make.
	return peer.Options{Keys: keys, Properties: map[string]string{"zookeeper.forceSync": "no"}}
}

// wantHole wants the warning of a known hole if the servers are ZooKeeper 3.8.0, and none of a newer version.
func wantHole(t *testing.T, list []finding, servers *peer.Cluster) {
	t.Helper()
	if version := servers.Version(); version == "3.8.0" {
		wantFinding(t, list, "versions", "warning", "CVE-2024-23944")
	} else if i := slices.IndexFunc(list, func(f finding) bool { return f.Check == "versions" }); i >= 0 {
		t.Errorf("got %+v of %s, want none", list[i], version)
	}
}

func TestDoctorOfApacheZooKeeper(t *testing.T) {
	t.Parallel()
	zoo := peer.ZooKeeper(t, apacheKeys(map[string]string{"maxClientCnxns": "10"}))
	connect := zoo.ConnectString()
	flags := []string{"--connect-timeout", "1m", "--session-timeout", "40s", "--admin-port", "0"}
	list := diagnose(t, 0, connect, append(flags, "--write")...)
	wantHole(t, list, zoo)
	if more := without(list, "versions", "latency", "margin", "clocks"); len(more) != 0 {
		t.Errorf("%+v", more)
	}
	client, err := zk.Open(t.Context(), zk.Config{Servers: connect, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	sess, err := client.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	makeUnwell(t, sess)
	mix(t, sess)
	if _, err := sess.Create(t.Context(), "/owned", nil, zk.Persistent); err != nil {
		t.Fatal(err)
	}
	batch := sess.Batch()
	var last *zk.Future[zk.Created]
	for i := range 2_600 { // 540 KB of paths
		last = batch.Create(fmt.Sprintf("/owned/%0200d", i), nil, zk.Ephemeral)
	}
	batch.Send()
	if _, err := last.Get(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 7 {
		other, err := zk.Open(t.Context(), zk.Config{Servers: connect, Timeout: 40 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		if _, err := other.Session(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	list = diagnose(t, 1, connect, flags...)
	wantUnwell(t, list)
	wantFinding(t, list, "ephemerals", "warning", fmt.Sprintf("session 0x%x: ", uint64(sess.ID())))
	wantFinding(t, list, "connections", "warning", "127.0.0.1 has ")
}

// An ensemble of four with different settings, of which one server is then killed.
func TestDoctorOfAnEnsemble(t *testing.T) {
	t.Parallel()
	ensemble := peer.Ensemble(t, 4, apacheKeys(map[string]string{"4lw.commands.whitelist": "srvr,mntr,conf"}))
	flags := []string{"--connect-timeout", "1m", "--session-timeout", "40s", "--admin-port", "0"}
	list := diagnose(t, 0, ensemble.ConnectString(), append(flags, "--write")...)
	wantFinding(t, list, "even", "warning", "4 servers vote")
	wantHole(t, list, ensemble)
	if more := without(list, "even", "versions", "latency", "margin", "clocks"); len(more) != 0 {
		t.Errorf("%+v", more)
	}
	i := (ensemble.Leader() + 1) % 4
	ensemble.Configure(i, map[string]string{
		"tickTime": "1000", "syncLimit": "31", "maxSessionTimeout": "39000", "4lw.commands.whitelist": "srvr,conf",
	})
	ensemble.Restart(i)
	dead := (ensemble.Leader() + 1) % 4
	if dead == i {
		dead = (dead + 1) % 4
	}
	if dead == ensemble.Leader() {
		dead = (dead + 1) % 4
	}
	ensemble.Kill(dead)
	others := make([]string, 0, 4)
	for k := range 4 {
		if k != i { // so that the session is not there
			others = append(others, ensemble.Addr(k))
		}
	}
	list = diagnose(t, 1, strings.Join(append(others, ensemble.Addr(i)), ","), flags...)
	changed := ensemble.Addr(i)
	wantFinding(t, list, "ticks", "warning", changed+": tickTime 1000")
	wantFinding(t, list, "words", "note", changed+": unknown are its numbers of connections and watches")
	wantFinding(t, list, "servers", "error", ensemble.Addr(dead)+": ")
	for k := range 4 {
		if k != i && k != dead {
			ensemble.Kill(k)
		}
	}
	// The last one may take itself for the leader or a follower for some ticks more.
	for began := time.Now(); ; {
		list = diagnose(t, 69, ensemble.ConnectString(), "--connect-timeout", "5s", "--admin-port", "0")
		wantFinding(t, list, "servers", "error", ensemble.Addr(dead)+": ")
		if strings.Contains(fmt.Sprint(list), "has it a quorum?") {
			break
		}
		if time.Since(began) > patience {
			t.Fatalf("got %+v, want a server without a quorum", list)
		}
	}
}

// A server that answers rubbish, whatever it is asked, is found, and does not reach the terminal.
func TestDoctorOfAServerThatAnswersRubbish(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t)
	for what, answer := range map[string]string{
		"bytes":   strings.Repeat(hostile, 2000), // more than is read
		"nothing": "",
		"lines": "Zookeeper version: " + hostile + "\ntickTime=9007199254740991\nminSessionTimeout=" + hostile +
			"\nmaxClientCnxns=1\nsyncLimit=9007199254740991\nzk_num_alive_connections\t9007199254740991\n /" + hostile +
			"[1](\n /\x1b[2J:5[1](\nSessions with Ephemerals\n0x1:\n\t/" + hostile + "\n",
		"HTTP": "HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n{\"command\":",
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			address := says(t, answer)
			_, port, err := net.SplitHostPort(address)
			if err != nil {
				t.Fatal(err)
			}
			r := start(t, "doctor", "--connect", srv.Addr()+","+address, "--admin-port", port,
				"--connect-timeout", "1m")
			out := r.rest()
			code := r.wait()
			if code != 1 && what != "lines" || code > 1 || !strings.Contains(out, address) {
				t.Errorf("exit code %d: %s", code, out)
			}
			checkPrintable(t, what, out)
			checkPrintable(t, what, r.stderr.String())
		})
	}
}

// says starts a server that answers everything with a text, and returns its address.
func says(t *testing.T, text string) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	t.Cleanup(func() {
		_ = l.Close()
		group.Wait()
	})
	group.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			group.Go(func() {
				defer conn.Close()
				_ = conn.SetDeadline(time.Now().Add(patience))
				if _, err := io.ReadFull(conn, make([]byte, 4)); err == nil {
					_, _ = io.WriteString(conn, text) // the reader may go
				}
			})
		}
	})
	return l.Addr().String()
}
