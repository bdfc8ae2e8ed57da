// Package metrics shows the reports of passes as metrics for Prometheus. It only reads reports: what it shows is what statuses and
// programs get. Its metrics never have the name of a definition or of an object as a label, so their number does not grow with the
// commits.
package metrics

import (
	"net/http"
	"slices"
	"sync"
	"time"

	"headgate.dev/headgate/reconcile/report"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Metrics are the metrics of a process. Its methods are safe for concurrent use.
type Metrics struct {
	registry Registry
	passes   *prometheus.HistogramVec
	previews prometheus.Histogram
	requests *prometheus.CounterVec

	mu      sync.Mutex
	orphans map[string]int // objects that syncs left, by sync
	ready   bool           // once no sync waited; those that are added later do not change that
	syncs   map[string]*state
}

// durations are the upper bounds of the buckets of durations, in seconds: a quiet pass takes less than a second, and one that waits
// for Crossplane takes minutes.
var durations = []float64{0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1200}

// A Registry holds the metrics of a process.
type Registry interface {
	prometheus.Registerer
	prometheus.Gatherer
}

// New returns the metrics of a process.
func New() *Metrics {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return Into(registry)
}

// Into returns metrics that a registry holds beside others.
func Into(registry Registry) *Metrics {
	m := &Metrics{
		registry: registry,
		passes: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "headgate_reconcile_duration_seconds", Help: "Duration of passes, with and without an error.", Buckets: durations,
		}, []string{"sync"}),
		previews: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "headgate_preview_duration_seconds", Help: "Duration of previews of pull requests, with and without an error.", Buckets: durations,
		}),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "headgate_api_requests_total", Help: "Requests to the API server by verb; dry runs have verbs of their own.",
		}, []string{"verb"}),
		orphans: map[string]int{}, syncs: map[string]*state{},
	}
	registry.MustRegister(m.passes, m.previews, m.requests, m)
	return m
}

// Add adds a sync whose passes will follow, or replaces it. outbox returns the number of its reports that wait for the forge; nil if
// none are posted.
func (m *Metrics) Add(namespace, name string, outbox func() int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	of := label(namespace, name)
	m.syncs[of] = &state{ready: unknown, outbox: outbox, objects: m.taken(of)}
}

// taken returns the number of objects that a sync of this name has in the cluster, which are no orphans any more. Its lock is held.
func (m *Metrics) taken(of string) int {
	n := m.orphans[of]
	delete(m.orphans, of)
	if s := m.syncs[of]; s != nil {
		n = s.objects
	}
	return n
}

// Stall shows that a sync does not run until a person changes it.
func (m *Metrics) Stall(namespace, name, reason string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	of := label(namespace, name)
	m.syncs[of] = &state{tried: true, ready: notReady, stalled: reason, objects: m.taken(of)}
}

// Suspend shows until when a sync is suspended; the zero time ends that. It ignores syncs that were not added.
func (m *Metrics) Suspend(namespace, name string, until time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.syncs[label(namespace, name)]; s != nil {
		s.suspended = until
	}
}

// Remove removes a sync. Its objects become orphans.
func (m *Metrics) Remove(namespace, name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	of := label(namespace, name)
	if s := m.syncs[of]; s != nil && s.objects > 0 {
		if len(m.orphans) >= mostOrphaned { // names of syncs are free, too
			m.orphans[others] += s.objects
		} else {
			m.orphans[of] = s.objects
		}
	}
	delete(m.syncs, of)
	m.passes.DeleteLabelValues(of)
}

// Forget removes a sync that leaves no orphans: its objects were deleted, or another process has it.
func (m *Metrics) Forget(namespace, name string) {
	m.Remove(namespace, name)
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.orphans, label(namespace, name))
}

// label returns the value of the label sync.
func label(namespace, name string) string { return namespace + "/" + name }

// Passed records a pass and its report. It ignores syncs that were not added.
func (m *Metrics) Passed(r report.Report, took time.Duration) {
	of := label(r.Sync.Namespace, r.Sync.Name)
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.syncs[of]; s != nil {
		s.passed(r, time.Now())
		m.passes.WithLabelValues(of).Observe(took.Seconds())
	}
}

// Untouched records that a new commit needs no pass, because it has the report of the last one.
func (m *Metrics) Untouched(r report.Report) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.syncs[label(r.Sync.Namespace, r.Sync.Name)]; s != nil {
		s.revision = r.Revision
	}
}

// Previewed records the preview of a pull request.
func (m *Metrics) Previewed(took time.Duration) { m.previews.Observe(took.Seconds()) }

// Cache shows what a function returns as the bytes of the cache.
func (m *Metrics) Cache(used func() int64) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "headgate_cache_bytes", Help: "Bytes in the cache directory.",
	}, func() float64 { return float64(used()) }))
}

// Requested records a request to the API server.
func (m *Metrics) Requested(verb string) { m.requests.WithLabelValues(verb).Inc() }

// Waiting returns the syncs that have not ended their first pass, sorted. Once there are none, it returns none also if a sync is added.
func (m *Metrics) Waiting() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []string
	for of, s := range m.syncs {
		if !s.tried && !m.ready {
			all = append(all, of)
		}
	}
	m.ready = len(all) == 0
	slices.Sort(all)
	return all
}

// Handler serves the metrics. It limits the time and the number of concurrent requests.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4, Timeout: 10 * time.Second})
}
