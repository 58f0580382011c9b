package server

import (
	"errors"
	"slices"
	"testing"

	"github.com/seed-a3166700/turnstile/internal/jute"
	"github.com/seed-a3166700/turnstile/internal/wire"
)

// failLogin sends an invalid response and returns the reply's header and body.
func (c *rawClient) failLogin(t *testing.T) (wire.ReplyHeader, []byte) {
	t.Helper()
	c.mustCall(t, wire.OpSASL, &wire.SASLToken{Token: []byte{}})
	if err := c.send(7, wire.OpSASL, &wire.SASLToken{Token: []byte("x")}); err != nil {
		t.Fatal(err)
	}
	h, d, err := c.next()
	if err != nil {
		t.Fatal(err)
	}
	return h, d.Rest()
}

func TestEveryClientCanReadTheReplyToARefusedLogin(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		cfg   Config
		code  wire.Code
		stays bool // the connection stays open
	}{
		"optional":           {Config{}, wire.AuthFailed, false},
		"required":           {Config{RequireSASL: true}, wire.SessionClosedRequireAuth, false},
		"allowed":            {Config{AllowFailedSASL: true}, wire.OK, true},
		"allowed by mistake": {Config{AllowFailedSASL: true, RequireSASL: true}, wire.SessionClosedRequireAuth, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			row.cfg.SASLUsers = map[string]string{"bob": "geheim"}
			c := mustConnect(t, serve(t, row.cfg, disk{}), wire.ConnectRequest{})
			h, body := c.failLogin(t)
			if null := jute.AppendInt(nil, -1); h.Xid != 7 || h.Err != row.code || !slices.Equal(body, null) {
				t.Errorf("got %+v and % x, want %v and a null token", h, body, row.code)
			}
			if row.stays {
				if got := c.whoAmI(t); !slices.Equal(got, []string{"ip:127.0.0.1"}) {
					t.Errorf("got identities %q, want only the address", got)
				}
			} else if !c.ended() {
				t.Error("the connection is still open")
			}
		})
	}
}

func TestServerThatRequiresSASLWithoutUsersServesNoClient(t *testing.T) {
	t.Parallel()
	c := mustConnect(t, serve(t, Config{RequireSASL: true}, disk{}), wire.ConnectRequest{})
	c.mustCall(t, wire.OpSASL, &wire.SASLToken{Token: []byte{}}) // ZooKeeper answers null too
	if _, err := c.create("/a", nil, 0); !errors.Is(err, codeError(wire.SessionClosedRequireAuth)) || !c.ended() {
		t.Errorf("got %v, want %v and the end of the connection", err, wire.SessionClosedRequireAuth)
	}
}

// noReply stands for a connection that ends without a reply.
const noReply = wire.Code(1)

func TestClientOfAnotherEnsembleIsDisconnected(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		cfg  Config
		auth string
		code wire.Code
	}{
		"right name":        {Config{EnsembleAuth: true, EnsembleNames: []string{"a", "b"}}, "b", wire.OK},
		"no name":           {Config{EnsembleAuth: true, EnsembleNames: []string{"a", "b"}}, "", wire.OK},
		"wrong name":        {Config{EnsembleAuth: true, EnsembleNames: []string{"a", "b"}}, "c", noReply},
		"any name accepted": {Config{EnsembleAuth: true}, "c", wire.OK},
		"not configured":    {Config{}, "a", wire.AuthFailed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := mustConnect(t, serve(t, row.cfg, disk{}), wire.ConnectRequest{})
			err := c.addAuth("ensemble", row.auth)
			if row.code == noReply { // clients take AuthFailed for final, and do not try their next server
				if _, refused := errors.AsType[codeError](err); err == nil || refused || !c.ended() {
					t.Errorf("got %v, want no reply and the end of the connection", err)
				}
				return
			}
			if row.code != wire.OK {
				if !errors.Is(err, codeError(row.code)) || !c.ended() {
					t.Errorf("got %v, want %v and the end of the connection", err, row.code)
				}
				return
			}
			if got := c.whoAmI(t); err != nil || !slices.Equal(got, []string{"ip:127.0.0.1"}) {
				t.Errorf("got %v and %q, want no new identity", err, got)
			}
		})
	}
}
