package server

import (
	"encoding/asn1"
	"encoding/hex"
	"strings"
	"testing"
)

// part is an attribute of a name for a test.
func part(t *testing.T, oid string, tag int, value string) subjectAttribute {
	t.Helper()
	var a subjectAttribute
	for number := range strings.SplitSeq(oid, ".") {
		n := 0
		for _, digit := range number {
			n = n*10 + int(digit-'0')
		}
		a.Type = append(a.Type, n)
	}
	a.Value = asn1.RawValue{Class: asn1.ClassUniversal, Tag: tag, Bytes: []byte(value)}
	return a
}

// nameOf encodes a name.
func nameOf(t *testing.T, sets ...subjectSET) []byte {
	t.Helper()
	der, err := asn1.Marshal(sets)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

// Object identifiers of attributes.
const (
	oidCN, oidSN, oidC, oidO, oidOU = "2.5.4.3", "2.5.4.4", "2.5.4.6", "2.5.4.10", "2.5.4.11"
	oidTitle, oidGN, oidStreet      = "2.5.4.12", "2.5.4.42", "2.5.4.9"
	oidDC, oidUID                   = "0.9.2342.19200300.100.1.25", "0.9.2342.19200300.100.1.1"
	oidEmail                        = "1.2.840.113549.1.9.1"
)

// subjects are names, and what X500Principal.getName of OpenJDK 17 says of them. TestJavaReadsTheSame asks it again.
func subjects(t *testing.T) map[string][]byte {
	t.Helper()
	utf8, printable, ia5 := asn1.TagUTF8String, asn1.TagPrintableString, asn1.TagIA5String
	one := func(oid string, tag int, value string) []byte { return nameOf(t, subjectSET{part(t, oid, tag, value)}) }
	return map[string][]byte{
		"": nameOf(t),
		`CN=dev,O=abc \, com,C=US`: nameOf(t, subjectSET{part(t, oidC, printable, "US")},
			subjectSET{part(t, oidO, utf8, "abc , com")}, subjectSET{part(t, oidCN, utf8, "dev")}),
		"1.2.840.113549.1.9.1=#1605616e6e4078,CN=ann": nameOf(t, subjectSET{part(t, oidCN, utf8, "ann")},
			subjectSET{part(t, oidEmail, ia5, "ann@x")}),
		"2.5.4.42=#0c03416e6e":        one(oidGN, utf8, "Ann"),
		"2.5.4.4=#1303446f65":         one(oidSN, printable, "Doe"),
		"2.5.4.12=#0c02c3a9":          one(oidTitle, utf8, "é"),
		`CN=\#1`:                      one(oidCN, utf8, "#1"),
		`CN=a\#b\=c\"d\\e\<f\>g\;h\+`: one(oidCN, utf8, `a#b=c"d\e<f>g;h+`),
		`CN=\ \ two\ \ `:              one(oidCN, utf8, "  two  "),
		`CN=\ \ \ `:                   one(oidCN, utf8, "   "),
		"CN=\\\r\\ x\ty\\\r":          one(oidCN, utf8, "\r x\ty\r"),
		`CN=a\00b`:                    one(oidCN, utf8, "a\x00b"),
		"CN=a\u00a0\n":                one(oidCN, utf8, "a\u00a0\n"),
		"CN=":                         one(oidCN, utf8, ""),
		"CN=日本 \U0001f600":            one(oidCN, utf8, "日本 \U0001f600"),
		"CN=\ufffdber":                one(oidCN, asn1.TagT61String, "\xfcber"),
		`CN=\00A\00B`:                 one(oidCN, asn1.TagBMPString, "\x00A\x00B"),
		"CN=#120131":                  one(oidCN, asn1.TagNumericString, "1"),
		"CN=gs":                       one(oidCN, tagGeneralString, "gs"),
		"CN=y+UID=x,DC=example,STREET=\\#5 Main": nameOf(t, subjectSET{part(t, oidStreet, printable, "#5 Main")},
			subjectSET{part(t, oidDC, ia5, "example")},
			subjectSET{part(t, oidUID, utf8, "x"), part(t, oidCN, utf8, "y")}),
		"OU=b,OU=a": nameOf(t, subjectSET{part(t, oidOU, utf8, "a")}, subjectSET{part(t, oidOU, utf8, "b")}),
	}
}

func TestSubjectIsWhatJavaCallsIt(t *testing.T) {
	t.Parallel()
	for want, der := range subjects(t) {
		if got, err := subjectName(der); got != want || err != nil {
			t.Errorf("%s: got %q %v, want %q", hex.EncodeToString(der), got, err, want)
		}
	}
	for _, der := range []string{"", "30", "3005310330010c", "30003000", "0400"} {
		p, err := hex.DecodeString(der)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := subjectName(p); err == nil {
			t.Errorf("%q: got %q, want an error", der, got)
		}
	}
}

// FuzzSubject checks that no name makes the formatter panic, and that what it gives is one line of UTF-8 without a NUL.
func FuzzSubject(f *testing.F) {
	f.Add([]byte{0x30, 0})
	f.Fuzz(func(t *testing.T, der []byte) {
		name, err := subjectName(der)
		if err == nil && (strings.ContainsRune(name, 0) || strings.ToValidUTF8(name, "") != name) {
			t.Errorf("%x: got %q", der, name)
		}
	})
}
