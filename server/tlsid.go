package server

// The TLS handshake, and identities from client certificates.

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

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
	subject := subjectName(chains[0][0])
	c.addID(wire.ID{Scheme: "x509", ID: subject})
	if c.srv.cfg.X509SuperUser != "" && subject == c.srv.cfg.X509SuperUser {
		c.addSuper()
	}
	return true
}

// handshakeFailed logs a warning the first time, the second, the fourth and so on, because a client that cannot connect
// tries again and again. A client that only connects and closes, as port checks do, is logged at level info.
func (s *Server) handshakeFailed(client string, err error) {
	tell, n := s.cfg.Logger.Info, int64(0)
	if !errors.Is(err, io.EOF) {
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

// subjectName formats a certificate's subject by RFC 2253, last part first, as ZooKeeper's access lists contain it.
func subjectName(cert *x509.Certificate) string {
	var seq pkix.RDNSequence
	if rest, err := asn1.Unmarshal(cert.RawSubject, &seq); err != nil || len(rest) > 0 {
		return cert.Subject.String()
	}
	parts := make([]string, 0, len(seq))
	for _, rdn := range slices.Backward(seq) {
		var multi []string
		for _, a := range rdn {
			multi = append(multi, attribute(a))
		}
		parts = append(parts, strings.Join(multi, "+"))
	}
	return strings.Join(parts, ",")
}

func attribute(a pkix.AttributeTypeAndValue) string {
	oid := a.Type.String()
	if keyword, ok := subjectKeywords[oid]; ok {
		return keyword + "=" + escapeName(fmt.Sprint(a.Value))
	}
	der, err := asn1.Marshal(a.Value)
	if err != nil {
		return oid + "=" + escapeName(fmt.Sprint(a.Value))
	}
	return oid + "=#" + hex.EncodeToString(der)
}

func escapeName(s string) string {
	var b strings.Builder
	for i, r := range s {
		edge := (r == ' ' && (i == 0 || i == len(s)-1)) || (r == '#' && i == 0)
		if edge || strings.ContainsRune(`,=+<>;"\`, r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}
