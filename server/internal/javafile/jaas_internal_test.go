package javafile

import (
	"strings"
	"testing"
)

// jaasOf is a JAAS file with these options of the server.
func jaasOf(options string) string {
	return "Server { " + jaasModule + " required " + options + " ; };"
}

func TestJAASFilesThatAreNotUnderstoodAreRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                "no section Server",
		"Client { x required u=\"b\"; };": "no section Server",
		"// " + jaasOf(`user_bob="b"`):    "no section Server",
		jaasOf(``):                        "names no user",
		jaasOf("\n user_super=\"${super_password}\""):            "line 2: option user_super: ${super_password} is",
		jaasOf(`user_bob="x${/}y"`):                              "${/} is a placeholder",
		jaasOf(`user_bob="${{x}}${y}"`):                          "${y} is a placeholder",
		jaasOf(`user_bob='x y'`):                                 "line 1: want the value of option user_bob in double",
		jaasOf(`user_bob=secret@home`):                           "want an option, or ; behind the last one, not @",
		jaasOf(`user_bob=#secret`):                               "option user_bob, not #: put it in double quotes",
		jaasOf(`user_bob=123`):                                   "want the value of option user_bob, not a number",
		jaasOf(`user_bob=-5`):                                    "want the value of option user_bob, not a number",
		jaasOf(`user_bob=-x`):                                    "want the value of option user_bob, not -",
		jaasOf(`user_bob=`):                                      "want the value of option user_bob, not ;",
		jaasOf(`user_bob secret`):                                "want = behind the option user_bob, not another word",
		jaasOf(`user_bob="b", user_ann="a"`):                     "not ,",
		jaasOf(`user_bob="secret`):                               "line 1: a string does not end on its line",
		jaasOf("user_bob=\"secret\\\n\""):                        "a string does not end on its line",
		jaasOf("user_bob=\"b\xff\""):                             "not UTF-8",
		"Server { x.Krb5LoginModule required; };":                "login module x.Krb5LoginModule is not supported",
		"Server { " + jaasModule + " user_bob=\"b\"; };":         "want required, requisite, sufficient or optional",
		"Server { " + jaasModule + " required user_bob=\"b\";":   "the section does not end",
		"Server { " + jaasModule + " required user_bob=\"b\"":    "the section does not end",
		"Server { " + jaasModule + " required user_bob=\"b\"; }": "want ; behind the }",
		"Server { /* x user_bob=b; };":                           "*/",
		"Server x { user_bob=\"b\"; };":                          "want { behind the name of section Server",
		"# users\n" + jaasOf(`user_bob="b"`):                     "line 1: want the name of a section, not #",
		"Client { x; }; " + jaasOf(`user_bob="b"`):               "want a flag, not ;",
		jaasOf(`user_bob="b"`) + jaasOf(`user_bob="b"`):          "two sections Server",
	} {
		users, err := JAASUsers(text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v %v, want an error that says %q", text, users, err, want)
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: the error tells a password: %v", text, err)
		}
	}
}

func FuzzJAAS(f *testing.F) {
	f.Add(jaasOf(`user_bob="b"`))
	f.Add(jaasOf(`user_bob="\303${x"`))
	f.Add("/* // */ Server{a'\\")
	f.Fuzz(func(t *testing.T, text string) {
		users, err := JAASUsers(text)
		if err == nil && len(users) == 0 {
			t.Error("got neither a user nor an error")
		}
		for user, password := range users {
			if javaProperty().MatchString(password) {
				t.Errorf("the password of %q is a placeholder: %q", user, password)
			}
		}
	})
}
