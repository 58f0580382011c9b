//go:build unix

package cli_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli"
	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
)

// runHere runs turnstile in this process. What it runs here must end before it would touch a server.
func runHere(t *testing.T, env []string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	env = append([]string{"HOME=/nonexistent"}, env...)
	code = cli.Run(t.Context(), args, env, strings.NewReader(""), &out, &err)
	return code, out.String(), err.String()
}

// Promise: 9
func TestWrongUseIsRefusedBeforeAnythingIsDone(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args string // separated by blanks
		env  string
		want string // in the message
	}{
		{args: "frobnicate", want: `unknown command "frobnicate"`},
		{args: "--frobnicate", want: "unknown flag: --frobnicate"},
		{args: "own-server frobnicate", want: "turnstile own-server --help lists the commands"},
		{args: "help frobnicate", want: `unknown command "frobnicate"`},
		{args: "help queue frobnicate", want: `unknown command "queue frobnicate"`},
		{args: "lock --connect= /x -- true", want: "--connect is empty"},
		{args: "queue len --connect= /x", want: "--connect is empty"},
		{args: "lock --tls /x -- true", want: "--tls needs --connect"},
		{args: "lock --tls-ca ca.pem /x -- true", want: "--tls-ca needs --connect"},
		{args: "queue put --priority soon /x body", want: `--priority must be a whole number: "soon"; turnstile`},
		{args: "verify --path /v --rate fast", want: `--rate must be a number: "fast"; turnstile`},
		{args: "ls --quiet=maybe /x", want: `--quiet must be true or false: "maybe"; turnstile`},
		{
			args: "ls /x", env: "TURNSTILE_QUIET=",
			want: `environment variable TURNSTILE_QUIET must be true or false: ""; set it to`,
		},
		{
			args: "queue work /q -- true", env: "TURNSTILE_WORKERS=many",
			want: `environment variable TURNSTILE_WORKERS must be a whole number: "many"; set it to`,
		},
		{args: "lock", want: "PATH is missing"},
		{args: "lock -- echo", want: "PATH is missing"},
		{args: "lock /x --", want: "no command after --"},
		{args: "lock /x echo hi", want: "put -- before the command: turnstile lock /x -- echo hi"},
		{args: "lock /x ls -l", want: "flags of the command to run go after --"},
		{args: "lock x -- echo", want: `PATH "x" must begin with a slash`},
		{args: "lock /x/ -- echo", want: "/x/"},
		{args: "lock /x//y -- echo", want: "/x//y"},
		{args: "lock / -- echo", want: "belongs to the server"},
		{args: "lock /zookeeper/x -- echo", want: "belongs to the server"},
		{args: "lock -c true /x -- echo", want: "contradict each other"},
		{args: "lock -n -w 1 /x -- echo", want: "--no-wait and --wait contradict each other"},
		{
			args: "lock -q -v /x -- echo",
			want: "--quiet and --verbose contradict each other: leave one out; turnstile lock --help shows",
		},
		{args: "import --resume --compare /x", want: "--compare and --resume contradict each other: leave one out"},
		{
			args: "completion fish2",
			want: `unknown command "fish2" for "turnstile completion"; turnstile completion --help lists`,
		},
		{args: "lock -w soon /x -- echo", want: `"soon" is not a duration: write 90s`},
		{args: "lock -w -1 /x -- echo", want: "negative"},
		{args: "lock -w NaN /x -- echo", want: "out of range"},
		{args: "lock -w 1e300 /x -- echo", want: "out of range"},
		{args: "ls --connect a:1 --reply-limit 64mb /x", want: `"64mb" is not a size: write bytes, or a whole number`},
		{args: "ls --connect a:1 --reply-limit 0 /x", want: `"0" is out of range`},
		{
			args: "ls --connect a:1 /x", env: "TURNSTILE_REPLY_LIMIT=",
			want: "environment variable TURNSTILE_REPLY_LIMIT: \"\" is not a size",
		},
		{
			args: "ls --connect a:1 /x", env: "TURNSTILE_REPLY_LIMIT=2GiB",
			want: "environment variable TURNSTILE_REPLY_LIMIT: \"2GiB\" is out of range",
		},
		{args: "lock -E 256 /x -- echo", want: "from 0 to 255"},
		{args: "lock -E -1 /x -- echo", want: "from 0 to 255"},
		{args: "lock --on-lost panic /x -- echo", want: `"panic" must be one of term, kill, ignore`},
		{args: "lock --grace x /x -- echo", want: "not a duration"},
		{args: "lock --json /x -- echo", want: "--json is for holding the lock without a command"},
		{args: "lock --connect host:port /x -- true", want: "port"},
		{args: "lock --connect a,,b /x -- true", want: "empty entry between commas: write a,b; see --connect"},
		{args: "lock --connect zk://a:1/b /x -- true", want: "it is a URL: write a:1/b; see --connect"},
		{args: "lock --connect a:1;b:1 /x -- true", want: "commas separate servers: write a:1,b:1; see --connect"},
		{args: "lock -w 9999999h /x -- echo", want: `"9999999h" is out of range: it is too long`},
		{args: "lock --connect a:1 --session-timeout 0.0001 /x -- true", want: "--session-timeout must be from 1ms to"},
		{args: "lock --connect a:1 --session-timeout 597h /x -- true", want: "--session-timeout must be from 1ms"},
		{args: "lock --connect a:1 --auth Digest:a:b /x -- true", want: `the scheme "Digest" must be written digest`},
		{args: "lock --connect a:1 --session-timeout 0 /x -- true", want: `"0" is out of range: it must not be 0`},
		{args: "ls --connect a:1 --connect-timeout 0s /x", want: `"0s" is out of range: it must not be 0`},
		{args: "deadlocks --connect a:1 --watch --every 0", want: `"0" is out of range: it must not be 0`},
		{args: "locks --connect a:1 --read-for 0", want: `"0" is out of range: it must not be 0`},
		{args: "gc --connect a:1", env: "TURNSTILE_READ_FOR=0", want: `TURNSTILE_READ_FOR: "0" is out of range`},
		{args: "serve --in-memory --send-time 0", want: `"0" is out of range: it must not be 0`},
		{args: "lock --connect a:1 --auth digest /x -- true", want: "--auth must be scheme:credentials"},
		{args: "lock --connect a:1 --auth digest:ann /x -- true", want: "lacks the user or the password"},
		{args: "lock --connect a:1 --auth digest::x /x -- true", want: "lacks the user or the password"},
		{args: "lock --connect a:1 --acl creator /x -- true", want: "--acl creator needs credentials"},
		{args: "lock --acl ann /x -- true", want: `"ann" must be open, creator, or scheme:id:rights`},
		{args: "lock --acl world:anyone:rx /x -- true", want: "'x' is not a right"},
		{args: "lock --acl world:anyone: /x -- true", want: "it grants no rights"},
		{args: "own-server start", want: "unknown command"},
		{args: "ls", want: "PATH is missing: name a node, such as /app"},
		{args: "ls x", want: `PATH "x" must begin with a slash`},
		{args: "ls /x /y", want: `unexpected argument "/y"`},
		{args: "get /x/", want: "/x/"},
		{args: "set /x", want: "DATA is missing"},
		{args: "set /x one two", want: "put DATA in quotes"},
		{args: "set / x", want: "belongs to the server"},
		{args: "create /zookeeper/x", want: "belongs to the server"},
		{args: "create --mode fast /x", want: `"fast" must be one of persistent, container, ttl`},
		{args: "rm -r /", want: "belongs to the server"},
		{args: "rm -r --version 1 /x", want: "contradict each other"},
		{args: "rm --version -7 /x", want: "must not be negative"},
		{args: "set --version -2 /x data", want: "must not be negative"},
		{args: "acl set --version -2 /x open", want: "must not be negative"},
		{args: "rm --version 4294967295 /x", want: `--version must be a whole number: "4294967295"`},
		{args: "set --version 4294967295 /x data", want: `--version must be a whole number: "4294967295"`},
		{args: "acl set --version 4294967295 /x open", want: `--version must be a whole number: "4294967295"`},
		{args: "acl set /x", want: "LIST is missing"},
		{args: "acl set /x world:anyone:q", want: "is not a right"},
		{args: "import /", want: "belongs to the server"},
		{args: "import /x file", want: "the input comes from standard input"},
		{args: "own-server stop now", want: `unexpected argument "now"`},
		{args: "revoke --records --session 0x1 /x", want: "--records shows all holders"},
		{args: "lock --connect a:1 --sasl-user ann /x -- true", want: "need each other"},
		{args: "lock --connect a:1 --sasl-password-file f /x -- true", want: "need each other"},
		{
			args: "lock --connect a:1 --sasl-user a --sasl-password-file /nonexistent /x -- true",
			want: "--sasl-password-file: open /nonexistent",
		},
		{args: "lock --connect a:1 --tls-ca /nonexistent /x -- true", want: "--tls-ca: open /nonexistent"},
		{args: "lock --connect a:1 --tls-ca /dev/null /x -- true", want: "contains no PEM certificate"},
		{args: "lock --connect a:1 --tls-cert c /x -- true", want: "--tls-cert and --tls-key need each other"},
		{
			args: "lock --connect a:1 --tls-cert /nonexistent --tls-key /nonexistent /x -- true",
			want: "--tls-cert /nonexistent",
		},
		{args: "lock /x -- true", env: "TURNSTILE_CONNECT=", want: "TURNSTILE_CONNECT is empty; set it to"},
		{args: "lock /x -- true", env: "TURNSTILE_TLS=true", want: "TURNSTILE_TLS needs --connect"},
		{args: "lock /x -- true", env: "TURNSTILE_TLS_CA=ca.pem", want: "TURNSTILE_TLS_CA needs --connect"},
		{args: "lock --connect a:1 --tls-ca= /x -- true", want: "--tls-ca is empty"},
		{args: "lock --connect a:1 --sasl-user= /x -- true", want: "--sasl-user is empty"},
		{
			args: "lock --connect a:1 /x -- true", env: "TURNSTILE_AUTH=",
			want: "environment variable TURNSTILE_AUTH: it is empty",
		},
		{args: "queue put --key= /q body", want: "--key is empty"},
		{args: "revoke --reason r --node= /x", want: "--node is empty"},
		{args: "serve --sasl-users=", want: "--sasl-users is empty"},
		{
			args: "lock /x -- true", env: "TURNSTILE_OWN_SERVER=never",
			want: "TURNSTILE_OWN_SERVER=never forbids this user's own server",
		},
		{
			args: "queue len /x", env: "TURNSTILE_OWN_SERVER=never",
			want: "name the servers with --connect or TURNSTILE_CONNECT",
		},
		{
			args: "ls /x", env: "TURNSTILE_OWN_SERVER=no",
			want: "TURNSTILE_OWN_SERVER: \"no\" must be one of auto, never",
		},
		{args: "ls /x", env: "TURNSTILE_IDLE_EXIT=soon", want: "TURNSTILE_IDLE_EXIT: \"soon\" is not a duration"},
		{args: "lock /x -- true", env: "TURNSTILE_WAIT=", want: "environment variable TURNSTILE_WAIT"},
		{args: "lock /x -- true", env: "TURNSTILE_WAIT=soon", want: "environment variable TURNSTILE_WAIT"},
		{args: "lock /x -- true", env: "TURNSTILE_NO_WAIT=maybe", want: "environment variable TURNSTILE_NO_WAIT"},
		{args: "lock --connect unix:/" + strings.Repeat("x", 200) + " /x -- true", want: "choose a shorter one"},
		{args: "serve --in-memory --listen unix:/" + strings.Repeat("x", 200), want: "choose a shorter one"},
		{args: "who", want: "PATH is missing"},
		{args: "lock /x y -- echo", want: `PATH "y" must begin with a slash`},
		{args: "lock /x /x -- echo", want: "/x is named twice"},
		{args: "lock /x /bin/sh", want: "put -- before the command: turnstile lock /x -- /bin/sh"},
		{args: "lock --shared /x /y -- echo", want: "leave --shared and --permits out"},
		{args: "lock --permits 1/2 /x /y -- echo", want: "leave --shared and --permits out"},
		{args: "lock --layout curator-rw /x /y -- echo", want: "--layout curator-rw does not support several PATHs"},
		{args: "lock --layout zab /x -- echo", want: `"zab" must be one of curator, curator-rw, kazoo, both`},
		{args: "lock --shared --permits 1/2 /x -- echo", want: "--permits and --shared contradict each other"},
		{args: "lock --permits 1/2 --layout both /x -- echo", want: "--permits supports only --layout curator"},
		{args: "lock --permits 2 /x -- echo", want: `"2" must be N/LIMIT`},
		{args: "lock --permits 0/2 /x -- echo", want: "at least 1"},
		{args: "lock --permits 3/2 /x -- echo", want: "N must not exceed LIMIT"},
		{args: "lock --new-limit /x -- echo", want: "--new-limit is for --permits"},
		{args: "lock --delay 1 --permits 1/2 /x -- echo", want: "--delay is for locks"},
		{args: "elect", want: "PATH is missing: name the election"},
		{args: "elect /e", want: "the command is missing: name one to run while elected, or use --observe"},
		{args: "elect /e echo", want: "put -- before the command: turnstile elect /e -- echo"},
		{args: "elect /e /f -- echo", want: "an election has one PATH"},
		{args: "elect /e --", want: "no command after --"},
		{args: "elect /e ls -l", want: "flags of the command to run go after --"},
		{args: "elect -c true /e -- echo", want: "contradict each other"},
		{args: "elect -n -w 1 /e -- echo", want: "--no-wait and --wait contradict each other"},
		{args: "elect --observe /e -- echo", want: "--observe runs no command"},
		{args: "elect --observe -n /e", want: "leave --no-wait, --wait and --once out"},
		{args: "elect --json /e -- echo", want: "--json is for --observe"},
		{args: "elect --layout zab /e -- echo", want: `"zab" must be one of latch, selector, kazoo, both, support`},
		{args: "elect --layout support --delay 1s /e -- echo", want: "--layout support has no --delay"},
		{args: "elect --on-lost ignore /e -- echo", want: `"ignore" must be one of term, kill`},
		{args: "revoke /x", want: "--reason is missing"},
		{args: "revoke --reason r", want: "PATH is missing"},
		{args: "revoke --reason r x", want: "must begin with a slash"},
		{args: "revoke --reason r --within 0 /x", want: "--within must not be 0"},
		{args: "revoke --records --force /x", want: "--records revokes nothing"},
		{args: "who x", want: "must begin with a slash"},
		{args: "queue frob", want: `unknown command "frob"`},
		{args: "queue frob --connect 127.0.0.1:1 /q", want: `unknown command "frob" for "turnstile queue"`},
		{args: "frob --connect 127.0.0.1:1 /q", want: `unknown command "frob" for "turnstile"`},
		{args: "queue --connect 127.0.0.1:1 /q", want: "unknown flag: --connect"},
		{args: "queue put", want: "PATH is missing: name the queue"},
		{args: "queue put q body", want: `PATH "q" must begin with a slash, such as /mail`},
		{args: "queue put / body", want: "belongs to the server: choose another path, such as /mail"},
		{args: "queue put /zookeeper/q body", want: "belongs to the server"},
		{args: "queue put /q/ body", want: "/q/"},
		{args: "queue put /q two words", want: "quote a BODY of several words"},
		{args: "queue put /q body --lines", want: "--lines reads items from standard input"},
		{args: "queue put /q --lines --key k", want: "--key is for one item"},
		{args: "queue put /q body --null", want: "--null is for --lines"},
		{args: "queue put /q body --priority 101", want: "from -100 to 100"},
		{args: "queue put /q body --delay soon", want: `"soon" is not a duration`},
		{args: "queue put /q body --header a", want: "must be name=value"},
		{args: "queue put /q body --header =a", want: "must be name=value"},
		{args: "queue put /q body --header a=1 --header a=2", want: "each name must be used once"},
		{args: "queue take", want: "PATH is missing: name the queue"},
		{args: "queue take /q cat", want: "put -- before the command: turnstile queue take /q -- cat"},
		{args: "queue take /q cat -x", want: "flags of the command to run go after --"},
		{args: "queue take /q /r -- cat", want: "a queue has one PATH"},
		{args: "queue take /q -n 0", want: "-n must be at least 1"},
		{args: "queue take /q -n 1001", want: "-n is at most 1000 for items that are given back"},
		{args: "queue take /q --ack -- cat", want: "--ack is for printing"},
		{args: "queue take /q --json -- cat", want: "--json and --null are for printing"},
		{args: "queue take /q --json --null", want: "contradict each other"},
		{args: "queue take /q --no-wait --wait 1 --ack", want: "--no-wait and --wait contradict each other"},
		{args: "queue take /q --on-lost ignore -- cat", want: `"ignore" must be one of term, kill`},
		{args: "queue work /q", want: "the command is missing: name one to run for each item"},
		{args: "queue work /q --workers 0 -- cat", want: "--workers must be from 1 to 1000"},
		{args: "queue work /q --max-attempts -1 -- cat", want: "--max-attempts must not be negative"},
		{args: "queue work /q --max-dead -1 -- cat", want: "--max-dead must not be negative"},
		{args: "queue work /q --until done -- cat", want: `"done" must be one of signal, idle, empty`},
		{args: "queue work /q --on-stop wait -- cat", want: `"wait" must be one of signal, finish`},
		{args: "queue work /q --max-attempts -1 -- cat", want: "--max-attempts must not be negative"},
		{args: "queue work /q --backoff 0 -- cat", want: "--backoff must not be 0"},
		{args: "queue work /q --backoff 96000h -- cat", want: "--backoff is at most ten years"},
		{args: "queue ls", want: "PATH is missing"},
		{args: "queue ls /q -n -1", want: "-n must not be negative"},
		{args: "queue len /q /r", want: "unexpected argument"},
		{args: "queue purge q --yes", want: "must begin with a slash"},
		{args: "queue dead requeue /q", want: "name ids that turnstile queue dead ls shows, or use --all"},
		{args: "queue dead purge /q --all abc", want: "ids and --all contradict each other"},
		{args: "counter frob", want: `unknown command "frob"`},
		{args: "counter add", want: "PATH is missing: name a node, such as /visits"},
		{args: "counter add / 1", want: "belongs to the server"},
		{args: "counter add /x one", want: `"one" is not a whole number of at most 64 bits`},
		{args: "counter add /x 1 2", want: `unexpected argument "2"`},
		{args: "counter add /x -5", want: "a negative number goes after --"},
		{args: "counter add /x --up-to much", want: `--up-to must be a whole number: "much"`},
		{args: "counter add --layout short /x", want: `"short" must be one of long, int, text`},
		{args: "counter set /x", want: "N is missing"},
		{args: "counter add /x", env: "TURNSTILE_BY=x", want: "environment variable TURNSTILE_BY"},
		{args: "sequence next", want: "PATH is missing: name a node, such as /ids"},
		{args: "sequence next /x 5", want: `unexpected argument "5"`},
		{args: "group join g", want: `PATH "g" must begin with a slash`},
		{args: "group join /g --", want: "no command after --"},
		{args: "group join /g cat", want: "put -- before the command: turnstile group join /g -- cat"},
		{args: "group join /g cat -x", want: "flags of the command to run go after --"},
		{args: "group join --json /g -- cat", want: "--json is for use without a command"},
		{args: "group join --layout party --data x /g", want: "--data is for --layout member"},
		{args: "group ls --layout zab /g", want: `"zab" must be one of member, party, shallow`},
		{args: "barrier wait", want: "PATH is missing: name a node, such as /deploy/hold"},
		{args: "barrier enter --parties some /b", want: "--parties must be a whole number"},
		{args: "barrier set /zookeeper/b", want: "belongs to the server"},
		{args: "discover register", want: "SERVICE is missing"},
		{args: "discover register a/b -- cat", want: `SERVICE "a/b" cannot be the name of a node`},
		{args: "discover ls ..", want: `SERVICE ".." cannot be the name of a node`},
		{args: "discover register a b -- cat", want: `unexpected argument "b"`},
		{args: "discover ls a b", want: `unexpected argument "b"`},
		{args: "share /s --items-file f", want: "the command is missing: name one to run for each item"},
		{args: "share /s -- cat", want: "--items-file is missing"},
		{args: "share /s /t --items-file f -- cat", want: "items are shared at one PATH"},
		{args: "share /s --items-file /nonexistent -- cat", want: "--items-file: open /nonexistent"},
		{args: "share /s --items-file /dev/null -- cat", want: "has no items"},
		{args: "share /s --items-file f --settle 0 -- cat", want: "--settle must not be 0"},
		{args: "share /s --items-file f --retry-delay 0 -- cat", want: "--retry-delay must not be 0"},
		{args: "share /s --items-file f --on-lost ignore -- cat", want: `"ignore" must be one of term, kill`},
		{args: "serve now", want: `unexpected argument "now"`},
		{args: "serve --data d --in-memory", want: "--data and --in-memory contradict each other: leave one out"},
		{args: "serve --in-memory --tls-ca ca", want: "--tls-ca needs --tls-cert"},
		{args: "serve --in-memory --tls-cert c", want: "need each other"},
		{args: "serve --in-memory --tls-listen :1", want: "--tls-listen needs --tls-cert"},
		{args: "serve --in-memory --sasl-users /nonexistent", want: "--sasl-users: open /nonexistent"},
		{args: "serve --in-memory --sasl-users /etc/hostname", want: "want user:password"},
		{args: "serve --in-memory --require-sasl", want: "--require-sasl needs --sasl-users"},
		{args: "serve --in-memory --words ruok,stats", want: `"stats" does not have four letters`},
		{args: "serve --in-memory --max-sessions -2", want: "--max-sessions: want a number above 0, or -1"},
		{args: "bench frob", want: "frob"},
		{args: "bench lock --goroutines 0", want: "at least 1"},
		{args: "bench lock --locks 0", want: "at least 1"},
		{args: "bench lock --processes 0", want: "at least 1"},
		{args: "bench lock --strict --retain 1s", want: "--strict and --retain contradict each other"},
		{args: "bench lock --duration 0", want: "must not be 0"},
		{args: "bench lock --layout curator-rw", want: `"curator-rw" must be one of curator, kazoo, both`},
		{args: "bench lock --prefix bench", want: "--prefix: PATH \"bench\" must begin with a slash"},
		{args: "version now", want: "unexpected argument"},
		{args: "man", want: "DIR is missing"},
		{args: "man /dev/null/x", want: "/dev/null"},
	} {
		t.Run(test.env+" "+test.args, func(t *testing.T) {
			t.Parallel()
			code, stdout, stderr := runHere(t, []string{test.env}, strings.Fields(test.args)...)
			if code != command.ExitUsage {
				t.Errorf("exit code %d, want %d", code, command.ExitUsage)
			}
			if stdout != "" {
				t.Errorf("standard output %q, want none", stdout)
			}
			ours := strings.HasPrefix(stderr, "turnstile: ") && strings.Count(stderr, "\n") == 1
			if !ours || !strings.Contains(stderr, test.want) {
				t.Errorf("standard error %q, want one line with %q", stderr, test.want)
			}
		})
	}
}

// Promise: 9
func TestMessagesSayWhatToDoNext(t *testing.T) {
	t.Parallel()
	_, _, stderr := runHere(t, nil, "lock")
	if want := "turnstile lock --help shows how to use it"; !strings.Contains(stderr, want) {
		t.Errorf("standard error %q, want %q in it", stderr, want)
	}
}
