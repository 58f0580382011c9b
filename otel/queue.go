package otel

// The spans of queues.

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/seed-a3166700/turnstile/internal/outcome"
	"github.com/seed-a3166700/turnstile/queue"
)

// Queue returns the hooks of a queue. They may be those of any number of queues.
//
// Items carry the context of the span of the call that has put them, in their headers, so that each is larger by some
// 70 bytes. Messages that have such headers already keep them.
func (t *Tracing) Queue() queue.Hooks {
	return queue.Hooks{Sending: t.send, Sent: t.sent, Taken: t.taken, Claimed: t.claimed, Ended: t.ended}
}

// Context returns ctx with the span of an item that is being processed, for the spans of what is done with it. Without
// it they have the parent that the context of Take or Consume has.
func (t *Tracing) Context(ctx context.Context, item *queue.Item) context.Context {
	if span, ok := t.processing.Load(item); ok {
		return trace.ContextWithSpan(ctx, span.(trace.Span))
	}
	return ctx
}

// send begins the span of a call that puts messages, and has them carry its context.
func (t *Tracing) send(ctx context.Context, s *queue.Send) {
	ctx, span := t.start(ctx, "send", s.Queue, trace.SpanKindProducer, time.Now(), t.messaging(s.Queue, "send"))
	for i := range s.Messages {
		t.inject(ctx, &s.Messages[i])
	}
	t.sending.Store(s, span)
}

// sent ends the span of a call that puts messages.
func (t *Tracing) sent(ctx context.Context, s *queue.Send) {
	stored, ok := t.sending.LoadAndDelete(s)
	if !ok {
		return
	}
	span := stored.(trace.Span)
	span.SetAttributes(count(len(s.Messages)))
	if len(s.IDs) == 1 {
		span.SetAttributes(attribute.String("messaging.message.id", s.IDs[0]))
	}
	if s.Err != nil {
		fail(span, sendFailure(ctx, s.Err), s.Err)
	}
	span.End()
}

// sendFailure says why a call that puts messages has failed.
func sendFailure(ctx context.Context, err error) string {
	for kind, known := range map[string]error{
		"full": queue.ErrFull, "too_large": queue.ErrTooLarge, "unresolved": queue.ErrUnresolved,
	} {
		if errors.Is(err, known) {
			return kind
		}
	}
	return outcome.OfFailure(ctx, err)
}

// taken records the span of a call that takes items, unless there were none.
func (t *Tracing) taken(ctx context.Context, k queue.Taken) {
	switch {
	case k.Err == nil:
	case errors.Is(k.Err, queue.ErrEmpty), outcome.OfFailure(ctx, k.Err) == outcome.Canceled:
		return
	}
	var links []trace.Link
	for _, item := range k.Items {
		links = append(links, t.link(ctx, item)...)
	}
	now := time.Now()
	_, span := t.start(ctx, "receive", k.Queue, trace.SpanKindClient, now.Add(-k.Took),
		t.messaging(k.Queue, "receive"), trace.WithLinks(links...), trace.WithAttributes(count(len(k.Items))))
	if k.Err != nil {
		fail(span, outcome.OfFailure(ctx, k.Err), k.Err)
	}
	span.End(trace.WithTimestamp(now))
}

// claimed begins the span of an item's processing. It does not continue the producer's trace, but links to it: an item
// may wait for days, and be delivered again.
func (t *Tracing) claimed(ctx context.Context, item *queue.Item) {
	_, span := t.start(ctx, "process", item.Queue(), trace.SpanKindConsumer, time.Now(),
		t.messaging(item.Queue(), "process"), trace.WithLinks(t.link(ctx, item)...), trace.WithAttributes(
			attribute.String("messaging.message.id", item.ID()),
			attribute.Int("turnstile.queue.attempt", item.Attempt()),
			attribute.Float64("turnstile.queue.waited", item.Waited().Seconds())))
	t.processing.Store(item, span)
}

// ended ends the span of an item's processing, and records that of the call that has finished it.
func (t *Tracing) ended(ctx context.Context, item *queue.Item, end queue.ItemEnd) {
	stored, ok := t.processing.LoadAndDelete(item)
	if !ok {
		return
	}
	now := time.Now()
	result := attribute.String("turnstile.queue.result", end.Result.String())
	span := stored.(trace.Span)
	if end.Finish > 0 || end.Result != queue.ResultLost {
		_, settle := t.start(trace.ContextWithSpan(ctx, span), "settle", item.Queue(), trace.SpanKindClient,
			now.Add(-end.Finish), t.messaging(item.Queue(), "settle"), trace.WithLinks(t.link(ctx, item)...),
			trace.WithAttributes(attribute.String("messaging.message.id", item.ID()), result))
		if end.Result == queue.ResultLost {
			fail(settle, end.Result.String(), end.Err)
		}
		settle.End(trace.WithTimestamp(now))
	}
	span.SetAttributes(result)
	switch {
	case end.Err != nil:
		fail(span, end.Result.String(), end.Err)
	case end.Result == queue.ResultDead:
		span.SetStatus(codes.Error, "")
	}
	span.End(trace.WithTimestamp(now))
}

// messaging returns the attributes of the semantic conventions for messaging.
func (t *Tracing) messaging(path, operation string) trace.SpanStartEventOption {
	attributes := []attribute.KeyValue{
		attribute.String("messaging.system", "turnstile"),
		attribute.String("messaging.destination.name", text(path)),
		attribute.String("messaging.operation.name", operation),
		attribute.String("messaging.operation.type", operation),
	}
	if name := text(t.names(path)); name != path {
		attributes = append(attributes, attribute.String("messaging.destination.template", name))
	}
	return trace.WithAttributes(attributes...)
}

func count(messages int) attribute.KeyValue {
	return attribute.Int("messaging.batch.message_count", messages)
}

// maxHeader bounds a header that is written or read. W3C asks for a tracestate of 512 bytes to be passed on.
const maxHeader = 512

// headers are those of an item, for a propagator.
type headers map[string]string

// Get returns a header unless it is too long.
func (h headers) Get(key string) string {
	if v := h[key]; len(v) <= maxHeader {
		return v
	}
	return ""
}

// Set adds a header unless it is too long.
func (h headers) Set(key, value string) {
	if len(value) <= maxHeader {
		h[key] = value
	}
}

// Keys returns the names of the headers.
func (h headers) Keys() []string { return slices.Collect(maps.Keys(h)) }

// inject adds the context of a span to a message's headers, unless the message has one. The message's headers are the
// caller's, so they are copied.
func (t *Tracing) inject(ctx context.Context, m *queue.Message) {
	added := make(headers)
	t.propagator.Inject(ctx, added)
	for key := range added {
		if _, ok := m.Headers[key]; ok {
			return
		}
	}
	if len(added) > 0 {
		maps.Copy(added, m.Headers)
		m.Headers = added
	}
}

// link returns a link to the span of the call that has put an item; none if the item names none.
func (t *Tracing) link(ctx context.Context, item *queue.Item) []trace.Link {
	without := trace.ContextWithSpanContext(ctx, trace.SpanContext{}) // which stays if the headers are not valid
	ctx = t.propagator.Extract(without, headers(item.Headers()))
	if producer := trace.SpanContextFromContext(ctx); producer.IsValid() {
		return []trace.Link{{SpanContext: producer}}
	}
	return nil
}

var _ propagation.TextMapCarrier = headers(nil)
