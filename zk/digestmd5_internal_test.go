package zk

import (
	"errors"
	"strings"
	"testing"
)

func TestDigestMatchesTheExampleOfTheRFC(t *testing.T) {
	t.Parallel()
	d := digest{ // RFC 2831, section 4
		user: DigestMD5{User: "chris", Password: "secret"}, realm: "elwood.innosoft.com",
		nonce: "OA6MG9tEQGm2hh", cnonce: "OA6MHXh6VqTrRk", uri: "imap/elwood.innosoft.com", utf8: true,
	}
	if got, want := d.compute("AUTHENTICATE"), "d388dad90d4bbd760a152321f2143af7"; got != want {
		t.Errorf("response %s, want %s", got, want)
	}
	if got, want := d.compute(""), "ea40f60335c427b5527b84dbabcdfffd"; got != want {
		t.Errorf("rspauth %s, want %s", got, want)
	}
	if got := d.response(); !strings.Contains(got, `username="chris"`) || !strings.Contains(got, "nc=00000001,") {
		t.Errorf("message %s", got)
	}
}

func TestChallengeWithQuotesAndCommasIsRead(t *testing.T) {
	t.Parallel()
	const challenge = `realm="a, \"b\" c\\", nonce="n=1",qop="auth,auth-int",charset=utf-8,algorithm=md5-sess,`
	got, err := parseChallenge(challenge)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"realm": `a, "b" c\`, "nonce": "n=1", "qop": "auth,auth-int", "charset": "utf-8", "algorithm": "md5-sess",
	}
	for k, v := range want {
		if got[k] != v {
			t.Errorf("%s: got %q, want %q", k, got[k], v)
		}
	}
	for _, bad := range []string{"realm", `realm="open`} {
		if _, err := parseChallenge(bad); err == nil {
			t.Errorf("challenge %s was taken", bad)
		}
	}
}

// Promise: 18
func TestChallengeThatCannotBeMetIsRefused(t *testing.T) {
	t.Parallel()
	for challenge, met := range map[string]bool{
		`nonce="n",algorithm=md5-sess`:                      true,
		`nonce="n",algorithm=md5-sess,qop="auth-int, auth"`: true,
		`nonce="n",algorithm=md5-sess,qop="auth-int"`:       false, // each message would have to be signed
		`nonce="n",algorithm=md5`:                           false,
		`nonce="n"`:                                         false,
		`algorithm=md5-sess`:                                false,
		`nonce="n`:                                          false,
		"":                                                  false,
	} {
		x, err := DigestMD5{User: "bob", Password: "secret"}.Begin(t.Context(), "host")
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := x.Next(nil); err != nil {
			t.Fatal(err)
		}
		answer, _, err := x.Next([]byte(challenge))
		if met && (err != nil || len(answer) == 0) || !met && (!errors.Is(err, ErrAuthFailed) || answer != nil) {
			t.Errorf("%s: got %q, %v", challenge, answer, err)
		}
	}
}

func TestSecretIsHashedInLatin1IfItFits(t *testing.T) {
	t.Parallel()
	var d digest
	if got := d.encode("pässword"); got != "p\xe4ssword" {
		t.Errorf("got %q, want ISO 8859-1", got)
	}
	if got := d.encode("пароль"); got != "пароль" {
		t.Errorf("got %q, want UTF-8", got)
	}
}

// Promise: 9
func FuzzChallenge(f *testing.F) {
	f.Add(`realm="zk-sasl-md5",nonce="abc",charset=utf-8,algorithm=md5-sess`)
	f.Add(`a="\`)
	f.Fuzz(func(_ *testing.T, s string) { _, _ = parseChallenge(s) })
}
