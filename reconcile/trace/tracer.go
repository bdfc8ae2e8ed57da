package trace

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"regexp"
	"strings"
	"time"

	"headgate.dev/headgate/reconcile/network"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// A Tracer makes traces, and exports them in the background. If the collector is slow or away, it drops spans, and no pass waits. The
// methods of nil do nothing.
type Tracer struct {
	provider *sdk.TracerProvider
	tracer   trace.Tracer
}

// The variables of OpenTelemetry that Headgate reads itself. The SDK reads these and the others.
const (
	endpoint       = "OTEL_EXPORTER_OTLP_ENDPOINT"
	tracesEndpoint = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	headers        = "OTEL_EXPORTER_OTLP_HEADERS"
	tracesHeaders  = "OTEL_EXPORTER_OTLP_TRACES_HEADERS"
	protocol       = "OTEL_EXPORTER_OTLP_PROTOCOL"
	tracesProtocol = "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"
	disabled       = "OTEL_SDK_DISABLED"
	exporters      = "OTEL_TRACES_EXPORTER"

	authority         = "OTEL_EXPORTER_OTLP_CERTIFICATE"
	tracesAuthority   = "OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE"
	certificate       = "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE"
	tracesCertificate = "OTEL_EXPORTER_OTLP_TRACES_CLIENT_CERTIFICATE"
	privateKey        = "OTEL_EXPORTER_OTLP_CLIENT_KEY"
	tracesPrivateKey  = "OTEL_EXPORTER_OTLP_TRACES_CLIENT_KEY"
)

// FromEnvironment returns the tracer that the environment asks for; nil if it names no collector. plain lists the hosts that may get the
// headers of the environment without TLS. The caller closes the tracer.
func FromEnvironment(version string, plain network.Plain) (*Tracer, error) {
	on, err := wanted(os.Getenv, plain)
	if err != nil || !on {
		return nil, err
	}
	// Both would write to standard error, also values of variables.
	otel.SetLogger(logr.Discard())
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(error) {}))
	out, err := otlptracehttp.New(context.Background())
	if err != nil {
		return nil, fmt.Errorf("cannot export traces: %w", err)
	}
	return exportTo(out, version), nil
}

// exportTo returns a tracer with an exporter.
func exportTo(out sdk.SpanExporter, version string) *Tracer {
	// An error concerns OTEL_RESOURCE_ATTRIBUTES, and the other attributes are there.
	of, _ := resource.New(context.Background(), resource.WithAttributes(attribute.String("service.name", "headgate"), attribute.String("service.version", version)),
		resource.WithTelemetrySDK(), resource.WithFromEnv())
	provider := sdk.NewTracerProvider(sdk.WithBatcher(&logged{SpanExporter: out}), sdk.WithResource(of))
	return &Tracer{provider, provider.Tracer("headgate.dev/headgate")}
}

// An environment returns the values of variables.
type environment func(name string) string

// first returns the first of some variables that has a value.
func (e environment) first(names ...string) (name, value string) {
	for _, name := range names {
		if value := strings.TrimSpace(e(name)); value != "" {
			return name, value
		}
	}
	return "", ""
}

// wanted reports whether the environment asks for traces. Its errors quote no value except the name of a file: a URL and a header may
// contain a password.
func wanted(getenv environment, plain network.Plain) (bool, error) {
	name, value := getenv.first(tracesEndpoint, endpoint)
	if value == "" || strings.EqualFold(getenv(disabled), "true") || strings.EqualFold(getenv(exporters), "none") {
		return false, nil
	}
	to, err := url.Parse(value)
	if err != nil || to.Host == "" || to.Scheme != "http" && to.Scheme != "https" {
		return false, fmt.Errorf("%s: must be an http or https URL, such as http://collector.monitoring:4318", name)
	}
	if to.User != nil {
		return false, fmt.Errorf("%s: must not contain credentials; set them in %s", name, headers)
	}
	if name, value := getenv.first(tracesProtocol, protocol); strings.EqualFold(value, "grpc") {
		return false, fmt.Errorf("%s: Headgate does not export over grpc; set http/protobuf, and the port that the collector has for it, often 4318", name)
	}
	if name, value := getenv.first(tracesHeaders, headers); value != "" {
		if err := plain.Check(to); err != nil {
			return false, fmt.Errorf("%s: %w", name, err)
		}
	}
	err = certified(getenv)
	return err == nil, err
}

// certified returns an error for a file of certificates that cannot be used. The SDK would go on without it.
func certified(getenv environment) error {
	if name, file := getenv.first(tracesAuthority, authority); file != "" {
		pem, err := os.ReadFile(file)
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w", name, err)
		case !x509.NewCertPool().AppendCertsFromPEM(pem):
			return fmt.Errorf("%s: %s contains no certificate in PEM", name, file)
		}
	}
	name, file := getenv.first(tracesCertificate, certificate)
	keyName, key := getenv.first(tracesPrivateKey, privateKey)
	if file == "" && key == "" {
		return nil
	}
	if file == "" || key == "" {
		return fmt.Errorf("%s needs %s, and the other way round; set both", certificate, privateKey)
	}
	if _, err := tls.LoadX509KeyPair(file, key); err != nil {
		return fmt.Errorf("%s, %s: %w", name, keyName, err)
	}
	return nil
}

// Pass begins the trace of a pass.
func (t *Tracer) Pass(ctx context.Context, namespace, name, because string) (context.Context, *Span) {
	if t == nil {
		return ctx, nil
	}
	_, span := t.tracer.Start(context.Background(), "pass") //nolint:spancheck // see key; End ends it
	s := &Span{t.tracer, span}
	s.Text("sync.namespace", namespace)
	s.Text("sync.name", name)
	s.Text("because", because)
	return context.WithValue(ctx, key{}, s), s //nolint:spancheck // the same
}

// lastExport is how long Close exports. Another replica may lead already, and Kubernetes kills a process that takes longer than its grace.
const lastExport = time.Second

// Close exports what is left, for a second at most.
func (t *Tracer) Close() {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), lastExport)
	defer cancel()
	_ = t.provider.Shutdown(ctx) // what is not exported until then is lost
}

// A logged exporter logs its errors, at most one in an hour. A collector that stays away must not fill the log.
type logged struct {
	sdk.SpanExporter

	last time.Time // of a line in the log
}

const logsBetween = time.Hour

// ExportSpans exports spans. The SDK makes one call at a time.
func (l *logged) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	err := l.SpanExporter.ExportSpans(ctx, spans)
	if err != nil && (l.last.IsZero() || time.Since(l.last) > logsBetween) {
		l.last = time.Now()
		slog.Warn("traces are lost, because the collector does not take them; passes go on", "error", why(err))
	}
	return nil // dropped, and logged
}

// answered matches the status code in an error of the exporter.
var answered = regexp.MustCompile(`failed to send to \S+: (\d{3}) `)

// why returns the text of an error without quotes of the collector, which may repeat the headers that it was sent.
func why(err error) error {
	if code := answered.FindStringSubmatch(err.Error()); code != nil {
		return network.Errorf("it answers %s", code[1])
	}
	return network.Foreign(err)
}
