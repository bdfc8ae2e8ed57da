package trace

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	fixture "headgate.dev/headgate/fixtures/certificate"
	"headgate.dev/headgate/fixtures/collector"
	"headgate.dev/headgate/reconcile/network"
	"headgate.dev/headgate/reconcile/reason"

	"github.com/google/go-cmp/cmp"
	sdk "go.opentelemetry.io/otel/sdk/trace"
)

const secret = "s3cret-t0ken"

// A collector is often outside of the cluster. It gets names, counts and codes, and no text of an error.
func TestExport(t *testing.T) {
	c := collector.Start(t)
	t.Setenv(endpoint, c.URL)
	t.Setenv(headers, "x-key="+secret)
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "k8s.cluster.name=east")
	tracer, err := FromEnvironment("v1.2.3", nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, pass := tracer.Pass(t.Context(), "team-a", "platform", "new commit")
	fetching, fetch := Begin(ctx, "fetch")
	_, inner := Begin(fetching, "inner")
	inner.End(nil)
	fetch.Text("revision", strings.Repeat("é", mostText)+"\xff")
	fetch.Text("empty", "")
	fetch.End(fmt.Errorf("https://user:%s@example.org: no", secret))
	_, apply := Begin(ctx, "apply")
	apply.Count("objects", 3)
	apply.End(reason.CodedError{Reason: reason.KindNowhere.With(secret)})
	pass.End(nil)
	flush(t, tracer)
	want := []string{strings.Join([]string{
		"pass because=new commit sync.name=platform sync.namespace=team-a",
		"  fetch reason=Failed revision=" + strings.Repeat("é", mostText/2) + " ERROR Failed",
		"    inner",
		"  apply objects=3 reason=KindNowhere ERROR KindNowhere", "",
	}, "\n")}
	if diff := cmp.Diff(want, c.Traces()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if strings.Contains(c.Received(), secret) {
		t.Error("a secret is in a span")
	}
	if got := c.Headers().Get("X-Key"); got != secret {
		t.Errorf("the collector got the header %q", got)
	}
	for _, want := range []string{"service.name=headgate", "service.version=v1.2.3", "k8s.cluster.name=east"} {
		if !strings.Contains(c.Resource(), want) {
			t.Errorf("%s lacks %s", c.Resource(), want)
		}
	}
}

// Users who want no traces pay nothing for them.
func TestOff(t *testing.T) {
	t.Setenv(endpoint, "")
	t.Setenv(tracesEndpoint, "")
	tracer, err := FromEnvironment("", nil)
	if tracer != nil || err != nil {
		t.Fatalf("without a collector: %v, %v", tracer, err)
	}
	boom := errors.New("boom")
	allocations := testing.AllocsPerRun(100, func() {
		ctx, pass := tracer.Pass(t.Context(), "team-a", "platform", "time")
		_, span := Begin(ctx, "apply")
		span.Count("objects", 1000)
		span.Text("revision", "a")
		span.Fail(reason.Failed)
		span.End(boom)
		pass.End(nil)
	})
	if allocations != 0 {
		t.Errorf("%v allocations", allocations)
	}
	tracer.Close()
}

// flush exports everything, however long that takes, and closes the tracer.
func flush(t *testing.T, tracer *Tracer) {
	t.Helper()
	if err := tracer.provider.ForceFlush(t.Context()); err != nil {
		t.Fatal(err)
	}
	tracer.Close()
}

func TestWanted(t *testing.T) {
	const at = "http://collector.monitoring:4318"
	of, _ := fixture.New("collector.monitoring")
	ca, empty := written(t, of), written(t, nil)
	for name, tc := range map[string]struct {
		reason string
		env    map[string]string
		plain  network.Plain
		on     bool
		err    string
	}{
		"Nothing":     {reason: "Nothing leaves the process unless someone asks for it.", env: map[string]string{headers: "a=b"}},
		"Endpoint":    {reason: "The usual variable is enough.", env: map[string]string{endpoint: at}, on: true},
		"OfTraces":    {reason: "The variable for traces is enough.", env: map[string]string{tracesEndpoint: at + "/v1/traces"}, on: true},
		"Disabled":    {reason: "An injected endpoint can be overruled.", env: map[string]string{endpoint: at, disabled: "true"}},
		"NoExporter":  {reason: "The endpoint may be there for another signal.", env: map[string]string{endpoint: at, exporters: "none"}},
		"NoScheme":    {reason: "The SDK would export to localhost without a word.", env: map[string]string{endpoint: "collector:4318"}, err: endpoint},
		"NoHost":      {reason: "It is no address.", env: map[string]string{endpoint: "http:///" + secret}, err: endpoint},
		"NoURL":       {reason: "An error quotes no value.", env: map[string]string{tracesEndpoint: "http://a:" + secret + "@[::1"}, err: tracesEndpoint},
		"Credentials": {reason: "The SDK would drop them.", env: map[string]string{endpoint: "https://a:" + secret + "@example.org"}, err: "must not contain credentials"},
		"GRPC":        {reason: "The SDK would send HTTP to the port of grpc.", env: map[string]string{endpoint: at, protocol: "grpc"}, err: protocol},
		"OwnProtocol": {reason: "The variable for traces decides.", env: map[string]string{endpoint: at, protocol: "grpc", tracesProtocol: "http/protobuf"}, on: true},
		"Plain":       {reason: "Credentials need TLS.", env: map[string]string{endpoint: at, headers: "k=" + secret}, err: "--plain-http collector.monitoring:4318"},
		"PlainHost":   {reason: "A user may allow it.", env: map[string]string{endpoint: at, tracesHeaders: "k=" + secret}, plain: network.Plain{"collector.monitoring"}, on: true},
		"TLS":         {reason: "TLS needs no permission.", env: map[string]string{endpoint: "https://collector.example.org", headers: "k=" + secret}, on: true},
		"Authority":   {reason: "A file of a CA is used.", env: map[string]string{endpoint: at, authority: ca}, on: true},
		"NoAuthority": {reason: "The SDK would use the CAs of the system without a word.", env: map[string]string{endpoint: at, authority: ca + ".gone"}, err: authority + ": open "},
		"NotPEM":      {reason: "The SDK would use the CAs of the system without a word.", env: map[string]string{endpoint: at, authority: ca, tracesAuthority: empty}, err: tracesAuthority + ": " + empty + " contains no certificate"},
		"NoKey":       {reason: "The SDK would send no certificate.", env: map[string]string{endpoint: at, certificate: ca}, err: "set both"},
		"NotAKey":     {reason: "The SDK would send no certificate.", env: map[string]string{endpoint: at, certificate: ca, privateKey: ca}, err: certificate + ", " + privateKey},
	} {
		t.Run(name, func(t *testing.T) {
			on, err := wanted(func(name string) string { return tc.env[name] }, tc.plain)
			if on != tc.on || (err != nil) != (tc.err != "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%s\nwanted(...): got %t, %v; want %t, %q", tc.reason, on, err, tc.on, tc.err)
			}
			if err != nil && strings.Contains(err.Error(), secret) {
				t.Errorf("the error quotes a secret: %v", err)
			}
		})
	}
}

// A hung collector takes spans and never returns, not even when it is told to.
type hung struct {
	sdk.SpanExporter

	release chan struct{}
	taken   int
}

func (h *hung) ExportSpans(_ context.Context, spans []sdk.ReadOnlySpan) error {
	<-h.release
	h.taken += len(spans)
	return nil
}

func (h *hung) Shutdown(context.Context) error { return nil }

// Passes do not wait for a collector, nor does the end of the process, and what waits for the collector has a bound.
func TestHungCollector(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &hung{release: make(chan struct{})}
		tracer := exportTo(out, "")
		begun := time.Now()
		for range 10_000 {
			_, span := tracer.Pass(t.Context(), "team-a", "platform", "time")
			span.End(nil)
		}
		if took := time.Since(begun); took != 0 {
			t.Errorf("10,000 passes waited %s for the collector", took)
		}
		tracer.Close()
		if took := time.Since(begun); took != lastExport {
			t.Errorf("the end waited %s", took)
		}
		_, late := tracer.Pass(t.Context(), "team-a", "platform", "time")
		late.End(nil)
		close(out.release)
		synctest.Wait()
		if most := sdk.DefaultMaxQueueSize + sdk.DefaultMaxExportBatchSize + 1; out.taken == 0 || out.taken > most {
			t.Errorf("%d spans waited, want 1 to %d", out.taken, most)
		}
	})
}

// The last pass of a process has a trace, too.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &hung{release: make(chan struct{})}
		close(out.release)
		tracer := exportTo(out, "")
		_, span := tracer.Pass(t.Context(), "team-a", "platform", "time")
		span.End(nil)
		begun := time.Now()
		tracer.Close()
		if took := time.Since(begun); took != 0 || out.taken != 1 {
			t.Errorf("the end exported %d spans in %s, want 1 at once", out.taken, took)
		}
	})
}

// A refusing exporter refuses everything.
type refusing struct{ sdk.SpanExporter }

func (refusing) ExportSpans(context.Context, []sdk.ReadOnlySpan) error { return errors.New("no") }

// A collector that stays away must not fill the log.
func TestLogOfErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := logging(t)
		out := &logged{SpanExporter: refusing{}}
		for range 130 {
			if err := out.ExportSpans(t.Context(), nil); err != nil {
				t.Errorf("the SDK would log %v once more", err)
			}
			time.Sleep(time.Minute)
		}
		if n := strings.Count(log.String(), "\n"); n != 3 {
			t.Errorf("in 130 minutes, there are %d lines:\n%s", n, log)
		}
	})
}

// A collector may have a certificate of a CA of its own. The log names the problem if it is another CA, and not after each pass.
func TestTLS(t *testing.T) {
	c := collector.Start(t)
	server := httptest.NewTLSServer(c)
	t.Cleanup(server.Close)
	own := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	other, _ := fixture.New("127.0.0.1")
	t.Setenv(endpoint, server.URL)
	for _, tc := range []struct {
		ca   []byte
		sent int
		want string
	}{
		{own, 3, ""},
		{other, 0, "x509: certificate signed by unknown authority"},
	} {
		t.Setenv(authority, written(t, tc.ca))
		log, before := logging(t), len(c.Traces())
		tracer, err := FromEnvironment("", nil)
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			_, pass := tracer.Pass(t.Context(), "team-a", "platform", "time")
			pass.End(nil)
			if err := tracer.provider.ForceFlush(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		tracer.Close()
		sent, lines := len(c.Traces())-before, 1
		if tc.want == "" {
			lines = 0
		}
		if got := log.String(); sent != tc.sent || strings.Count(got, "traces are lost") != lines || !strings.Contains(got, tc.want) {
			t.Errorf("%d traces were sent, want %d; want %d lines with %q, got:\n%s", sent, tc.sent, lines, tc.want, got)
		}
	}
}

// written returns a file with a content.
func written(t *testing.T, content []byte) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// logging returns the log of a test.
func logging(t *testing.T) *bytes.Buffer {
	t.Helper()
	log, before := new(bytes.Buffer), slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(log, nil)))
	t.Cleanup(func() { slog.SetDefault(before) })
	return log
}

// A collector may repeat the headers that it was sent. The log names the status code and quotes nothing.
func TestRefusingCollector(t *testing.T) {
	for status, want := range map[int]string{http.StatusUnauthorized: "it answers 401", http.StatusNotFound: "it answers 404"} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, r.Header.Get("X-Key"), status)
		}))
		t.Setenv(endpoint, server.URL)
		t.Setenv(headers, "x-key="+secret)
		log := logging(t)
		tracer, err := FromEnvironment("", nil)
		if err != nil {
			t.Fatal(err)
		}
		_, pass := tracer.Pass(t.Context(), "team-a", "platform", "time")
		pass.End(nil)
		flush(t, tracer)
		server.Close()
		if got := log.String(); !strings.Contains(got, want) || strings.Contains(got, secret) || strings.Count(got, "\n") != 1 {
			t.Errorf("%d: want one line with %q, got:\n%s", status, want, got)
		}
	}
}
