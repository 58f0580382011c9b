package server

import "github.com/seed-a3166700/turnstile/internal/wire"

type saslServer struct{ done bool }

func (c *conn) saslDone() bool { return c.sasl != nil && c.sasl.done }

func (o *owner) saslStep(it *item) { o.answer(it, wire.OK, &wire.SASLToken{}, false) }
