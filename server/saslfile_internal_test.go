package server

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-a3166700/turnstile/server/internal/javafile"
)

func writeUsers(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "users")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// jaasOf is a JAAS file with these options of the server.
func jaasOf(options string) string {
	return "Server { org.apache.zookeeper.server.auth.DigestLoginModule required " + options + " ; };"
}

func TestUsersInCommentsAreIgnored(t *testing.T) {
	t.Parallel()
	const text = `/* Server { x required user_mallory="a"; }; */
Server {
  org.apache.zookeeper.server.auth.DigestLoginModule required
  // user_mallory="left the company"
  user_bob="b // no comment" /* user_mallory="b" */ user_carol="c\"};"  // user_mallory="c"
  / user_mallory="d"
  user_dave="\"\\";
};
Client { x required user_mallory="e"; }; // Server { x required user_mallory="f"; };
`
	want := map[string]string{"bob": "b // no comment", "carol": `c"};`, "dave": `"\`}
	got, err := javafile.JAASUsers(text)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("JAAS: %v %s", err, diff)
	}
	got, err = ReadSASLUsers(writeUsers(t, "# mallory:a\nbob:b // no comment\ncarol:c\"};\ndave:\"\\\n"))
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("lines: %v %s", err, diff)
	}
}

func TestInvalidFilesOfUsersAreRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                            "no users",
		"bob\n":                       "line 1",
		"bob:b\nann:a\nbob:c\n":       `line 3: "bob" is named twice`,
		"\ufeffbob:b\n":               "begins with a byte order mark",
		"bob:b\nann:${ANN}\n":         "line 2: ${ANN} is a placeholder",
		"bob:{{ .Values.bob }}":       "{{ .Values.bob }} is a placeholder",
		jaasOf(`user_bob="b"`):        "it is a JAAS file",
		"# passwords\n" + "Server\n{": "it is a JAAS file",
		"bob : b\n":                   "line 1: a blank beside a name",
		"bob: b\n":                    "line 1: a blank beside a name",
		"a:b\nc:d \n":                 "line 2: a blank beside a name",
	} {
		if users, err := ReadSASLUsers(writeUsers(t, text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v %v, want an error that says %q", text, users, err, want)
		}
	}
	if users, err := ReadSASLUsers(writeUsers(t, "bob:a${b}c$$\n")); err != nil || users["bob"] != "a${b}c$$" {
		t.Errorf("got %v %v, want a password that only looks like a placeholder", users, err)
	}
}
