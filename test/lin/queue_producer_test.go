//go:build unix

package lin_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/seed-a3166700/turnstile/internal/lincheck"
	"github.com/seed-a3166700/turnstile/queue"
	"github.com/seed-a3166700/turnstile/zk"
)

// tagged returns an item's body, which identifies the item and is padded so that damage shows.
func tagged(client, serial, i, size int) (tag string, body []byte) {
	tag = fmt.Sprintf("%d.%d.%d.%d", client, serial, i, size)
	return tag, append([]byte(tag+"|"), bytes.Repeat([]byte{'x'}, size)...)
}

// tagOf returns the tag of a body.
func tagOf(body []byte) string {
	if dueOf(body) > 0 {
		return string(body)
	}
	tag, padding, _ := strings.Cut(string(body), "|")
	var client, serial, i, size int
	if _, err := fmt.Sscanf(tag, "%d.%d.%d.%d", &client, &serial, &i, &size); err != nil ||
		padding != strings.Repeat("x", size) {
		return fmt.Sprintf("damaged: %.100q", body)
	}
	return tag
}

// produce puts items into some of the queues until ctx ends.
func (h *queueClient) produce(ctx context.Context, rnd *rand.Rand, places []string) {
	type key struct {
		place string
		waits bool
	}
	places = slices.DeleteFunc(slices.Clone(places), func(s string) bool { return !slices.Contains(h.Places, s) })
	queues := make(map[key]*queue.Queue)
	if len(places) == 0 {
		return
	}
	for ctx.Err() == nil {
		s := newPutPlan(rnd, places)
		k := key{s.place, s.waits}
		if queues[k] == nil {
			queues[k] = h.open(s.place, s.waits)
		}
		h.put(context.WithoutCancel(ctx), queues[k], s)
		pause(ctx, s.pause)
	}
	for _, q := range queues {
		h.close(ctx, q)
	}
}

// put puts items. It reports before what it is about to put, and afterwards what it learned.
func (h *queueClient) put(ctx context.Context, q *queue.Queue, s putPlan) {
	p := lincheck.Put{Client: h.number, Serial: int(h.serial.Add(1)), Key: s.key, Waits: s.waits}
	var messages []queue.Message
	for i, g := range s.items {
		tag, body := tagged(h.number, p.Serial, i, g.size)
		p.Items = append(p.Items, lincheck.PutItem{
			Body: tag, Priority: g.priority, Delayed: g.delay > 0, Group: g.group,
		})
		messages = append(messages, queue.Message{
			Body: body, Priority: g.priority, Delay: g.delay, Timeout: g.limit, Group: g.group,
		})
	}
	var sess *zk.Session
	var known int64
	if s.place == boundQueue {
		sess, known = h.ask(ctx, s.place)
	}
	if s.patience > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.patience)
		defer cancel()
	}
	p.Asked = clock()
	h.report(report{Place: s.place, Put: &p})
	var err error
	switch first := messages[0]; {
	case s.key != "":
		var id string
		var added bool
		id, added, err = q.PutOnce(ctx, s.key, first)
		switch {
		case err != nil:
		case added:
			p.IDs = []string{id}
		default:
			p.Instead = id
		}
	case len(messages) == 1:
		var id string
		if id, err = q.Put(ctx, first); err == nil {
			p.IDs = []string{id}
		}
	default:
		p.IDs, err = q.PutBatch(ctx, messages)
	}
	p.Done, p.Certain, p.Full = clock(), !errors.Is(err, queue.ErrUnresolved), errors.Is(err, queue.ErrFull)
	if sess != nil && sess.Err() == nil { // so all of it was done under this session
		p.Known = known
	}
	if err != nil && p.Certain && ctx.Err() == nil && (!p.Full || queueKinds[s.place].cfg.MaxItems == 0) {
		h.fail("put", err)
	}
	h.report(report{Place: s.place, Put: &p})
}

// ask makes sure that the client's session has learned of everything that was acknowledged before a time, and returns
// both. It returns nil if there is no answer now.
func (h *queueClient) ask(ctx context.Context, place string) (*zk.Session, int64) {
	sess, err := h.client.Session(ctx)
	if err != nil {
		return nil, 0
	}
	asked := clock()
	if passBarrier(ctx, sess, h.Root+"/"+place) != nil {
		return nil, 0
	}
	return sess, asked
}
