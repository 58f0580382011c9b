//go:build unix

package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli"
	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
	"github.com/seed-a3166700/turnstile/queue"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// Text that another client would write to take a terminal over, to forge a line, or to hide what follows.
var (
	hostile = "\x1b[2J\x1b]0;t\a\tx\r\nFORGED\b\u0085\u2028\u202e\u200b\x7f\xff" + strings.Repeat("long ", 500)

	// What the names of nodes may have of it.
	hostileName = "\u202eFORGED\u200b\u2028"
)

// hostileReason is what the reason of a revocation may have of it.
func hostileReason() string { return strings.ToValidUTF8(hostile[:200], "") }

// A command that prints what others have written.
type shower struct {
	args string // separated by blanks

	shows  bool // prints others' text, as long as the nodes are well-formed
	data   bool // standard output is data as it is
	head   bool // the same behind the first empty line
	stream bool // goes on until a signal, after the first line
}

// shows are calls of all commands that print something of the servers, those that change something last.
var shows = []shower{
	{args: "who /lk", shows: true},
	{args: "who /raw", shows: true},
	{args: "who /el", shows: true},
	{args: "who /sem", shows: true},
	{args: "who /names", shows: true},
	{args: "who /q"},
	{args: "who /rv /set"},
	{args: "locks", shows: true},
	{args: "locks --watch", shows: true, stream: true},
	{args: "top", shows: true},
	{args: "sessions", shows: true},
	{args: "sessions close 0x1 --reason x"},
	{args: "deadlocks", shows: true},
	{args: "exporter --listen 127.0.0.1:0", stream: true},
	{args: "dashboard --listen 127.0.0.1:0", stream: true},
	{args: "gc --older-than 0s", data: true},
	{args: "backup -"},
	{args: "doctor --admin-port 0"},
	{args: "verify --path /verified --for 100ms"},
	{args: "revoke --records /rv", shows: true},
	{args: "lock -n /lk -- true", shows: true},
	{args: "lock -v -w 0.3 /lk -- true", shows: true},
	{args: "lock -n --permits 1/2 /sem -- true", shows: true},
	{args: "lock -n --shared /lk -- true", shows: true},
	{args: "lock -n /q -- true"},
	{args: "lock -n --layout kazoo /lk /lk2 -- true"},
	{args: "revoke --within 1ms --reason x /lk", shows: true},
	{args: "revoke --within 1ms --reason x /names", shows: true},
	{args: "revoke --node x --reason x /lk"},
	{args: "elect -n /el -- true", shows: true},
	{args: "elect --observe /el", shows: true, stream: true},
	{args: "queue ls /q", shows: true},
	{args: "queue items /q", shows: true},
	{args: "queue len /q", shows: true},
	{args: "queue consumers /q"},
	{args: "queue dead ls /q", shows: true},
	{args: "queue show /q ITEM", shows: true, head: true},
	{args: "queue show /q DEAD", shows: true, head: true},
	{args: "queue rate /q"},
	{args: "queue remove /q ITEM"},
	{args: "queue take --no-wait /q", shows: true, data: true},
	{args: "queue put /q body"},
	{args: "queue put --key k /q body"},
	{args: "queue put /lk body"},
	{args: "queue put /q --with-set /acl=x body"},
	{args: "queue cron /q @every~1s", stream: true},
	{args: "queue pause /q", shows: true},
	{args: "queue resume /q"},
	{args: "queue work --until idle /q -- false"},
	{args: "queue dead requeue /q --all"},
	{args: "queue dead purge /q --all"},
	{args: "queue purge --yes /q"},
	{args: "queue len /data"},
	{args: "get /data", shows: true, data: true},
	{args: "export /data", data: true},
	{args: "counter get /data"},
	{args: "counter add /data"},
	{args: "counter set /data 5"},
	{args: "counter get --layout text /data"},
	{args: "sequence next /data"},
	{args: "group ls /gm", shows: true},
	{args: "group watch /gm", shows: true, stream: true},
	{args: "group ls --layout party /g", shows: true},
	{args: "group watch --layout party /g", shows: true, stream: true},
	{args: "group ls --layout shallow /g"},
	{args: "group join /g --id x -- true"},
	{args: "discover ls", shows: true, data: true},
	{args: "discover ls users", shows: true},
	{args: "discover register users -- true"},
	{args: "share /data --settle 1ms --items-file /etc/passwd -- false", stream: true},
	{args: "barrier set /names/b"},
	{args: "barrier remove /names/b"},
	{args: "barrier wait /names/b"},
	{args: "barrier enter /bar --parties 1 -- true"},
	{args: "acl get /acl", shows: true},
	{args: "stat /data"},
	{args: "ls -l /names", shows: true},
	{args: "tree /", shows: true},
	{args: "ls /names", shows: true, data: true},
	{args: "watch -n 1 /data", stream: true, data: true},
	{args: "set /data x"},
	{args: "acl set /names open"},
	{args: "create /names/x"},
	{args: "create /lk/x"},
	{args: "import /imported"},
	{args: "rm /names"},
	{args: "rm -r /names"},
}

// silent are the commands that do not print anything of the servers, and why.
var silent = map[string]string{
	"serve": "is the server", "own-server status": "shows files", "own-server stop": "stops a process",
	"unlock":     "asks its holder alone",
	"restore":    "asks nobody",
	"bench lock": "makes its own nodes", "version": "asks nobody", "man": "asks nobody", "help": "asks nobody",
	"completion bash": "asks nobody", "completion zsh": "asks nobody", "completion fish": "asks nobody",
	"completion powershell": "asks nobody",
}

func TestEveryCommandThatShowsTextOfOthersIsTried(t *testing.T) {
	t.Parallel()
	var walk func(cmd *cobra.Command, name string)
	walk = func(cmd *cobra.Command, name string) {
		for _, sub := range cmd.Commands() {
			walk(sub, strings.TrimSpace(name+" "+sub.Name()))
		}
		tried := slices.ContainsFunc(shows, func(s shower) bool { return strings.HasPrefix(s.args+" ", name+" ") })
		if cmd.Runnable() && !cmd.HasSubCommands() && tried == (silent[name] != "") {
			t.Errorf("%q: tried %t, but silent because it %q", name, tried, silent[name])
		}
	}
	root := cli.NewRoot(&command.App{})
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	walk(root, "")
}

// rawOutput are the places that use standard output or standard error without package command, and why.
var rawOutput = map[string]string{
	"run.go": "the streams of cobra, which prints help", "bench_processes.go": "what its own processes say",
	"serve.go": "the log, which quotes", "recipecmd/stay.go": "the streams of the command that it runs",
	"queuecmd/lines.go": "progress", "recipecmd/sequence.go": "numbers",
	"queuecmd/take.go": "bodies, by way of App.Bytes", "queuecmd/items.go": "a body, by way of App.Bytes",
	"backup.go":       "the backup",
	"restore.go":      "the log, which quotes",
	"dashboard.go":    "the log, which quotes",
	"locks.go":        "a table, by way of command.Fprintf",
	"locks_watch.go":  "a terminal, whose lines are made by command.Fprintf",
	"top.go":          "a terminal; package top escapes what it draws",
	"treecmd/read.go": "data, by way of App.Bytes", "treecmd/export.go": "JSON",
	"holder_unix.go":  "the streams of the holder, which is turnstile, too",
	"queuecmd/put.go": "asks whether it is a terminal",
}

// All output for people goes through package command, which makes others' text printable.
func TestOnlyPackageCommandWritesForPeople(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	for _, dir := range []string{".", "queuecmd", "recipecmd", "treecmd"} {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatal(files, err)
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			for _, call := range []string{"fmt.Fprint", "fmt.Print"} {
				if bytes.Contains(text, []byte(call)) {
					t.Errorf("%s calls %s: use Fprintf, Say and Printf of package command", name, call)
				}
			}
			raw := bytes.Contains(text, []byte(".Stdout")) || bytes.Contains(text, []byte(".Stderr"))
			if raw && rawOutput[name] == "" {
				t.Errorf("%s writes to the streams itself: use package command, or say here why not", name)
			}
			used[name] = raw
		}
	}
	for name := range rawOutput {
		if !used[name] {
			t.Errorf("%s does not write to the streams itself any more", name)
		}
	}
}

// What others write into nodes controls no terminal, forges no line and hides nothing, whatever the command.
func TestTextOfOthersDoesNotReachTheTerminalRaw(t *testing.T) {
	t.Parallel()
	for name, mutate := range map[string]func(data []byte) []byte{
		"well-formed":       nil,
		"every JSON string": hostileJSON,
		"all data":          func([]byte) []byte { return []byte(hostile) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := zktest.Run(t)
			sess := srv.Session(t, 30*time.Second)
			ids := hostileTree(t, srv.Addr(), sess)
			if mutate != nil {
				rewrite(t, sess, "/", mutate)
			}
			for _, s := range shows {
				args := strings.Fields(ids.Replace(s.args))
				for i := range args {
					args[i] = strings.ReplaceAll(args[i], "~", " ")
				}
				stdout, stderr := s.run(t, sess, args, srv.Addr())
				if s.head {
					stdout, _, _ = strings.Cut(stdout, "\n\n")
				}
				if strings.Contains(stdout+stderr, "panic") {
					t.Errorf("%s: panics: %s", s.args, stderr)
				}
				all := stderr
				if !s.data {
					all = stdout + "\n" + stderr
				}
				checkPrintable(t, s.args, all)
				shown := strings.Contains(all, `\x1b[2J`) || strings.Contains(stdout+stderr, "FORGED")
				if s.shows && mutate == nil && !shown {
					t.Errorf("%s: does not show the text at all: %q %q", s.args, stdout, stderr)
				}
			}
		})
	}
}

// A holder learns why its lock was revoked, at once and when its command has ended.
func TestReasonOfARevocationDoesNotReachTheHoldersTerminalRaw(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t)
	holder := start(t, "lock", "-v", "--connect", srv.Addr(), "/lk", "-c", "echo held; exec sleep 1000")
	if line := holder.line(); line != "held" {
		t.Fatalf("got %q", line)
	}
	revoke := start(t, "revoke", "--connect", srv.Addr(), "--reason", hostileReason(), "/lk")
	if code := revoke.wait(); code != 0 {
		t.Fatalf("revoke exits with %d", code)
	}
	if code := holder.wait(); code != command.ExitLost {
		t.Errorf("got exit code %d, want %d", code, command.ExitLost)
	}
	said := holder.stderr.String()
	if strings.Count(said, `\x1b[2J`) < 2 {
		t.Errorf("the reason is not told twice: %q", said)
	}
	checkPrintable(t, "lock", said)
}

// checkPrintable reports characters that a terminal obeys, and lines that another client has made.
func checkPrintable(t *testing.T, what, text string) {
	t.Helper()
	for i, r := range text {
		_, size := utf8.DecodeRuneInString(text[i:])
		if r != '\n' && !unicode.IsGraphic(r) || r == utf8.RuneError && size == 1 {
			t.Errorf("%s: %q is in %q", what, text[i:i+size], text[max(0, i-100):min(len(text), i+20)])
			return
		}
	}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "FORGED") {
			t.Errorf("%s: prints a line that another client has made: %q", what, line)
		}
	}
}

// run runs the command until it ends, or a stream until its first line.
func (s shower) run(t *testing.T, sess *zk.Session, args []string, server string) (stdout, stderr string) {
	t.Helper()
	cmd := turnstile(args...)
	cmd.Env = []string{"HOME=" + t.TempDir(), "TURNSTILE_CONNECT=" + server, "PATH=/bin:/usr/bin", quickExit}
	var out, errs buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if s.stream {
		first := func(text string) {
			if strings.HasPrefix(text, "turnstile: watching") {
				if _, err := sess.Set(t.Context(), "/data", []byte(hostile), -1); err != nil {
					t.Error(err)
				}
				return
			}
			_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended
		}
		cmd.Stdout, cmd.Stderr = &told{&out, first}, &told{&errs, first}
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })() // it may have ended
	_ = cmd.Wait()                                                    // with whatever exit code
	if ctx.Err() != nil {
		t.Errorf("%v: does not end", args)
	}
	return out.String(), errs.String()
}

// told is a buffer that calls a function with what is written into it.
type told struct {
	*buffer
	f func(text string)
}

func (b *told) Write(p []byte) (int, error) {
	n, err := b.buffer.Write(p)
	b.f(string(p))
	return n, err
}

// hostileTree makes nodes of all recipes that hold hostile text wherever other clients can write some, and returns what
// replaces the ids of items in command lines.
func hostileTree(t *testing.T, server string, sess *zk.Session) *strings.Replacer {
	t.Helper()
	ctx := t.Context()
	create := func(p string, data string, mode zk.Mode) {
		t.Helper()
		for i := range p {
			if i > 0 && p[i] == '/' {
				if _, err := sess.Create(ctx, p[:i], nil, zk.Persistent); !errors.Is(err, zk.NodeExists) && err != nil {
					t.Fatal(err)
				}
			}
		}
		if _, err := sess.Create(ctx, p, []byte(data), mode); err != nil {
			t.Fatal(err)
		}
	}
	marshal := func(v any) string {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	owner := marshal(map[string]any{
		"host": hostile, "pid": 1, "program": hostile, "label": hostile, "set": []string{"/lk", "/" + hostileName},
		"since": time.Now(),
	})
	const guid = "_c_01234567-89ab-8def-8123-456789abcdef-" // of our kind
	for range 2 {
		create("/lk/"+guid+"lock-", owner, zk.EphemeralSequential)
		create("/raw/"+guid+"lock-", hostile, zk.EphemeralSequential)
		create("/el/"+guid+"latch-", hostile, zk.EphemeralSequential)
		create("/sem/leases/"+guid+"lease-", owner, zk.EphemeralSequential)
		create("/g/"+guid+"__party__", hostile, zk.EphemeralSequential)
	}
	create("/rv/"+guid+"lock-", owner, zk.EphemeralSequential)
	create("/"+hostileName+"/"+guid+"lock-", owner, zk.EphemeralSequential)
	create("/names/"+hostileName, hostile, zk.Persistent)
	create("/data", hostile, zk.Persistent)
	create(fmt.Sprintf("/turnstile/waits/__0x%x-__", uint64(sess.ID())), marshal(map[string]any{
		"owner": json.RawMessage(owner), "waits": []any{map[string]any{
			"id": 1, "paths": []string{"/" + hostileName}, "kind": "exclusive", "since": time.Now(),
			"holds": []any{map[string]any{"paths": []string{"/" + hostileName}, "token": 1, "kind": "exclusive"}},
		}},
	}), zk.Ephemeral)
	create("/gm/"+hostileName, hostile, zk.Ephemeral)
	create("/services/"+hostileName, "", zk.Persistent)
	create("/services/users/i1", marshal(map[string]any{
		"name": "users", "id": hostile, "address": hostile, "port": 1, "serviceType": "DYNAMIC", "payload": hostile,
	}), zk.Ephemeral)
	acl := []zk.ACL{
		{Perms: zk.PermAll, ID: zk.ID{Scheme: "world", ID: "anyone"}},
		{Perms: zk.PermRead, ID: zk.ID{Scheme: "digest", ID: strings.ReplaceAll(hostile, ":", "") + ":y"}},
	}
	create("/acl", "", zk.Persistent)
	if _, err := sess.SetACL(ctx, "/acl", acl, -1); err != nil {
		t.Fatal(err)
	}
	args := []string{"revoke", "--force", "--within", "1ms", "--reason", hostileReason(), "/rv"}
	if out, errs := (shower{}).run(t, sess, args, server); !strings.Contains(out, "has lost it by force") {
		t.Fatalf("revoke: %s %s", out, errs)
	}
	return hostileQueue(t, server)
}

// hostileQueue makes a queue with an item in each state.
func hostileQueue(t *testing.T, server string) *strings.Replacer {
	t.Helper()
	ctx := t.Context()
	client, err := zk.Open(ctx, zk.Config{Servers: server})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	q, err := queue.New(client, "/q", queue.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = q.Close(context.WithoutCancel(ctx)) })
	put := func(body, group string) string {
		t.Helper()
		id, err := q.Put(ctx, queue.Message{
			Body: []byte(body), Group: group, Headers: map[string]string{"text": hostile, hostile[:20]: "x"},
		})
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	dead := put("plain", "")
	put("plain", hostile[:200])
	for i := range 2 { // of which the second stays claimed
		item, err := q.Take(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			if err := item.Reject(ctx, hostile); err != nil {
				t.Fatal(err)
			}
		}
	}
	put("plain", hostile[:200]) // waits for that one
	ready := put("plain", "")
	put(hostile, "")
	if err := q.Pause(ctx, hostile[:1000]); err != nil {
		t.Fatal(err)
	}
	return strings.NewReplacer("ITEM", ready, "DEAD", dead)
}

// hostileJSON makes every string of a JSON document hostile, except the words that say what it is.
func hostileJSON(data []byte) []byte {
	var v any
	if json.Unmarshal(data, &v) != nil {
		return data
	}
	var walk func(key string, v any) any
	walk = func(key string, v any) any {
		switch v := v.(type) {
		case string:
			if _, err := time.Parse(time.RFC3339Nano, v); err == nil || key == "recipe" || key == "serviceType" {
				return v
			}
			return hostile
		case []any:
			for i := range v {
				v[i] = walk(key, v[i])
			}
		case map[string]any:
			for k := range v {
				v[k] = walk(k, v[k])
			}
		}
		return v
	}
	b, err := json.Marshal(walk("", v))
	if err != nil {
		panic(fmt.Sprintf("what was decoded cannot be encoded: %v", err))
	}
	return b
}

// rewrite changes the data of all nodes from one down.
func rewrite(t *testing.T, sess *zk.Session, node string, mutate func([]byte) []byte) {
	t.Helper()
	data, _, err := sess.Get(t.Context(), node)
	if err != nil {
		t.Fatal(err)
	}
	if made := mutate(bytes.Clone(data)); node != "/" && !bytes.Equal(made, data) {
		if _, err := sess.Set(t.Context(), node, made, -1); err != nil {
			t.Fatal(err)
		}
	}
	names, _, err := sess.Children(t.Context(), node)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if below := path.Join(node, name); below != "/zookeeper" {
			rewrite(t, sess, below, mutate)
		}
	}
}
