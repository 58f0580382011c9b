package server

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/seed-a3166700/turnstile/internal/wire"
)

func (c *rawClient) addAuth(scheme, auth string) error {
	if err := c.send(wire.XidAuth, wire.OpAuth, &wire.AuthRequest{Scheme: scheme, Auth: []byte(auth)}); err != nil {
		return err
	}
	h, err := c.reply(nil)
	if err == nil && h.Err != wire.OK {
		err = codeError(h.Err)
	}
	return err
}

func (c *rawClient) whoAmI(t *testing.T) []string {
	t.Helper()
	var resp wire.WhoAmIResponse
	if err := c.call(wire.OpWhoAmI, &wire.Empty{}, &resp); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, id := range resp.IDs {
		out = append(out, id.Scheme+":"+id.ID)
	}
	slices.Sort(out)
	return out
}

func TestIdentitiesAddUpOnAConnection(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{SuperDigest: digestID([]byte("super:secret"))}, disk{})
	c := mustConnect(t, s, wire.ConnectRequest{})
	for _, auth := range []string{"a:1", "b:2", "a:1", "", "nocolon"} {
		if err := c.addAuth("digest", auth); err != nil {
			t.Errorf("%q: got %v, want OK", auth, err)
		}
	}
	if err := c.addAuth("ip", ""); err != nil {
		t.Error(err)
	}
	if got, want := c.whoAmI(t), []string{
		"digest:", "digest:a", "digest:b", "digest:nocolon",
		"ip:127.0.0.1",
	}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	mine := []wire.ACL{{Perms: wire.PermAll, ID: wire.ID{Scheme: "digest", ID: digestID([]byte("a:1"))}}}
	if err := c.call(wire.OpCreate, &wire.CreateRequest{Path: "/mine", ACL: mine}, nil); err != nil {
		t.Fatal(err)
	}
	other := mustConnect(t, s, wire.ConnectRequest{})
	if _, _, err := other.get("/mine"); !errors.Is(err, codeError(wire.NoAuth)) {
		t.Errorf("stranger: got %v, want %v", err, wire.NoAuth)
	}
	again, err := c.resume(s)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := again.get("/mine"); !errors.Is(err, codeError(wire.NoAuth)) {
		t.Errorf("same session on a new connection: got %v, want %v, as identities belong to the connection", err,
			wire.NoAuth)
	}
	if err := other.addAuth("digest", "super:secret"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := other.get("/mine"); err != nil {
		t.Errorf("superuser: got %v, want OK", err)
	}
}

func TestUnknownSchemeEndsTheConnection(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{}, disk{})
	for _, scheme := range []string{"unknown", "world", "super", "sasl", "x509", ""} {
		c := mustConnect(t, s, wire.ConnectRequest{})
		if err := c.addAuth(scheme, "x:y"); !errors.Is(err, codeError(wire.AuthFailed)) || !c.ended() {
			t.Errorf("%q: got %v, want %v and the end of the connection", scheme, err, wire.AuthFailed)
		}
	}
}

// login authenticates by SASL as a client does.
func (c *rawClient) login(user, password string) error {
	var token wire.SASLToken
	if err := c.call(wire.OpSASL, &wire.SASLToken{Token: []byte{}}, &token); err != nil {
		return err
	}
	d, err := parseDirectives(string(token.Token))
	if err != nil {
		return err
	}
	d["username"], d["cnonce"], d["nc"], d["digest-uri"] = user, "abc", "00000001", "zookeeper/zk-sasl-md5"
	response := fmt.Sprintf(`charset=utf-8,username="%s",realm="%s",nonce="%s",nc=00000001,cnonce="abc",`+
		`digest-uri="%s",maxbuf=65536,response=%s,qop=auth`,
		user, d["realm"], d["nonce"], d["digest-uri"], saslResponse(d, password, "AUTHENTICATE"))
	if err := c.call(wire.OpSASL, &wire.SASLToken{Token: []byte(response)}, &token); err != nil {
		return err
	}
	if want := "rspauth=" + saslResponse(d, password, ""); string(token.Token) != want {
		return fmt.Errorf("got proof %q, want %q", token.Token, want)
	}
	return nil
}

func TestSASLUserNeedsTheRightPassword(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{
		SASLUsers:  map[string]string{"bob": "geheim", "jürgen": "schlüssel"},
		SASLSupers: []string{"bob"},
	}, disk{})
	c := mustConnect(t, s, wire.ConnectRequest{})
	if err := c.login("jürgen", "schlüssel"); err != nil {
		t.Fatal(err)
	}
	if got, want := c.whoAmI(t), []string{"ip:127.0.0.1", "sasl:jürgen"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	acl := []wire.ACL{{Perms: wire.PermAll, ID: wire.ID{Scheme: "sasl", ID: "jürgen"}}}
	if err := c.call(wire.OpCreate, &wire.CreateRequest{Path: "/mine", ACL: acl}, nil); err != nil {
		t.Fatal(err)
	}
	super := mustConnect(t, s, wire.ConnectRequest{})
	if err := super.login("bob", "geheim"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := super.get("/mine"); err != nil {
		t.Errorf("superuser: got %v, want OK", err)
	}
	for user, password := range map[string]string{"bob": "wrong", "nobody": "", "jürgen": ""} {
		c := mustConnect(t, s, wire.ConnectRequest{})
		if err := c.login(user, password); !errors.Is(err, codeError(wire.AuthFailed)) || !c.ended() {
			t.Errorf("%s with %q: got %v, want %v and the end of the connection", user, password, err, wire.AuthFailed)
		}
	}
}

func TestSASLChallengeAcceptsOneResponse(t *testing.T) {
	t.Parallel()
	users := map[string]string{"bob": "geheim"}
	var s saslServer
	d, err := parseDirectives(string(s.challenge()))
	if err != nil {
		t.Fatal(err)
	}
	d["username"], d["cnonce"], d["nc"], d["digest-uri"] = "bob", "abc", "00000001", "zookeeper/zk-sasl-md5"
	token := fmt.Sprintf(`username="bob",realm="%s",nonce="%s",nc=00000001,cnonce="abc",digest-uri="%s",`+
		`response=%s,qop=auth`,
		d["realm"], d["nonce"], d["digest-uri"], saslResponse(d, "geheim", "AUTHENTICATE"))
	if _, _, err := s.respond(token, users); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.respond(token, users); err == nil {
		t.Error("the same response again: got success, want an error")
	}
}

func TestServerWithoutUsersAnswersSASLWithNull(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{}, disk{})
	c := mustConnect(t, s, wire.ConnectRequest{})
	token := wire.SASLToken{Token: []byte("x")}
	if err := c.call(wire.OpSASL, &wire.SASLToken{Token: []byte{}}, &token); err != nil || token.Token != nil {
		t.Errorf("got %q %v, want the null token", token.Token, err)
	}
}

func TestRequiredSASLRefusesRequestsBeforeTheLogin(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{SASLUsers: map[string]string{"bob": "geheim"}, RequireSASL: true}, disk{})
	c := mustConnect(t, s, wire.ConnectRequest{})
	if _, err := c.create("/a", nil, 0); !errors.Is(err, codeError(wire.SessionClosedRequireAuth)) || !c.ended() {
		t.Errorf("got %v, want %v and the end of the connection", err, wire.SessionClosedRequireAuth)
	}
	c = mustConnect(t, s, wire.ConnectRequest{})
	if err := c.login("bob", "geheim"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.create("/a", nil, 0); err != nil {
		t.Error(err)
	}
}

// FuzzSASLResponse checks that no response makes the parser panic, or authenticates.
func FuzzSASLResponse(f *testing.F) {
	f.Add(`username="bob",realm="zk-sasl-md5",nonce="x",nc=00000001,response=00`)
	f.Add(`a="\`)
	f.Add(`,,=,`)
	f.Fuzz(func(t *testing.T, token string) {
		s := saslServer{nonce: "secret"}
		if _, _, err := s.respond(token, map[string]string{"bob": "geheim"}); err == nil {
			t.Errorf("%q: got success, want an error", token)
		}
	})
}
