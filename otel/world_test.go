package otel_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/seed-a3166700/turnstile/otel"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

const sessionTimeout = 16 * time.Second

// world is a server in a bubble, and spans that are recorded.
type world struct {
	*zktest.Server
	t        *testing.T
	recorder *tracetest.SpanRecorder
	provider *sdk.TracerProvider
	tracing  *otel.Tracing
}

// inWorld runs a test, at the end of which no span may be open.
func inWorld(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
		w := &world{Server: srv, t: t, recorder: tracetest.NewSpanRecorder()}
		w.provider = sdk.NewTracerProvider(sdk.WithSpanProcessor(w.recorder))
		w.tracing = otel.New(otel.Config{TracerProvider: w.provider})
		test(t, w)
		synctest.Wait()
		if n := w.tracing.Open(); n != 0 {
			t.Errorf("%d spans have not ended", n)
		}
	})
}

func (w *world) client() *zk.Client { return w.Client(w.t, sessionTimeout) }

// caller returns a context with a span of the program's own.
func (w *world) caller() (context.Context, trace.Span) {
	return w.provider.Tracer("program").Start(w.t.Context(), "caller")
}

// ended returns the spans that have ended and that have this name, once everything has come to rest.
func (w *world) ended(name string) (list []sdk.ReadOnlySpan) {
	synctest.Wait()
	for _, s := range w.recorder.Ended() {
		if s.Name() == name {
			list = append(list, s)
		}
	}
	return list
}

// one returns the span that has ended and has this name, of which there must be one. Others with it are forgotten.
func (w *world) one(name string) sdk.ReadOnlySpan {
	w.t.Helper()
	list := w.ended(name)
	if len(list) != 1 {
		w.t.Fatalf("got %d spans %q, want 1; there are %v", len(list), name, names(w.recorder.Ended()))
	}
	return list[0]
}

func names(spans []sdk.ReadOnlySpan) (list []string) {
	for _, s := range spans {
		list = append(list, s.Name())
	}
	return list
}

// attr returns an attribute as text, "" if there is none.
func attr(list []attribute.KeyValue, key string) string {
	for _, a := range list {
		if string(a.Key) == key {
			return a.Value.String()
		}
	}
	return ""
}

// wants checks a span: attributes, "key=value" each, that it has no error or one of this kind, that its parent is the
// given one, and how long it lasted.
func wants(
	t *testing.T, s sdk.ReadOnlySpan, parent trace.Span, failed string, lasted time.Duration, attributes ...string,
) {
	t.Helper()
	for _, want := range attributes {
		key, value, _ := strings.Cut(want, "=")
		if got := attr(s.Attributes(), key); got != value {
			t.Errorf("%s: %s is %q, want %q", s.Name(), key, got, value)
		}
	}
	status := codes.Unset
	if failed != "" {
		status = codes.Error
	}
	if got := attr(s.Attributes(), "error.type"); got != failed || s.Status().Code != status {
		t.Errorf("%s: error %q, status %v; want %q", s.Name(), got, s.Status(), failed)
	}
	if failed != "" && s.Status().Description == "" {
		t.Errorf("%s: the status does not say what has happened", s.Name())
	}
	var id trace.SpanID
	if parent != nil {
		id = parent.SpanContext().SpanID()
		if s.SpanContext().TraceID() != parent.SpanContext().TraceID() {
			t.Errorf("%s belongs to another trace", s.Name())
		}
	}
	if s.Parent().SpanID() != id {
		t.Errorf("%s: the parent is %v, want %v", s.Name(), s.Parent().SpanID(), id)
	}
	if got := s.EndTime().Sub(s.StartTime()); got != lasted {
		t.Errorf("%s lasted %v, want %v", s.Name(), got, lasted)
	}
}

// wantEvents checks the events of a span: "name after" each, counted from its start.
func wantEvents(t *testing.T, s sdk.ReadOnlySpan, want ...string) {
	t.Helper()
	var got []string
	for _, e := range s.Events() {
		got = append(got, fmt.Sprintf("%s %v", e.Name, e.Time.Sub(s.StartTime())))
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s: got events %q, want %q", s.Name(), got, want)
	}
}

// wantLinks checks that a span links to these, in their order, and to no others.
func wantLinks(t *testing.T, s sdk.ReadOnlySpan, to ...sdk.ReadOnlySpan) {
	t.Helper()
	var got, want []trace.SpanID
	for _, l := range s.Links() {
		got = append(got, l.SpanContext.SpanID())
	}
	for _, other := range to {
		want = append(want, other.SpanContext().SpanID())
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s: links to %v, want %v", s.Name(), got, want)
	}
}

func must[V any](t *testing.T) func(v V, err error) V {
	t.Helper()
	return func(v V, err error) V {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// pass lets time pass in the world.
func pass(d time.Duration) {
	time.Sleep(d) // in the world's time
	synctest.Wait()
}
