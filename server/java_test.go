package server_test

import (
	"encoding/hex"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/seed-a3166700/turnstile/internal/test/peer"
	"github.com/seed-a3166700/turnstile/server"
	"github.com/seed-a3166700/turnstile/server/internal/javafile"
)

// pairs writes what a file says as testdata/Reads.java does.
func pairs(values map[string]string, err error) string {
	if err != nil {
		return "refused"
	}
	answer := []string{"ok"}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		answer = append(answer, hex.EncodeToString([]byte(key))+"="+hex.EncodeToString([]byte(values[key])))
	}
	return strings.Join(answer, " ")
}

// Names of certificates, JAAS files and properties files mean what they mean to Java. Of JAAS files this holds where we
// do not refuse on purpose what Java takes.
func TestJavaReadsTheSame(t *testing.T) {
	t.Parallel()
	peer.Need(t, "java")
	var asked, want []string
	ask := func(kind, text, answer string) {
		asked = append(asked, kind+" "+hex.EncodeToString([]byte(text)))
		want = append(want, answer)
	}
	for _, der := range server.Subjects(t) {
		name, err := server.SubjectName(der)
		if err != nil {
			t.Fatalf("%x: %v", der, err)
		}
		ask("x500", string(der), "ok "+hex.EncodeToString([]byte(name)))
	}
	const module = "org.apache.zookeeper.server.auth.DigestLoginModule"
	for _, options := range []string{
		`user_bob="a\"b;c=d}{"`, `user_bob=plainword`, `user_bob=a.b-c_d$e*5`, `"user_bob"="q"`, `user_bob=""`,
		`user_bob="x" user_ann="y"`,
		`user_bob="pa$$w0rd" debug=true`, `user_bob="x"; org.other.Module optional user_ann="y"`,
		`user_bob="\303\274\7\47x\400\8\q\n\t"`, `user_bob="ü"`, `user_bob=üé`, `user_bob="${{x}}$ {y} ${z"`,
		`user_bob="x"user_ann="y"`, `user_bob = "x" // user_ann="y"`, "user_bob=\"x\" /* \n */ user_ann=\"y\"",
		"user_bob=\"x\" / z\n user_ann=\"y\"",
		`user_bob="x" user_bob="y"`, `user_a.b="x"`, `"user_a b@c"="x"`, `user_=x`,
		`user_bob='x y'`, `user_bob=123`, `user_bob=1a`, `user_bob=-x`, `user_bob=.x`, `user_bob=a@b`, `user_bob=#x`,
		`user_bob=`, `user_bob`, `user_bob x`,
		`user_bob="x", user_ann="y"`, `user_bob="${nosuch}"`, `user_bob="x${nosuch}y"`, `user_bob=${nosuch}`,
		`user_bob="x" }`, `user_a@b=x`,
		"user_bob=\"\u0085\"", "user_bob=\u0085", `user_bob=a=b`, `user_bob="x";;`,
	} {
		for _, text := range []string{
			"Server { " + module + " required " + options + " ; };",
			"Client{x Optional a=b;y required;};Server{" + module + " SUFFICIENT " + options + ";};",
		} {
			ask("jaas", text, pairs(javafile.JAASUsers(text)))
		}
	}
	const bob = module + ` required user_bob="x"; `
	for _, text := range []string{
		"Server {" + bob + "}", "Server {" + bob, "Server " + bob, "Server {" + module + ` user_bob="x"; };`,
		"# x\nServer {" + bob + "};",
		"Server {" + bob + "}; Server {" + bob + "};", "Server {" + bob + bob + "};",
		"Server {" + bob + `}; Client { x required y="${nosuch`,
		"Server {" + bob + "}; Client { x; };", `"Server" {` + bob + "};", "/* Server {}; */ Server {" + bob + "};",
		"Server {" + bob + "}; ;", "Server {" + bob + "}; 5",
	} {
		ask("jaas", text, pairs(javafile.JAASUsers(text)))
	}
	for _, text := range []string{
		"a=b", " a = b c", "a:b\r\nc d\re=f\\\r\n  g\\\n\th", "a\\ b\\=c\\:d=e=f:g",
		"a=\\u00e9\\ud83d\\ude00\\t\\q\\\\", "#x\n!y\n \\\n a=b", "a=b\\", "a=b\\\\\nc=d",
		"a\n=b\n:c\n\n  \nd", "a=\\u12", "a=\\u00zz", "a==b", "a : = b", "a=\\\n\\\nb", "\fa\f=\fb", "a=b\na=c",
		"a=b\\\n#c\nd=e", "a=b\\\n",
	} {
		ask("properties", text, strings.ReplaceAll(pairs(properties(text)), "\n", ""))
	}
	cmd := exec.CommandContext(t.Context(), "java", "-Xmx96m", "-XX:TieredStopAtLevel=1", "testdata/Reads.java")
	cmd.Stdin, cmd.Stderr = strings.NewReader(strings.Join(asked, "\n")+"\n"), t.Output()
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(got) != len(want) {
		t.Fatalf("got %d answers, want %d", len(got), len(want))
	}
	for i, answer := range got {
		if keep, ours := userOptions(answer), want[i]; keep != ours {
			kind, text, _ := strings.Cut(asked[i], " ")
			b, _ := hex.DecodeString(text)
			t.Errorf("%s %q: Java says %s, we say %s", kind, b, plain(keep), plain(ours))
		}
	}
}

// userOptions keeps of the options of a JAAS file those that are users, without their prefix.
func userOptions(answer string) string {
	prefix := hex.EncodeToString([]byte("user_"))
	if !strings.Contains(answer, prefix) {
		return answer
	}
	var keep []string
	for i, word := range strings.Fields(answer) {
		if user, ok := strings.CutPrefix(word, prefix); ok || i == 0 {
			keep = append(keep, user)
		}
	}
	return strings.Join(keep, " ")
}

// plain decodes an answer for a message.
func plain(answer string) string {
	var b strings.Builder
	for word := range strings.FieldsSeq(answer) {
		for part := range strings.SplitSeq(word, "=") {
			if text, err := hex.DecodeString(part); err == nil {
				part = string(text)
			}
			fmt.Fprintf(&b, "%q ", part)
		}
	}
	return b.String()
}

// properties are those of a file, the last one of each key.
func properties(text string) (map[string]string, error) {
	list, err := javafile.Properties(strings.NewReader(text))
	values := make(map[string]string)
	for _, p := range list {
		values[p.Key] = p.Value
	}
	return values, err
}
