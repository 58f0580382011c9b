package server

// The TLS handshake, and identities from client certificates.

import (
	"cmp"
	"crypto/tls"
	"encoding/asn1"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/seed-a3166700/turnstile/internal/wire"
)

// handshakeTLS does the TLS handshake, if any, and makes a verified client certificate an identity of the connection.
// It runs before the owner knows the connection.
func (c *conn) handshakeTLS() bool {
	nc, ok := c.nc.(*tls.Conn)
	if !ok {
		return true
	}
	if err := nc.Handshake(); err != nil { //nolint:noctx // the connection has a deadline, and kill ends it
		c.srv.handshakeFailed(c.remote, err)
		return false
	}
	chains := nc.ConnectionState().VerifiedChains
	if len(chains) == 0 || len(chains[0]) == 0 {
		return true
	}
	subject, err := subjectName(chains[0][0].RawSubject)
	if err != nil {
		c.srv.handshakeFailed(c.remote, err)
		return false
	}
	c.addID(wire.ID{Scheme: "x509", ID: subject})
	if c.srv.cfg.X509SuperUser != "" && subject == c.srv.cfg.X509SuperUser {
		c.addSuper()
	}
	return true
}

// handshakeFailed logs a warning the first time, the second, the fourth and so on, because a client that cannot connect
// tries again and again. A client that only connects and closes, as port checks do, is logged at level info, and so is
// one whose connection this server closes.
func (s *Server) handshakeFailed(client string, err error) {
	tell, n := s.cfg.Logger.Info, int64(0)
	if !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) {
		if n = s.stats.tlsFailed.Add(1); n&(n-1) == 0 {
			tell = s.cfg.Logger.Warn
		}
	}
	tell("server: TLS handshake failed", "client", client, "err", err, "times", n)
}

// subjectKeywords are the attribute names of RFC 2253. Other attributes are written as their object identifiers.
var subjectKeywords = map[string]string{
	"2.5.4.3": "CN", "2.5.4.7": "L", "2.5.4.8": "ST", "2.5.4.10": "O", "2.5.4.11": "OU", "2.5.4.6": "C",
	"2.5.4.9":                    "STREET",
	"0.9.2342.19200300.100.1.25": "DC", "0.9.2342.19200300.100.1.1": "UID",
}

// subjectAttribute is an attribute of a name, with its value as it is encoded.
type subjectAttribute struct {
	Type  asn1.ObjectIdentifier
	Value asn1.RawValue
}

// subjectSET is a part of a name. encoding/asn1 decodes a type of this ending as a SET.
type subjectSET []subjectAttribute

// subjectName formats a certificate's subject by RFC 2253, last part first, exactly as Java's X500Principal.getName
// does: ZooKeeper's access lists contain that text.
func subjectName(der []byte) (string, error) {
	var seq []subjectSET
	rest, err := asn1.Unmarshal(der, &seq)
	if err == nil && len(rest) > 0 {
		err = errors.New("trailing data")
	}
	if err != nil {
		return "", fmt.Errorf("the subject: %w", err)
	}
	parts := make([]string, 0, len(seq))
	for _, set := range slices.Backward(seq) {
		multi := make([]string, 0, len(set))
		for _, a := range set {
			multi = append(multi, a.String())
		}
		parts = append(parts, strings.Join(multi, "+"))
	}
	return strings.Join(parts, ","), nil
}

// tagGeneralString is missing in encoding/asn1.
const tagGeneralString = 27

// String formats an attribute. A value without a keyword, or one that is no text for Java, is written in hexadecimal.
func (a subjectAttribute) String() string {
	oid := a.Type.String()
	keyword, ok := subjectKeywords[oid]
	text := a.Value.Class == asn1.ClassUniversal && slices.Contains([]int{
		asn1.TagPrintableString, asn1.TagT61String, asn1.TagIA5String, tagGeneralString, asn1.TagBMPString,
		asn1.TagUTF8String,
	}, a.Value.Tag)
	if !ok || !text {
		return cmp.Or(keyword, oid) + "=#" + hex.EncodeToString(a.Value.FullBytes)
	}
	return keyword + "=" + escapeName(javaText(a.Value.Bytes))
}

// escapeName escapes what Java does: signs, NUL, and white space at both ends.
func escapeName(s string) string {
	inner := strings.Trim(s, " \r")
	lead := len(s) - len(strings.TrimLeft(s, " \r"))
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == 0:
			b.WriteString(`\00`)
			continue
		case strings.ContainsRune(`,=+<>#;"\`, r), i < lead, i >= lead+len(inner):
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// javaText decodes UTF-8 as Java does, which takes the bytes of every kind of string for UTF-8. What is none becomes
// replacement characters, as many as Java puts there.
func javaText(p []byte) string {
	var b strings.Builder
	for len(p) > 0 {
		r, size := utf8.DecodeRune(p)
		if r == utf8.RuneError && size == 1 {
			size = javaMalformed(p)
		}
		b.WriteRune(r)
		p = p[size:]
	}
	return b.String()
}

// javaMalformed returns for how many bytes that are not UTF-8 Java puts one replacement character.
func javaMalformed(p []byte) int {
	continues := func(i int) bool { return i < len(p) && p[i]&0xc0 == 0x80 }
	switch {
	case p[0]>>4 == 0xe:
		switch {
		case !continues(1) || p[0] == 0xe0 && p[1] < 0xa0:
			return 1
		case !continues(2):
			return 2
		}
		return 3 // a surrogate
	case 0xf0 <= p[0] && p[0] <= 0xf4:
		switch {
		case !continues(1) || p[0] == 0xf0 && p[1] < 0x90 || p[0] == 0xf4 && p[1] > 0x8f:
			return 1
		case !continues(2):
			return 2
		}
		return 3
	}
	return 1
}
