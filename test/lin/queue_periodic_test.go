//go:build unix

package lin_test

// Periodic items of queues, and the rates of queues.

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/seed-a3166700/turnstile/internal/lincheck"
	"github.com/seed-a3166700/turnstile/queue"
)

// every is a schedule of times that are as far apart as it says.
type every time.Duration

func (e every) Next(t time.Time) time.Time { return t.Truncate(time.Duration(e)).Add(time.Duration(e)) }

const periodicBody = "due "

// dueOf returns the time, in ms since 1970, of the schedule for which a body was put; 0 if it is no periodic item.
func dueOf(body []byte) int64 {
	text, found := strings.CutPrefix(string(body), periodicBody)
	due, err := strconv.ParseInt(text, 10, 64)
	if !found || err != nil {
		return 0
	}
	return due
}

// repeat puts the items of a queue's schedule until ctx ends, together with all clients that do. It calls came after
// each.
func (h *queueClient) repeat(ctx context.Context, place string, came func()) {
	q := h.open(place, false)
	body := func(due time.Time) string { return periodicBody + strconv.FormatInt(due.UnixMilli(), 10) }
	err := q.Repeat(ctx, queue.Periodic{
		Name: "tick", Schedule: every(queueKinds[place].every),
		Message: func(due time.Time) queue.Message { return queue.Message{Body: []byte(body(due))} },
		Put: func(due time.Time, id string) {
			h.report(report{Place: place, Periodic: &lincheck.PeriodicPut{Client: h.number, Body: body(due), ID: id}})
			came()
		},
	})
	if err != nil && ctx.Err() == nil {
		h.fail("repeat", err)
	}
	h.close(ctx, q)
}

// goesOn checks that a schedule goes on after the faults, whatever became of the processes that repeated it.
func (d *drainer) goesOn(ctx context.Context) error {
	const enough = 3
	ticking, stop := context.WithCancel(ctx)
	defer stop()
	n := 0
	d.repeat(ticking, d.place, func() {
		if n++; n == enough {
			stop()
		}
	})
	if err := context.Cause(ctx); err != nil {
		return fmt.Errorf("%s: the schedule has stopped: %w", d.place, err)
	}
	return nil
}

// lookAtRate reports the last claim that has used the queue's rate, if there is an answer soon.
func (c *consumer) lookAtRate(ctx context.Context, lifted bool) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	sess, err := c.client.Session(ctx)
	if err != nil {
		return err
	}
	_, stat, err := sess.Get(ctx, c.Root+"/"+c.place+"/rate")
	if err != nil {
		return err
	}
	c.report(report{Place: c.place, Rate: &lincheck.RateState{Zxid: stat.Mzxid, At: stat.Mtime, Lifted: lifted}})
	return nil
}

// lift lifts the queue's rate, so that it can be drained.
func (d *drainer) lift(ctx context.Context) error {
	return errors.Join(d.q.SetRate(ctx, queue.Rate{}), d.lookAtRate(ctx, true))
}
