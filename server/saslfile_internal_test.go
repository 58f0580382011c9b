package server

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func writeUsers(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "users")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestUsersInCommentsAreIgnored(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"JAAS": `/* Server { x required user_mallory="a"; }; */
Server {
  org.apache.zookeeper.server.auth.DigestLoginModule required
  // user_mallory="left the company"
  user_bob="b // no comment" /* user_mallory="b" */ user_carol='c"};'  // user_mallory="c"
  / user_mallory="d"
  user_dave="\"\\";
};
Client { x required user_mallory="e"; }; // Server { x required user_mallory="f"; };
`,
		"only users": "# mallory:a\nbob:b // no comment\ncarol:c\"};\ndave:\"\\\n",
	} {
		got, err := readSASLUsers(writeUsers(t, text))
		if err != nil {
			t.Errorf("%s: got %v", name, err)
		}
		if diff := cmp.Diff(map[string]string{"bob": "b // no comment", "carol": `c"};`, "dave": `"\`},
			got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestInvalidUserFilesAreRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                               "no users",
		"bob\n":                          "line 1",
		"Server { x required };":         "names no user",
		"Client { x user_bob=\"b\"; };":  "no section Server",
		"Server { x user_bob=\"b\";":     "does not end",
		"Server { x user_bob=\"b\"; }":   "want ;",
		"Server { x user_bob=\"b;\n };":  "a quoted string",
		"Server { x user_bob=; };":       "user_bob has no value",
		"Server { /* x user_bob=b; };":   "*/",
		"Server x { user_bob=\"b\"; };":  "want {",
		"// Server { user_bob=\"b\"; };": "no section Server",
	} {
		if users, err := readSASLUsers(writeUsers(t, text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v %v, want an error that says %q", text, users, err, want)
		}
	}
}

func FuzzJAAS(f *testing.F) {
	f.Add("Server { x required user_bob=\"b\"; };")
	f.Add("/* // */ Server{a'\\")
	f.Fuzz(func(_ *testing.T, text string) { _, _ = jaasUsers(text) })
}
