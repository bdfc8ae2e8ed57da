package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"headgate.dev/headgate/reconcile"
	"headgate.dev/headgate/reconcile/cluster"
	"headgate.dev/headgate/reconcile/metrics"
	"headgate.dev/headgate/reconcile/network"
	"headgate.dev/headgate/reconcile/trace"

	"github.com/spf13/cobra"
)

// serve answers requests until ctx is done, and then finishes open requests. Timeouts and size limits protect it from
// unauthenticated clients.
func serve(ctx context.Context, heard net.Listener, handler http.Handler) error {
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      20 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    32 << 10,
		ErrorLog:          slog.NewLogLogger(slog.Default().Handler(), slog.LevelDebug),
	}
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(ended)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		_ = server.Shutdown(ctx)
	})
	err := server.Serve(heard)
	if !stop() {
		<-ended
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// probes are the addresses at which others look at a running process. They answer without credentials, and only read.
type probes struct{ health, metrics string }

func (p *probes) addTo(cmd *cobra.Command, health, metrics string) {
	none := ""
	if health == "" {
		none = ", such as :9440 (default: none)"
	}
	cmd.Flags().StringVar(&p.health, "health-address", health, "answer GET /healthz and /readyz on this `address`"+none)
	cmd.Flags().StringVar(&p.metrics, "metrics-address", metrics, "answer GET /metrics, for Prometheus, on this `address`"+strings.Replace(none, "9440", "8080", 1))
}

// given reports whether there is an address.
func (p probes) given() bool { return p.health != "" || p.metrics != "" }

// A probed is an address that is listened on.
type probed struct {
	flag    string
	heard   net.Listener
	handler http.Handler
}

// serve answers until ctx is done.
func (p probed) serve(ctx context.Context) {
	if err := serve(ctx, p.heard, p.handler); err != nil {
		slog.Error("Headgate no longer answers", "for", p.flag, "error", err)
	}
}

// listen listens on the addresses that are given. waits returns what the process waits for before it is ready.
func (p probes) listen(ctx context.Context, of *metrics.Metrics, waits func() []string) ([]probed, error) {
	var all []probed
	for _, one := range []struct {
		flag, address string
		handler       http.Handler
	}{
		{"--health-address", p.health, health(waits)},
		{"--metrics-address", p.metrics, scrapes(of)},
	} {
		if one.address == "" {
			continue
		}
		heard, err := (&net.ListenConfig{}).Listen(ctx, "tcp", one.address)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", one.flag, err)
		}
		slog.Info("listening", "for", one.flag, "address", heard.Addr().String())
		all = append(all, probed{one.flag, heard, one.handler})
	}
	return all, nil
}

// health answers that the process lives, and that it is ready once it waits for nothing.
func health(waits func() []string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if waiting := waits(); len(waiting) > 0 {
			http.Error(w, "waiting for "+strings.Join(waiting, ", "), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	return mux
}

func scrapes(of *metrics.Metrics) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", of.Handler())
	return mux
}

// measure records an event of a loop.
func measure(to *metrics.Metrics, e reconcile.Event) {
	switch e.Kind {
	case reconcile.Passed:
		to.Passed(e.Report, e.Took)
	case reconcile.Untouched:
		to.Untouched(e.Report)
	case reconcile.Previewed:
		to.Previewed(e.Took)
	default:
	}
}

// aboutTraces is the part of the help about traces.
const aboutTraces = `If OTEL_EXPORTER_OTLP_ENDPOINT names an OpenTelemetry collector, such as
http://collector.monitoring:4318, each pass is a trace there.`

// tracerOfPasses returns what makes traces of passes; nil if the environment names no collector. A wrong variable stops no pass.
func tracerOfPasses(plain network.Plain) *trace.Tracer {
	made, err := trace.FromEnvironment(thisBuild().Version, plain)
	if err != nil {
		slog.Warn("passes have no traces", "error", err)
	}
	return made
}

// A counter counts the requests that pass through it.
type counter struct {
	http.RoundTripper

	to *metrics.Metrics
}

func (c counter) RoundTrip(req *http.Request) (*http.Response, error) {
	c.to.Requested(cluster.Verb(req))
	return c.RoundTripper.RoundTrip(req)
}
