package server

// Authentication by SASL DIGEST-MD5.

import (
	"crypto/md5" //nolint:gosec // the mechanism is called DIGEST-MD5
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-a3166700/turnstile/internal/jute"
	"github.com/seed-a3166700/turnstile/internal/wire"
)

const (
	saslRealm   = "zk-sasl-md5"
	saslService = "zookeeper/" // prefix of every digest-uri
)

// saslServer is a connection's authentication by SASL DIGEST-MD5 (RFC 2831). The client sends an empty token and gets a
// challenge. It sends its response and gets a proof that the server knows the password too.
type saslServer struct {
	nonce string // of the open challenge, "" if there is none
	done  bool   // the client has authenticated
}

func (c *conn) saslDone() bool { return c.sasl != nil && c.sasl.done }

// saslStep serves one token. Without users the answer is the null token, which tells clients to go on without SASL.
func (o *owner) saslStep(it *item) {
	if len(o.cfg.SASLUsers) == 0 {
		o.answer(it, wire.OK, &wire.SASLToken{}, false)
		return
	}
	c := it.conn
	if c.sasl == nil {
		c.sasl = new(saslServer)
	}
	token := it.req.(*wire.SASLToken).Token
	if len(token) == 0 {
		o.answer(it, wire.OK, &wire.SASLToken{Token: c.sasl.challenge()}, false)
		return
	}
	user, proof, err := c.sasl.respond(string(token), o.cfg.SASLUsers)
	if err != nil {
		o.warn(&o.stats.authFailed, "server: SASL authentication failed", "client", c.remote, "err", err)
		if o.cfg.AllowFailedSASL && !o.cfg.RequireSASL {
			o.answer(it, wire.OK, &wire.SASLToken{}, false)
			return
		}
		o.refuseSASL(it)
		return
	}
	if o.cfg.RequireSASL {
		o.known(c)
	}
	c.addID(wire.ID{Scheme: "sasl", ID: user})
	if slices.Contains(o.cfg.SASLSupers, user) {
		c.addSuper()
	}
	o.answer(it, wire.OK, &wire.SASLToken{Token: proof}, false)
}

// refuseSASL ends the connection after a failed authentication. The error reply contains a null token: without it Java
// clients cannot read the reply and reconnect forever.
func (o *owner) refuseSASL(it *item) {
	h := wire.ReplyHeader{Xid: it.xid, Err: wire.AuthFailed}
	if o.cfg.RequireSASL {
		h.Err = wire.SessionClosedRequireAuth
	}
	o.replyBare(it, it.op, &saslRefusal{h}, o.holdReply(it.conn), true)
	o.end(it.conn)
}

// saslRefusal is an error reply with a body, which no other error has.
type saslRefusal struct{ wire.ReplyHeader }

// Append appends the header and a null token.
func (r *saslRefusal) Append(b []byte) []byte {
	return (&wire.SASLToken{}).Append(r.ReplyHeader.Append(b))
}

// Decode makes saslRefusal a wire.Record. The server never calls it.
func (r *saslRefusal) Decode(d *jute.Decoder) { r.ReplyHeader.Decode(d) }

func (s *saslServer) challenge() []byte {
	var b [24]byte
	rand.Read(b[:])
	s.nonce = base64.StdEncoding.EncodeToString(b[:])
	return fmt.Appendf(nil, `realm="%s",nonce="%s",qop="auth",charset=utf-8,algorithm=md5-sess`, saslRealm, s.nonce)
}

var errSASL = errors.New("wrong user or password")

// respond checks the response to the open challenge and returns the user's name and the server's proof. A challenge is
// good for one response.
func (s *saslServer) respond(token string, users map[string]string) (user string, proof []byte, err error) {
	nonce := s.nonce
	s.nonce = ""
	d, err := parseDirectives(token)
	if err != nil {
		return "", nil, err
	}
	user = d["username"]
	switch {
	case nonce == "" || d["nonce"] != nonce:
		return "", nil, errors.New("response to another challenge")
	case d["nc"] != "00000001":
		return "", nil, errors.New("challenge used twice")
	case d["qop"] != "" && d["qop"] != "auth":
		return "", nil, fmt.Errorf("protection %q was not offered", d["qop"])
	case !strings.HasPrefix(d["digest-uri"], saslService):
		return "", nil, fmt.Errorf("response for another service %q", d["digest-uri"])
	case d["realm"] != "" && d["realm"] != saslRealm:
		return "", nil, fmt.Errorf("unknown realm %q", d["realm"])
	case d["authzid"] != "" && d["authzid"] != user:
		return "", nil, fmt.Errorf("user %q must not act as %q", user, d["authzid"])
	}
	password, known := users[user]
	want := saslResponse(d, password, "AUTHENTICATE")
	if subtle.ConstantTimeCompare([]byte(want), []byte(d["response"])) != 1 || !known {
		return "", nil, errSASL
	}
	s.done = true
	return user, []byte("rspauth=" + saslResponse(d, password, "")), nil
}

// saslResponse computes the proof of knowing the password: the client's with verb "AUTHENTICATE", the server's with "".
func saslResponse(d map[string]string, password, verb string) string {
	secret := md5.Sum([]byte(latin1(d["username"]) + ":" + latin1(d["realm"]) + ":" + latin1(password)))
	a1 := string(secret[:]) + ":" + d["nonce"] + ":" + d["cnonce"]
	if d["authzid"] != "" {
		a1 += ":" + d["authzid"]
	}
	qop := d["qop"]
	if qop == "" {
		qop = "auth"
	}
	return hexMD5(strings.Join([]string{
		hexMD5(a1), d["nonce"], d["nc"], d["cnonce"], qop,
		hexMD5(verb + ":" + d["digest-uri"]),
	}, ":"))
}

func hexMD5(s string) string {
	sum := md5.Sum([]byte(s))
	return hex.EncodeToString(sum[:])
}

// latin1 converts s to ISO 8859-1 if possible, as the mechanism requires.
func latin1(s string) string {
	b := make([]byte, 0, len(s))
	for _, r := range s {
		if r > 0xff {
			return s
		}
		b = append(b, byte(r))
	}
	return string(b)
}

// parseDirectives parses a list of key=value and key="value". A repeated key is an error.
func parseDirectives(s string) (map[string]string, error) {
	d := make(map[string]string)
	for {
		s = strings.TrimLeft(s, ", \t\r\n")
		if s == "" {
			return d, nil
		}
		key, rest, ok := strings.Cut(s, "=")
		if !ok {
			return nil, errors.New("malformed response")
		}
		var value string
		if value, s, ok = parseValue(rest); !ok {
			return nil, errors.New("malformed response")
		}
		key = strings.ToLower(strings.TrimSpace(key))
		if _, twice := d[key]; twice {
			return nil, fmt.Errorf("response repeats %q", key)
		}
		d[key] = value
	}
}

func parseValue(s string) (value, rest string, ok bool) {
	if !strings.HasPrefix(s, `"`) {
		value, rest, _ = strings.Cut(s, ",")
		return strings.TrimSpace(value), rest, true
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '"':
			return b.String(), s[i+1:], true
		case '\\':
			if i++; i == len(s) {
				return "", "", false
			}
		}
		b.WriteByte(s[i])
	}
	return "", "", false
}
