package zk_test

import (
	"context"
	"crypto/md5"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/internal/jute"
	"github.com/seed-a3166700/turnstile/internal/wire"
	"github.com/seed-a3166700/turnstile/zk"
)

// rawRecord is an encoded record.
type rawRecord []byte

func (r rawRecord) Append(b []byte) []byte { return append(b, r...) }
func (rawRecord) Decode(*jute.Decoder)     {}

func hexSum(s string) string {
	sum := md5.Sum([]byte(s))
	return hex.EncodeToString(sum[:])
}

var saslField = regexp.MustCompile(`(\w+)="?([^",]*)"?`)

// saslAnswer returns the server's token in a step of DIGEST-MD5, or nil if the client's proof is wrong.
func saslAnswer(step int, r request, user, password string) []byte {
	const realm, nonce, uri = "zk-sasl-md5", "abcdef", "zookeeper/zk-sasl-md5"
	token := r.record().(*wire.SASLToken).Token
	if step == 1 {
		return []byte(`realm="` + realm + `",nonce="` + nonce + `",charset=utf-8,algorithm=md5-sess`)
	}
	fields := map[string]string{}
	for _, m := range saslField.FindAllStringSubmatch(string(token), -1) {
		fields[m[1]] = m[2]
	}
	secret := md5.Sum([]byte(user + ":" + realm + ":" + password))
	a1 := hexSum(string(secret[:]) + ":" + nonce + ":" + fields["cnonce"])
	proof := func(method string) string {
		return hexSum(a1 + ":" + nonce + ":00000001:" + fields["cnonce"] + ":auth:" + hexSum(method+":"+uri))
	}
	if fields["username"] != user || fields["response"] != proof("AUTHENTICATE") {
		return nil
	}
	return []byte("rspauth=" + proof(""))
}

// Promise: 18
func TestSASLProvesBothSides(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		serve func(p *peer, r request, step int)
		want  error
		text  string // of the error
	}{
		"right password": {func(p *peer, r request, step int) {
			p.answer(r, 0, wire.OK, &wire.SASLToken{Token: saslAnswer(step, r, "bob", "secret")})
		}, nil, ""},
		"wrong password": {func(p *peer, r request, step int) {
			if token := saslAnswer(step, r, "bob", "other"); token != nil {
				p.answer(r, 0, wire.OK, &wire.SASLToken{Token: token})
			} else {
				p.answer(r, 0, wire.AuthFailed, nil)
			}
		}, zk.ErrAuthFailed, "authentication failed: SASL: authentication failed$"},
		"a server that does not allow the mechanism": {func(p *peer, r request, _ int) {
			p.answer(r, 0, wire.AuthFailed, nil)
		}, zk.ErrAuthFailed, "does not allow DIGEST-MD5"},
		"a server that lets failed clients stay": {func(p *peer, r request, step int) {
			p.answer(r, 0, wire.OK, &wire.SASLToken{Token: saslAnswer(step, r, "bob", "other")})
		}, zk.ErrAuthFailed, ""},
		"a server without the password": {func(p *peer, r request, step int) {
			token := saslAnswer(step, r, "bob", "secret")
			if step == 2 {
				token = []byte("rspauth=00000000000000000000000000000000")
			}
			p.answer(r, 0, wire.OK, &wire.SASLToken{Token: token})
		}, zk.ErrAuthFailed, ""},
		"a server without SASL": {func(p *peer, r request, _ int) {
			p.answer(r, 0, wire.OK, &wire.SASLToken{})
		}, zk.ErrAuthFailed, "does not support SASL"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFake(t, func(p *peer) {
					p.open()
					step := 0
					p.loop(func(r request) bool {
						if r.Op == wire.OpSASL {
							step++
							c.serve(p, r, step)
						}
						return r.Op == wire.OpSASL
					})
				})
				cfg := f.config()
				cfg.SASL = zk.DigestMD5{User: "bob", Password: "secret"}
				_, err := f.client(cfg).Session(t.Context())
				if !errors.Is(err, c.want) || c.text != "" && !regexp.MustCompile(c.text).MatchString(err.Error()) {
					t.Errorf("got %v, want %v and %q", err, c.want, c.text)
				}
			})
		})
	}
}

// mechanism is a mechanism of a test's own: it counts to last, and then is done.
type mechanism struct {
	begin func() error
	last  int
}

func (m mechanism) Begin(_ context.Context, host string) (zk.SASLExchange, error) {
	if host != "fake" {
		return nil, fmt.Errorf("%w: host %q", zk.ErrAuthFailed, host)
	}
	return &counting{last: m.last}, m.begin()
}

type counting struct{ at, last int }

func (c *counting) Next(token []byte) ([]byte, bool, error) {
	if c.at == 0 && token != nil || c.at > 0 && string(token) != strconv.Itoa(c.at) {
		return nil, false, fmt.Errorf("%w: token %q in step %d", zk.ErrAuthFailed, token, c.at)
	}
	c.at++
	return []byte(strconv.Itoa(c.at)), c.at > c.last, nil
}

// Promise: 18
func TestSASLMechanismMayBeTheCallersOwn(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		last int
		errs []error // of Begin, one after the other
		want error   // of the session, or nil
	}{
		"three steps":           {last: 3},
		"a failure that passes": {last: 2, errs: []error{errors.New("no ticket yet"), errors.New("nor now")}},
		"refused": {
			last: 2, errs: []error{fmt.Errorf("%w: no such user", zk.ErrAuthFailed)}, want: zk.ErrAuthFailed,
		},
		"without an end": {last: 1 << 30, want: zk.ErrProtocol},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFake(t, func(p *peer) {
					p.open()
					p.loop(func(r request) bool {
						if r.Op == wire.OpSASL {
							p.answer(r, 0, wire.OK, &wire.SASLToken{Token: r.record().(*wire.SASLToken).Token})
						}
						return r.Op == wire.OpSASL
					})
				})
				cfg := f.config()
				cfg.Servers = "fake:2181"
				cfg.SASL = mechanism{last: row.last, begin: func() (err error) {
					if len(row.errs) > 0 {
						err, row.errs = row.errs[0], row.errs[1:]
					}
					return err
				}}
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				defer cancel()
				if _, err := f.client(cfg).Session(ctx); !errors.Is(err, row.want) {
					t.Errorf("got %v, want %v", err, row.want)
				}
			})
		})
	}
}
