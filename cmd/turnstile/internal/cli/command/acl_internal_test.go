package command

import (
	"slices"
	"strings"
	"testing"

	"github.com/seed-a3166700/turnstile/zk"
)

func entry(scheme, id string, perms zk.Perms) zk.ACL {
	return zk.ACL{Perms: perms, ID: zk.ID{Scheme: scheme, ID: id}}
}

func TestListsOfEntriesAreRead(t *testing.T) {
	t.Parallel()
	const r, hash = zk.PermRead, "7RJfAeIvrl4zdj6sS2fXrQHDvHM="
	for text, want := range map[string][]zk.ACL{
		"sasl:ann:r":                           {entry("sasl", "ann", r)},
		"sasl:ann:r, world:anyone:r":           {entry("sasl", "ann", r), entry("world", "anyone", r)},
		"auth::r":                              {entry("auth", "", r)},
		"digest:bob:" + hash + ":r,ip:::1/8:r": {entry("digest", "bob:"+hash, r), entry("ip", "::1/8", r)},
		`x509:CN=dev.com,O=abc \, com,L=Morris:r,x509:CN=bob,OU=e:r`: {
			entry("x509", `CN=dev.com,O=abc \, com,L=Morris`, r), entry("x509", "CN=bob,OU=e", r),
		},
		`x509:CN=a\\,1.2.3=#0c:r`: {entry("x509", `CN=a\\,1.2.3=#0c`, r)},
		`sasl:"a,b:r":r,sasl:"\"":r,sasl:"":r`: {
			entry("sasl", "a,b:r", r), entry("sasl", `"`, r), entry("sasl", "", r),
		},
		"sasl:ann:#0,sasl:bob:#64,sasl:c:#-1": {
			entry("sasl", "ann", 0), entry("sasl", "bob", 64), entry("sasl", "c", -1),
		},
	} {
		if got, err := ParseACL(text); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: got %+v %v, want %+v", text, got, err, want)
		}
	}
}

func TestWordsForListsHaveAnyCase(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]acl{
		"Open": {text: aclOpen}, "CREATOR": {text: aclCreator, list: zk.CreatorACL()},
	} {
		var got acl
		if err := got.Set(text); err != nil || got.text != want.text || !slices.Equal(got.list, want.list) {
			t.Errorf("%s: got %+v %v, want %+v", text, got, err, want)
		}
	}
}

func TestASchemeInAnotherCaseIsRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"World:anyone:r": "world", "sasl:ann:r,DIGEST:bob:x=:r": "digest", "X509:CN=a,O=b:r": "x509",
	} {
		if _, err := ParseACL(text); err == nil || !strings.Contains(err.Error(), "must be written "+want) {
			t.Errorf("%s: got %v, want how to write %s", text, err, want)
		}
	}
	if _, err := ParseACL("Custom:ann:r"); err != nil { // a provider of the server's own
		t.Error(err)
	}
}

// A slip must not make one identity, with a comma in it, of two entries: that would take rights from one of them.
func TestListsWithASlipAreRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                  "must be open, creator, or scheme:id:rights",
		"ann":                               "must be open",
		":ann:r":                            "must be open",
		"sasl:ann":                          "must be open",
		"sasl:ann:":                         "grants no rights",
		"sasl:ann:rx":                       "'x' is not a right",
		"sasl:ann:cdxa,world:anyone:r":      "'x' is not a right",
		"sasl:ann:r,world:anyone":           `"world:anyone" must be`,
		"sasl:ann,world:anyone:r":           `"sasl:ann" must be`,
		"sasl:ann:r,":                       `"" must be`,
		"sasl:ann:r,:x:r":                   `":x:r" must be`,
		"sasl:a,b:r":                        `"sasl:a" must be`,
		`sasl:"a,b":r,sasl:c`:               `"sasl:c" must be`,
		`sasl:"a,b"x:r`:                     "want a colon and rights behind the id in quotes",
		`sasl:"a,b:r`:                       "must be",
		"x509:CN=ann,O=Acme,world:anyone:r": `"x509:CN=ann,O=Acme" must be`,

		"sasl:ann:cdrwa;sasl:bob:r": "has a semicolon",
		"sasl:ann:cdrwa sasl:bob:r": "has a blank",
		`sasl:"ann:cdrwa`:           "begins with a double quote that does not end",
		"x509::r":                   "is empty",
		"x509:CN=ann, O=Acme:r":     "has a blank beside a comma",
		"x509:/O=Acme/CN=ann:r":     "has slashes",
		"world:anyone:644":          "'6' is not a right",
		"sasl:ann:#x":               `"#x" is not the number of rights`,
		"sasl:\xff:r":               "not UTF-8",
	} {
		if got, err := ParseACL(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %+v %v, want %q", text, got, err, want)
		}
	}
}

// What "turnstile acl get" prints, "acl set" and --acl take, its lines joined by commas.
func FuzzACL(f *testing.F) {
	f.Add("CN=dev.com,O=abc \\, com,L=Morris", "anyone", int32(31), int32(1))
	f.Add("a,b:r,world", "\"", int32(0), int32(-1))
	f.Add("\x1b[2J\n", "\xff", int32(64), int32(16))
	f.Add(`a\`, `",x=`, int32(3), int32(4))
	f.Fuzz(func(t *testing.T, first, second string, firstPerms, secondPerms int32) {
		list := []zk.ACL{
			entry("x509", first, zk.Perms(firstPerms)), entry("sasl", second, zk.Perms(secondPerms)),
			entry("my.scheme_1", first+second, zk.PermAll),
		}
		text := FormatACL(list)
		if got, err := ParseACL(text); err != nil || !slices.Equal(got, list) {
			t.Fatalf("%q: got %q %v, want %q", text, got, err, list)
		}
		if !plainText(text) {
			t.Errorf("%q cannot be printed", text)
		}
	})
}

func FuzzParseACL(f *testing.F) {
	f.Add(`x509:CN=a\\,1.2.3=#0c:r,sasl:"a,b":cdrwa, world:anyone:r`)
	f.Fuzz(func(t *testing.T, text string) {
		list, err := ParseACL(text)
		if err != nil || list == nil || text == aclCreator {
			return
		}
		for _, e := range list {
			if !isWord(e.ID.Scheme) {
				t.Errorf("%q: has the scheme %q", text, e.ID.Scheme)
			}
		}
	})
}
