package server

// Serving requests.

import (
	"time"

	"github.com/seed-a3166700/turnstile/internal/wire"
	"github.com/seed-a3166700/turnstile/server/internal/tree"
)

// request serves one request of a connection, the handshake included.
func (o *owner) request(it *item) {
	c := it.conn
	kept := c.caller.Kept.Load()
	if c.state == connOpen {
		o.settle(c.sess.Load())
	}
	switch {
	case c.state == connClosing, c.state == connNew && it.kind != itemConnect:
		c.drop(it)
	case it.kind == itemConnect:
		o.connect(it)
	case o.cfg.RequireSASL && !o.exempt(it.op) && !c.saslDone():
		o.refuse(it, wire.SessionClosedRequireAuth)
	case fromServersOnly(it.op):
		o.refuse(it, wire.Unimplemented)
	case it.op == wire.OpPing:
		it.xid = wire.XidPing
		o.answer(it, wire.OK, nil, false)
	case it.op == wire.OpCloseSession:
		o.closeSession(it)
	case tree.IsWrite(it.op) && (it.code == wire.OK || it.op == wire.OpMulti):
		if id, ok := endsOther(it); ok {
			o.endOther(it, id)
			break
		}
		o.write(it)
	case it.code != wire.OK: // it cannot be decoded, and uses a zxid only if it is a multi
		o.answer(it, it.code, nil, false)
	case it.op == wire.OpGetAllChildren:
		o.countBelow(it)
	case tree.IsRead(it.op):
		if piece, ok := isBackup(it); ok {
			o.backupPiece(it, piece)
			break
		}
		o.read(it)
	case it.op == wire.OpAuth:
		o.auth(it)
	case it.op == wire.OpSASL:
		o.saslStep(it)
	case it.op == wire.OpReconfig:
		// ReconfigDisabled would be the right code, but kazoo does not know it and fails.
		o.answer(it, wire.Unimplemented, nil, false)
	default:
		o.refuse(it, wire.Unimplemented)
	}
	o.countBytes(it.size + max(0, int(c.caller.Kept.Load()-kept)))
}

// fromServersOnly reports whether op is one that clients must not send, or may send only inside a multi.
func fromServersOnly(op wire.Op) bool {
	switch op {
	case wire.OpCheck, wire.OpDeleteContainer, wire.OpCreateSession, wire.OpError, wire.OpNotification:
		return true
	default:
		return false
	}
}

// exempt reports whether op is served without a required authentication.
func (o *owner) exempt(op wire.Op) bool {
	return op == wire.OpSASL || op == wire.OpPing || op == wire.OpCloseSession || op == wire.OpAuth
}

// read answers a read: at once if everything it shows is durable, else with the batch that makes it durable.
func (o *owner) read(it *item) {
	c := it.conn
	req := it.req
	part := tree.TakeWatches(req, watchesAtOnce)
	if part != nil {
		req = part
	}
	body, code, events := o.tree.Read(&c.caller, it.op, req)
	if code != wire.OK && o.atLimit(it, code) {
		return
	}
	hold := o.holdReply(c) || (o.pending() && tree.DependsOn(it.op, req, o.isDirty))
	o.fire(events, hold)
	if part != nil && code == wire.OK {
		it.more = true
		return
	}
	o.reply(it, o.shown(hold), code, body, hold, false)
}

// countBelow serves a part of a request that counts nodes, and answers it after the last part.
func (o *owner) countBelow(it *item) {
	c := it.conn
	var body wire.Record
	code := wire.OK
	if it.walk == nil {
		it.walk, code = o.tree.Walk(&c.caller, it.req)
	}
	if code == wire.OK {
		if !it.walk.Step(visitsAtOnce) {
			it.more = true
			return
		}
		body = it.walk.Answer()
	}
	hold := o.holdReply(c) || o.pending()
	o.reply(it, o.shown(hold), code, body, hold, false)
}

// atLimit counts a request that a limit has refused. If setWatches was refused it ends the connection and reports true:
// clients do not ask for those watches again, and would miss their events.
func (o *owner) atLimit(it *item, code wire.Code) (ended bool) {
	switch o.tree.TakeLimit() {
	case tree.WatchLimit:
		o.hit(limitWatches, it.conn.remote)
		if it.op == wire.OpSetWatches || it.op == wire.OpSetWatches2 {
			o.refuse(it, code)
			return true
		}
	case tree.ReplyLimit:
		o.hit(limitReply, it.conn.remote)
	case tree.ListLimit:
		o.hit(limitStored, it.conn.remote)
	case tree.EventLimit:
		o.hit(limitEvents, it.conn.remote)
	case tree.NoLimit:
	}
	return false
}

// write applies a write and answers when it is durable. A refused write has changed nothing but has used a zxid. It is
// answered at once if that zxid is reserved on disk and nothing that the write may have seen waits for the disk.
func (o *owner) write(it *item) {
	zxid := o.nextZxid()
	if it.code != wire.OK {
		o.answerWrite(it, zxid, it.code, nil, false)
		return
	}
	r := o.tree.Write(zxid, time.Now().UnixMilli(), &it.conn.caller, it.op, it.req)
	if r.Code == wire.MarshallingError {
		o.atLimit(it, r.Code)
	}
	o.record(&r)
	if it.op == wire.OpCreateTTL && r.Code == wire.OK {
		o.stats.ttlCreated.Add(1)
	}
	o.answerWrite(it, zxid, r.Code, r.Body, false)
}

// end stops serving c after its last reply: it drops further requests and removes the watches.
func (o *owner) end(c *conn) {
	c.state = connClosing
	delete(o.watchers, c.id)
	o.unwatch(c.id)
}

func (o *owner) answerWrite(it *item, zxid int64, code wire.Code, body wire.Record, last bool) {
	hold := o.holdReply(it.conn) || (o.store != nil && (o.pending() || zxid > o.durable.limit.Load()))
	if !hold {
		o.durable.raise(zxid)
	}
	o.reply(it, zxid, code, body, hold, last)
}

// answer answers a request whose answer depends on no node.
func (o *owner) answer(it *item, code wire.Code, body wire.Record, last bool) {
	hold := o.holdReply(it.conn)
	o.reply(it, o.shown(hold), code, body, hold, last)
}

// refuse answers with an error and ends the connection.
func (o *owner) refuse(it *item, code wire.Code) {
	o.answer(it, code, nil, true)
	o.end(it.conn)
}

// holdReply reports whether c's next reply must wait behind an earlier one that waits for the disk.
func (o *owner) holdReply(c *conn) bool { return c.held > o.durable.seq.Load() }

// shown returns the zxid to put into the reply to a read.
func (o *owner) shown(hold bool) int64 {
	if hold || o.store == nil {
		return o.zxid
	}
	return o.durable.zxid.Load()
}

// reply makes a request's reply: in the batch being filled if hold, else directly in the outbox.
func (o *owner) reply(it *item, zxid int64, code wire.Code, body wire.Record, hold, last bool) {
	c := it.conn
	h := wire.ReplyHeader{Xid: it.xid, Zxid: zxid, Err: code}
	switch { // as in ZooKeeper
	case it.op == wire.OpAuth, it.op == wire.OpSASL:
		h.Zxid = 0
	case code == wire.Unimplemented && last:
		h.Zxid = -1
	}
	f := frame{conn: c, request: true, last: last, op: it.op, size: it.size, at: it.at, zxid: h.Zxid}
	if !hold {
		o.countBytes(c.putReply(&f, h, body, o.clock.now()))
		o.direct(c)
		return
	}
	b := o.current()
	if f.large = largeFrame(h, body); f.large == nil {
		f.from = len(b.buf)
		b.buf = wire.AppendReply(b.buf, h, body)
		f.to = len(b.buf)
	}
	o.holdFrame(b, f)
}

func (o *owner) holdFrame(b *batch, f frame) {
	b.frames = append(b.frames, f)
	f.conn.held = b.seq
	f.conn.backlog.Add(int64(f.bytes()))
	o.countBytes(f.bytes())
}

// drop notes that a request gets no reply.
func (c *conn) drop(it *item) {
	c.outbox.mu.Lock()
	defer c.outbox.mu.Unlock()
	c.answered(it.size)
}
