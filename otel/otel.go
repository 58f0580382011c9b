// Package otel records, as OpenTelemetry spans, what a program does with locks, elections and queues.
//
//	t := otel.New(otel.Config{})
//	mutex, err := lock.NewMutex(client, path, lock.Config{Hooks: t.Lock()})
//	q, err := queue.New(client, path, queue.Config{Hooks: t.Queue()})
//
// docs/tracing.md lists the spans. A program that has hooks of its own, or those of package metrics, joins them with
// And:
//
//	lock.Config{Hooks: m.Lock().And(t.Lock())}
package otel

import (
	"context"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/seed-a3166700/turnstile/internal/fold"
)

// Config configures the spans. The zero value is ready to use.
type Config struct {
	// TracerProvider makes the spans; that of otel.GetTracerProvider if nil.
	TracerProvider trace.TracerProvider

	// Propagator writes the context of a producer's span into the headers of an item, and reads it there. It is
	// propagation.TraceContext if nil, with the headers traceparent and tracestate, and not the one of
	// otel.GetTextMapPropagator, which does nothing unless the program has set another. A header that it writes is left
	// out if it has more than 512 bytes.
	Propagator propagation.TextMapPropagator

	// Names returns what stands in the names of spans for a path of a lock, an election or a queue. The default is the
	// path, where UUIDs, hexadecimal numbers of at least 8 digits, and other numbers are replaced by an asterisk. The
	// path itself is in an attribute. Names may be called by several goroutines at once.
	Names func(path string) string

	_ struct{}
}

// Tracing makes hooks that record spans. One is enough for a program.
type Tracing struct {
	tracer     trace.Tracer
	propagator propagation.TextMapPropagator
	names      func(path string) string

	// Spans that have not ended. Hooks that end a span are told of the same key as those that began it, once.
	acquiring, holding   spans    // by the number of the call of Lock
	campaigning, leading spans    // by the number of the campaign
	sending              sync.Map // by the *queue.Send
	processing           sync.Map // by the *queue.Item
}

// The attributes and names of spans of queues are those of this version of the semantic conventions, in which those
// for messaging are in development.
const schemaURL = "https://opentelemetry.io/schemas/1.45.0"

// New returns what makes the hooks.
func New(cfg Config) *Tracing {
	if cfg.TracerProvider == nil {
		cfg.TracerProvider = otel.GetTracerProvider()
	}
	if cfg.Propagator == nil {
		cfg.Propagator = propagation.TraceContext{}
	}
	if cfg.Names == nil {
		cfg.Names = fold.Path
	}
	return &Tracing{
		tracer: cfg.TracerProvider.Tracer(
			"github.com/seed-a3166700/turnstile/otel", trace.WithSchemaURL(schemaURL)),
		propagator: cfg.Propagator,
		names:      cfg.Names,
	}
}

// start begins a span whose parent is that of ctx.
func (t *Tracing) start(
	ctx context.Context, name, path string, kind trace.SpanKind, at time.Time, more ...trace.SpanStartOption,
) (context.Context, trace.Span) {
	return t.tracer.Start(ctx, name+" "+text(t.names(path)),
		append(more, trace.WithSpanKind(kind), trace.WithTimestamp(at))...)
}

// client is an option of spans of calls to the servers. It is here because making one is not free.
var client = trace.WithSpanKind(trace.SpanKindClient) //nolint:gochecknoglobals // never changes

// fail gives a span an error: a word for its kind, and its text.
func fail(span trace.Span, kind string, err error) {
	if !span.IsRecording() {
		return
	}
	span.SetAttributes(attribute.String("error.type", kind))
	span.SetStatus(codes.Error, text(err.Error()))
}

// maxText bounds what others may have written: the names of nodes, and the reasons of revocations and failures.
const maxText = 1024

// text returns what is valid of a text, and not too long.
func text(s string) string {
	if len(s) > maxText {
		s = s[:maxText]
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// A spans has spans that have not ended, by their numbers. It takes none that are not recorded: nothing is to be said
// of them.
type spans struct{ open sync.Map }

func (s *spans) begin(id uint64, span trace.Span) {
	if span.IsRecording() {
		s.open.Store(id, span)
	}
}

// get returns a span that was begun; one that records nothing if there is none.
func (s *spans) get(id uint64) trace.Span {
	if span, ok := s.open.Load(id); ok {
		return span.(trace.Span)
	}
	return nothing
}

// take is get, and forgets the span.
func (s *spans) take(id uint64) trace.Span {
	if span, ok := s.open.LoadAndDelete(id); ok {
		return span.(trace.Span)
	}
	return nothing
}

// nothing is a span that records nothing.
var nothing = trace.SpanFromContext(context.Background()) //nolint:gochecknoglobals // never changes
