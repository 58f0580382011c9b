package otel_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/propagation"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/seed-a3166700/turnstile/otel"
	"github.com/seed-a3166700/turnstile/queue"
)

const queuePath, sendSpan, receiveSpan, processSpan, settleSpan = "/queues/mail-1", "send /queues/mail-*",
	"receive /queues/mail-*", "process /queues/mail-*", "settle /queues/mail-*"

// queue returns a queue of its own client, with spans by t.
func (w *world) queue(t *otel.Tracing, cfg queue.Config) *queue.Queue {
	w.t.Helper()
	if t != nil {
		cfg.Hooks = t.Queue()
	}
	q := must[*queue.Queue](w.t)(queue.New(w.client(), queuePath, cfg))
	w.t.Cleanup(func() { _ = q.Close(context.Background()) })
	return q
}

func (w *world) put(ctx context.Context, q *queue.Queue, m queue.Message) string {
	w.t.Helper()
	return must[string](w.t)(q.Put(ctx, m))
}

func (w *world) take(ctx context.Context, q *queue.Queue) *queue.Item {
	w.t.Helper()
	return must[*queue.Item](w.t)(q.Take(ctx))
}

func TestConsumerLinksToTheProducerAcrossClients(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		putting, producer := w.caller()
		taking, consumer := w.caller()
		messaging := []string{
			"messaging.system=turnstile", "messaging.destination.name=/queues/mail-1",
			"messaging.destination.template=/queues/mail-*",
		}
		id := w.put(putting, w.queue(w.tracing, queue.Config{}), queue.Message{Body: []byte("x")})
		send := w.one(sendSpan)
		wants(t, send, producer, "", 0, append(messaging,
			"messaging.operation.name=send", "messaging.operation.type=send", "messaging.message.id="+id,
			"messaging.batch.message_count=1")...)

		q := w.queue(otel.New(otel.Config{TracerProvider: w.provider}), queue.Config{})
		pass(time.Minute)
		item := w.take(taking, q)
		receive := w.one(receiveSpan)
		wants(t, receive, consumer, "", 0, append(messaging, "messaging.operation.type=receive",
			"messaging.batch.message_count=1")...)
		wantLinks(t, receive, send)
		pass(2 * time.Second)
		w.Delay(time.Second)
		if err := item.Done(taking); err != nil {
			t.Fatal(err)
		}
		settle, process := w.one(settleSpan), w.one(processSpan)
		took := settle.EndTime().Sub(settle.StartTime())
		wants(t, process, consumer, "", 2*time.Second+took, append(messaging, "messaging.operation.type=process",
			"messaging.message.id="+id, "turnstile.queue.attempt=1", "turnstile.queue.result=done")...)
		wantLinks(t, process, send)
		if took < time.Second || settle.Parent().SpanID() != process.SpanContext().SpanID() {
			t.Errorf("settle took %v; its parent is %v", took, settle.Parent().SpanID())
		}
		wantLinks(t, settle, send)
		kinds := []trace.SpanKind{send.SpanKind(), receive.SpanKind(), process.SpanKind(), settle.SpanKind()}
		want := []trace.SpanKind{
			trace.SpanKindProducer, trace.SpanKindClient, trace.SpanKindConsumer, trace.SpanKindClient,
		}
		if !slices.Equal(kinds, want) {
			t.Errorf("got kinds %v, want %v", kinds, want)
		}
		if !process.Links()[0].SpanContext.IsRemote() {
			t.Error("the link is not to a remote span")
		}
	})
}

// The spans of a handler belong to the item's, and Consume has no span for waiting.
func TestWorkOnAnItemIsPartOfItsSpan(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx, caller := w.caller()
		q := w.queue(w.tracing, queue.Config{})
		w.put(ctx, q, queue.Message{})
		consuming, stop := context.WithCancel(ctx)
		defer stop()
		var work trace.Span
		if err := q.Consume(consuming, 1, func(ctx context.Context, item *queue.Item) error {
			if outside := trace.SpanFromContext(ctx); outside != caller {
				t.Errorf("the handler's context has %v", outside)
			}
			_, work = w.provider.Tracer("program").Start(w.tracing.Context(ctx, item), "work")
			work.End()
			stop()
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		process := w.one(processSpan)
		wants(t, process, caller, "", 0)
		if got := w.one("work").Parent().SpanID(); got != process.SpanContext().SpanID() {
			t.Errorf("the parent is %v, want %v", got, process.SpanContext().SpanID())
		}
		if len(w.ended(receiveSpan)) > 0 {
			t.Error("Consume has a span for waiting")
		}
		other := w.queue(nil, queue.Config{})
		w.put(ctx, other, queue.Message{})
		item := w.take(ctx, other)
		if got := w.tracing.Context(ctx, item); got != ctx {
			t.Error("an item without a span changes the context")
		}
		_ = item.Done(ctx)
	})
}

func TestHowDeliveriesEndIsShown(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(w.tracing, queue.Config{})
		ctx := t.Context()
		for _, c := range []struct {
			name, result, failed string
			finish               func(*queue.Item) error
		}{
			{"failed", "retried", "retried", func(it *queue.Item) error { return it.Fail(ctx, errors.New("no")) }},
			{"returned", "retried", "", func(it *queue.Item) error { return it.Return(ctx, time.Hour) }},
			{"rejected", "dead", "dead", func(it *queue.Item) error { return it.Reject(ctx, "no such user") }},
		} {
			w.recorder.Reset()
			w.put(ctx, q, queue.Message{})
			if err := c.finish(w.take(ctx, q)); err != nil {
				t.Fatal(err)
			}
			wants(t, w.one(processSpan), nil, c.failed, 0, "turnstile.queue.result="+c.result)
			if got := attr(w.one(settleSpan).Attributes(), "turnstile.queue.result"); got != c.result {
				t.Errorf("%s: the call says %q", c.name, got)
			}
		}
		w.recorder.Reset()
		w.put(ctx, q, queue.Message{})
		item := w.take(ctx, q)
		pass(time.Second)
		w.ExpireSession(item.Session().ID())
		<-item.Context().Done()
		process := w.one(processSpan)
		wants(t, process, nil, "lost", process.EndTime().Sub(process.StartTime()), "turnstile.queue.result=lost")
		if len(w.ended(settleSpan)) > 0 {
			t.Error("a lost claim has a call that finishes it")
		}
	})
}

func TestBatchesAreOneSpanWithALinkForEachItem(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(w.tracing, queue.Config{})
		ctx := t.Context()
		if _, err := q.PutBatch(ctx, make([]queue.Message, 3)); err != nil {
			t.Fatal(err)
		}
		w.put(ctx, q, queue.Message{})
		sends := w.ended(sendSpan)
		wants(t, sends[0], nil, "", 0, "messaging.batch.message_count=3", "messaging.message.id=")
		items := must[[]*queue.Item](t)(q.TakeBatch(ctx, 4))
		receive := w.one(receiveSpan)
		wants(t, receive, nil, "", 0, "messaging.batch.message_count=4")
		wantLinks(t, receive, sends[0], sends[0], sends[0], sends[1])
		if err := q.DoneAll(ctx, items); err != nil {
			t.Fatal(err)
		}
		if n := len(w.ended(processSpan)); n != 4 {
			t.Errorf("%d spans of items", n)
		}
	})
}

// A call that takes nothing is no span, unless it fails.
func TestEmptyQueuesAreNoSpans(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(w.tracing, queue.Config{})
		if _, err := q.TryTake(t.Context()); !errors.Is(err, queue.ErrEmpty) {
			t.Fatal(err)
		}
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		if _, err := q.Take(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		if n := len(w.ended(receiveSpan)); n > 0 {
			t.Errorf("%d spans", n)
		}
		_ = q.Close(t.Context())
		if _, err := q.Take(t.Context()); !errors.Is(err, queue.ErrClosed) {
			t.Fatal(err)
		}
		wants(t, w.one(receiveSpan), nil, "error", 0, "messaging.batch.message_count=0")
	})
}

func TestPutsThatFailSayWhy(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(w.tracing, queue.Config{MaxItems: 1})
		ctx := t.Context()
		for want, m := range map[string]queue.Message{
			"": {}, "too_large": {Body: make([]byte, 2<<20)}, "refused": {Priority: 1000},
		} {
			w.recorder.Reset()
			_, _ = q.Put(ctx, m)
			wants(t, w.one(sendSpan), nil, want, 0)
		}
		w.recorder.Reset()
		_, _ = q.Put(ctx, queue.Message{})
		wants(t, w.one(sendSpan), nil, "full", 0)
		w.recorder.Reset()
		w.Cut()
		limited, stop := context.WithTimeout(ctx, time.Second)
		defer stop()
		_, err := q.Put(limited, queue.Message{})
		w.Heal()
		if err == nil {
			t.Fatal("it was put")
		}
		if got := attr(w.one(sendSpan).Attributes(), "error.type"); got != "canceled" && got != "unresolved" {
			t.Errorf("got %q for %v", got, err)
		}
	})
}

// What an item says of its producer is what anybody has put.
func TestHostileHeadersAreIgnored(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		producer, q := w.queue(nil, queue.Config{}), w.queue(w.tracing, queue.Config{})
		ctx := t.Context()
		const trace1, span1 = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
		valid := "00-" + trace1 + "-" + span1 + "-01"
		for _, h := range []map[string]string{
			nil,
			{"traceparent": ""},
			{"traceparent": "x"},
			{"traceparent": strings.Repeat("0", 1<<16)},
			{"traceparent": valid + strings.Repeat("-0", 400)},
			{"traceparent": "ff" + valid[2:]},
			{"traceparent": "00-" + strings.Repeat("0", 32) + "-" + span1 + "-01"},
			{"traceparent": "00-" + trace1 + "-" + strings.Repeat("0", 16) + "-01"},
			{"traceparent": "00-" + strings.ToUpper(trace1) + "-" + span1 + "-01"},
			{"traceparent": valid[:54] + "\x00"},
			{"traceparent": "\xff\xfe" + valid},
			{"tracestate": "a=b"},
			{"Traceparent": valid},
		} {
			w.put(ctx, producer, queue.Message{Headers: h})
			item := w.take(ctx, q)
			if err := item.Done(ctx); err != nil {
				t.Fatal(err)
			}
			if s := w.one(processSpan); len(s.Links()) > 0 || s.Parent().IsValid() {
				t.Errorf("%.100q: links to %v", h, s.Links())
			}
			w.recorder.Reset()
		}
		// What is valid is a link, and never the parent; a tracestate that is too long or wrong is left out.
		for state, want := range map[string]int{"": 0, "a=b": 1, "a=" + strings.Repeat("x", 520): 0, "=,;": 0} {
			w.put(ctx, producer, queue.Message{Headers: map[string]string{"traceparent": valid, "tracestate": state}})
			_ = w.take(ctx, q).Done(ctx)
			s := w.one(processSpan)
			if len(s.Links()) != 1 || s.Links()[0].SpanContext.TraceID().String() != trace1 ||
				s.Links()[0].SpanContext.TraceState().Len() != want || s.SpanContext().TraceID().String() == trace1 {
				t.Errorf("%.100q: links to %v", state, s.Links())
			}
			w.recorder.Reset()
		}
	})
}

// What is added to a message is bounded, and replaces nothing.
func TestHeadersThatAreAddedAreBounded(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		headersOf := func(ctx context.Context, tracing *otel.Tracing, m queue.Message) map[string]string {
			t.Helper()
			before := maps.Clone(m.Headers)
			q := w.queue(tracing, queue.Config{})
			w.put(ctx, q, m)
			if !maps.Equal(before, m.Headers) {
				t.Errorf("the caller's headers are %v", m.Headers)
			}
			item := w.take(ctx, q)
			defer func() { _ = item.Done(ctx) }()
			return item.Headers()
		}
		ctx, caller := w.caller()
		got := headersOf(ctx, w.tracing, queue.Message{Headers: map[string]string{"mine": "1"}})
		send := w.one(sendSpan)
		want := "00-" + caller.SpanContext().TraceID().String() + "-" + send.SpanContext().SpanID().String() + "-01"
		if got["traceparent"] != want || got["mine"] != "1" || len(got) != 2 {
			t.Errorf("got %v, want %v", got, want)
		}

		mine := map[string]string{"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"}
		if got := headersOf(ctx, w.tracing, queue.Message{Headers: mine}); !maps.Equal(got, mine) {
			t.Errorf("got %v, want %v", got, mine)
		}

		// Whatever the program hands around, an item carries at most 512 bytes of each.
		member := must[baggage.Member](t)(baggage.NewMember("long", strings.Repeat("x", 2000)))
		loaded := baggage.ContextWithBaggage(ctx, must[baggage.Baggage](t)(baggage.New(member)))
		state := must[trace.TraceState](t)(trace.ParseTraceState(
			"a=" + strings.Repeat("x", 250) + ",b=" + strings.Repeat("y", 250) + ",c=" + strings.Repeat("z", 250)))
		loaded = trace.ContextWithSpanContext(loaded, caller.SpanContext().WithTraceState(state))
		all := otel.New(otel.Config{
			TracerProvider: w.provider,
			Propagator: propagation.NewCompositeTextMapPropagator(
				propagation.TraceContext{}, propagation.Baggage{}),
		})
		if got := headersOf(loaded, all, queue.Message{}); len(got) != 1 || len(got["traceparent"]) != 55 {
			t.Errorf("got %v", got)
		}

		// A program that samples nothing says that, and one without a provider passes on what it was given.
		never := sdk.NewTracerProvider(sdk.WithSampler(sdk.NeverSample()))
		got = headersOf(t.Context(), otel.New(otel.Config{TracerProvider: never}), queue.Message{})
		if !strings.HasSuffix(got["traceparent"], "-00") {
			t.Errorf("got %v", got)
		}
		none := otel.New(otel.Config{TracerProvider: noop.NewTracerProvider()})
		got = headersOf(ctx, none, queue.Message{})
		if !strings.Contains(got["traceparent"], caller.SpanContext().SpanID().String()) {
			t.Errorf("got %v", got)
		}
		if got := headersOf(t.Context(), none, queue.Message{}); len(got) > 0 {
			t.Errorf("got %v", got)
		}
	})
}
