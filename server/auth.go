package server

// Identities that clients add to their connection.

import (
	"crypto/sha1"
	"encoding/base64"
	"slices"
	"strings"

	"github.com/seed-a3166700/turnstile/internal/wire"
)

// auth adds an identity to a connection. As in ZooKeeper it checks no password: an identity matters only where access
// lists name it. Any other scheme ends the connection.
func (o *owner) auth(it *item) {
	req := it.req.(*wire.AuthRequest)
	switch req.Scheme {
	case "digest":
		id := digestID(req.Auth)
		if !o.mayAddID(it.conn, len(id)) {
			o.hit(limitIdentities, it.conn.remote)
			o.refuse(it, wire.AuthFailed)
			return
		}
		it.conn.addID(wire.ID{Scheme: "digest", ID: id})
		if o.cfg.SuperDigest != "" && id == o.cfg.SuperDigest {
			it.conn.addSuper()
		}
	case "ip": // every connection has this identity already
	case "ensemble":
		if !o.cfg.EnsembleAuth {
			o.failAuth(it)
			return
		}
		names := o.cfg.EnsembleNames
		switch {
		case len(req.Auth) == 0 || len(names) == 0:
			o.stats.ensemble.skip.Add(1)
		case slices.Contains(names, string(req.Auth)):
			o.stats.ensemble.success.Add(1)
		default:
			// Without a reply the client tries its next server. Clients take AuthFailed for final.
			o.stats.ensemble.fail.Add(1)
			o.cfg.Logger.Info("server: closed a client of another ensemble", "client", it.conn.remote)
			it.conn.drop(it)
			o.end(it.conn)
			it.conn.kill()
			return
		}
	default:
		o.failAuth(it)
		return
	}
	o.answer(it, wire.OK, nil, false)
}

func (o *owner) failAuth(it *item) {
	o.stats.authFailed.Add(1)
	o.refuse(it, wire.AuthFailed)
}

// digestID turns "user:password" into "user:base64(sha1(user:password))".
func digestID(auth []byte) string {
	user, _, _ := strings.Cut(string(auth), ":")
	sum := sha1.Sum(auth)
	return user + ":" + base64.StdEncoding.EncodeToString(sum[:])
}

// mayAddID reports whether a connection may add an identity of size bytes.
func (o *owner) mayAddID(c *conn, size int) bool {
	limit := o.cfg.Limits.Identities
	for _, id := range c.caller.IDs {
		size += len(id.ID)
	}
	return limit < 0 || len(c.caller.IDs) <= limit && size <= limit*identitySize
}

// addID adds an identity, unless the connection has it already.
func (c *conn) addID(id wire.ID) {
	if !slices.Contains(c.caller.IDs, id) {
		c.caller.IDs = append(c.caller.IDs, id)
		c.caller.Kept.Add(int64(len(id.ID)) + identityCost)
	}
}

// addSuper gives the connection the superuser's identity.
func (c *conn) addSuper() {
	c.addID(wire.ID{Scheme: "super"})
	c.caller.Super = true
}
