// Package trace exports one trace of each pass over OTLP, if the environment names a collector. It is the only package that imports
// OpenTelemetry.
//
//	pass ─┬─ fetch
//	      ├─ render, observe, plan, answer, apply   again for each round
//	      └─ post, record
//
// A span has the name of its Sync, the commit, counts and a code. It has no text of an error, because that may quote a server or an object,
// and a collector is often outside of the cluster.
package trace

import (
	"context"
	"errors"
	"strings"

	"headgate.dev/headgate/reconcile/reason"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// A Span is a part of a pass. The methods of nil do nothing.
type Span struct {
	tracer trace.Tracer
	span   trace.Span
}

// key is our own key of a context. Libraries find no span under theirs, so that they neither add spans, which would contain URLs, nor
// send headers.
type key struct{}

// Begin begins a span within that of ctx. It returns nil if ctx has none.
func Begin(ctx context.Context, name string) (context.Context, *Span) {
	parent, _ := ctx.Value(key{}).(*Span)
	if parent == nil {
		return ctx, nil
	}
	_, span := parent.tracer.Start(trace.ContextWithSpan(context.Background(), parent.span), name) //nolint:spancheck // see key; End ends it
	s := &Span{parent.tracer, span}
	return context.WithValue(ctx, key{}, s), s //nolint:spancheck // the same
}

// Count sets an attribute to a number.
func (s *Span) Count(name string, n int) {
	if s != nil {
		s.span.SetAttributes(attribute.Int(prefix+name, n))
	}
}

// Text sets an attribute to a name, a commit or a code; never to a message.
func (s *Span) Text(name, value string) {
	if s != nil && value != "" {
		s.span.SetAttributes(attribute.String(prefix+name, bounded(value)))
	}
}

const (
	prefix   = "headgate."
	mostText = 256 // bytes of a text
)

// bounded returns the beginning of a text. A source of Flux chooses the name of its revision.
func bounded(text string) string { return strings.ToValidUTF8(text[:min(len(text), mostText)], "") }

// End ends the span. It exports only the code of an error.
func (s *Span) End(err error) {
	if s == nil {
		return
	}
	if err != nil {
		s.Fail(codeOf(err))
	}
	s.span.End()
}

// Fail marks the span as failed. It does not end it.
func (s *Span) Fail(code reason.Code) {
	if s != nil {
		s.Text("reason", string(code))
		s.span.SetStatus(codes.Error, string(code))
	}
}

func codeOf(err error) reason.Code {
	if of, is := errors.AsType[interface {
		error
		Code() reason.Code
	}](err); is {
		return of.Code()
	}
	return reason.Of(err).Code
}
