package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"headgate.dev/headgate/reconcile"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/metrics"
	"headgate.dev/headgate/reconcile/report"
)

// Everybody who reaches the addresses may ask, so they answer few questions, and change nothing.
func TestProbes(t *testing.T) {
	of := inventory.Sync{Namespace: "headgate-system", Name: "platform"}
	counts := metrics.New()
	counts.Add(of.Namespace, of.Name, nil)
	ctx, stop := context.WithCancel(t.Context())
	listening, err := probes{health: "127.0.0.1:0", metrics: "127.0.0.1:0"}.listen(ctx, counts, (&filed{counts: counts}).waiting)
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	for _, one := range listening {
		running.Go(func() { one.serve(ctx) })
	}
	health, scrape := "http://"+listening[0].heard.Addr().String(), "http://"+listening[1].heard.Addr().String()
	ask := func(method, url string, want int, text string) {
		t.Helper()
		req, err := http.NewRequest(method, url, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if body, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != want || !strings.Contains(string(body), text) {
			t.Errorf("%s %s: %d %v, want %d with %q:\n%s", method, url, resp.StatusCode, err, want, text, body)
		}
	}
	ask(http.MethodGet, health+"/healthz", http.StatusOK, "ok")
	ask(http.MethodGet, health+"/readyz", http.StatusServiceUnavailable, "headgate-system/platform")
	ask(http.MethodPost, health+"/healthz", http.StatusMethodNotAllowed, "")
	ask(http.MethodGet, health+"/metrics", http.StatusNotFound, "")
	ask(http.MethodGet, scrape+"/debug/pprof/", http.StatusNotFound, "")
	ask(http.MethodPut, scrape+"/metrics", http.StatusMethodNotAllowed, "")
	ask(http.MethodGet, scrape+"/metrics", http.StatusOK, `headgate_sync_info{ready="Unknown"`)

	measure(counts, reconcile.Event{Kind: reconcile.Stopped, Report: report.Report{Sync: of}})
	ask(http.MethodGet, health+"/readyz", http.StatusServiceUnavailable, "") // a pass that made way for a newer commit is none
	measure(counts, reconcile.Event{Kind: reconcile.Passed, Report: report.Failed(of, "", errors.New("no such branch")), Took: time.Second})
	measure(counts, reconcile.Event{Kind: reconcile.Previewed, Took: time.Second})
	ask(http.MethodGet, health+"/readyz", http.StatusOK, "ok")
	ask(http.MethodGet, scrape+"/metrics", http.StatusOK, `headgate_sync_info{ready="False"`)
	ask(http.MethodGet, scrape+"/metrics", http.StatusOK, "headgate_preview_duration_seconds_count 1")
	ask(http.MethodGet, scrape+"/metrics", http.StatusOK, "process_resident_memory_bytes")

	stop()
	running.Wait()
}
