package metrics

import (
	"cmp"
	"maps"
	"slices"
	"time"
	"unicode/utf8"

	"headgate.dev/headgate/reconcile/report"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The values of the label ready, which are those of conditions.
const (
	ready    = "True"
	notReady = "False"
	unknown  = "Unknown" // before the first pass, and while the commit is pending
)

const (
	mostProviders = 50      // of a sync; definitions of further ones count as those of others
	mostOrphaned  = 1000    // syncs that are gone; the objects of further ones count as those of others
	longestName   = 253     // of a provider; Kubernetes allows no longer one
	others        = "other" // the provider of these definitions
)

var (
	info        = prometheus.NewDesc("headgate_sync_info", "Always 1. ready is the activation status of the revision: True, False, or Unknown while it is pending.", []string{"sync", "ready", "revision"}, nil)
	definitions = prometheus.NewDesc("headgate_definitions", "Definitions of the last pass that ended, by state and by the package that contains them.", []string{"sync", "state", "provider"}, nil)
	held        = prometheus.NewDesc("headgate_held_steps", "Steps that a guard held in the last pass that ended.", []string{"sync", "guard"}, nil)
	heldSince   = prometheus.NewDesc("headgate_held_since_timestamp_seconds", "When a guard first held the oldest of the steps that it holds, in whatever process.", []string{"sync", "guard"}, nil)
	drifted     = prometheus.NewDesc("headgate_drifted_objects", "Objects that another writer changed and that the last pass did not correct.", []string{"sync"}, nil)
	fights      = prometheus.NewDesc("headgate_fought_objects", "Objects whose corrections another writer undoes again and again.", []string{"sync"}, nil)
	waiting     = prometheus.NewDesc("headgate_waiting_prunes", "Prunes that wait for creates and updates that failed, are held or wait.", []string{"sync"}, nil)
	stalled     = prometheus.NewDesc("headgate_stalled", "Always 1, for a sync that does not run until a person changes it.", []string{"sync", "reason"}, nil)
	suspended   = prometheus.NewDesc("headgate_suspended_until_timestamp_seconds", "When the suspension of a sync should end.", []string{"sync"}, nil)
	orphaned    = prometheus.NewDesc("headgate_orphaned_objects", "Objects that a sync left in the cluster when it went, since this process runs. 'headgate status --orphans' reads the cluster, and also lists older ones.", []string{"sync"}, nil)
	depth       = prometheus.NewDesc("headgate_outbox_depth", "Commits whose status waits for the forge.", []string{"sync"}, nil)
	succeeded   = prometheus.NewDesc("headgate_last_success_timestamp_seconds", "When the last pass ended in which nothing failed. Steps may be held.", []string{"sync"}, nil)
)

// A state is what the metrics of a sync show.
type state struct {
	outbox func() int // nil if no statuses are posted

	tried    bool // a pass ended, with or without an error
	ready    string
	revision string
	success  time.Time // zero before the first success
	counts   *counts   // of the last pass that ended without an error; nil before it
	objects  int       // that the sync has in the cluster

	stalled   string    // why the sync does not run; "" if it does
	suspended time.Time // until when; zero if it is not
}

// counts are the numbers of a report.
type counts struct {
	definitions map[[2]string]int // by state and provider
	held        map[string]int    // by guard
	heldSince   map[string]time.Time
	drifted     int
	fights      int
	waiting     int // prunes
}

// passed updates the state. A pass that stopped with an error has not looked at everything, so it changes no counts.
func (s *state) passed(r report.Report, now time.Time) {
	s.tried, s.revision = true, r.Revision
	s.ready = map[report.State]string{report.Success: ready, report.Pending: unknown}[r.Verdict.Activation.State]
	s.ready = cmp.Or(s.ready, notReady)
	if r.Error != "" {
		return
	}
	s.counts = &counts{definitions: byProvider(r.Definitions), held: map[string]int{}, heldSince: map[string]time.Time{}, drifted: r.Uncorrected(), fights: len(r.Fights), waiting: r.WaitingPrunes()}
	s.objects = r.Summary.Created + r.Summary.Updated + r.Summary.Unchanged
	for _, h := range r.Holds(metav1.NewTime(now)) {
		s.counts.held[h.Guard] += h.Count
		if oldest := s.counts.heldSince[h.Guard]; oldest.IsZero() || h.Since.Time.Before(oldest) {
			s.counts.heldSince[h.Guard] = h.Since.Time
		}
	}
	if r.Verdict.ExitCode != report.ExitFailed {
		s.success = now
	}
}

// byProvider counts definitions by state and provider. Commits name providers, so only the largest have a label of their own.
func byProvider(all []report.Definition) map[[2]string]int {
	sizes := map[string]int{}
	for _, d := range all {
		sizes[d.Package]++
	}
	names := slices.SortedFunc(maps.Keys(sizes), func(a, b string) int {
		return cmp.Or(cmp.Compare(sizes[b], sizes[a]), cmp.Compare(a, b))
	})
	shown := map[string]string{}
	for i, name := range names {
		if shown[name] = name; i >= mostProviders || len(name) > longestName || !utf8.ValidString(name) {
			shown[name] = others
		}
	}
	counts := map[[2]string]int{}
	for _, d := range all {
		counts[[2]string{stateOf(d), shown[d.Package]}]++
	}
	return counts
}

func stateOf(d report.Definition) string {
	switch {
	case d.Retained:
		return "retained"
	case d.Active:
		return "active"
	}
	return "inactive"
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{info, definitions, held, heldSince, drifted, fights, waiting, stalled, suspended, orphaned, depth, succeeded} {
		to <- d
	}
}

// Collect implements prometheus.Collector. All series of a sync come from one pass.
func (m *Metrics) Collect(to chan<- prometheus.Metric) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name, n := range m.orphans {
		to <- prometheus.MustNewConstMetric(orphaned, prometheus.GaugeValue, float64(n), name)
	}
	for name, s := range m.syncs {
		s.collect(func(of *prometheus.Desc, value float64, labels ...string) {
			to <- prometheus.MustNewConstMetric(of, prometheus.GaugeValue, value, append([]string{name}, labels...)...)
		})
	}
}

func (s *state) collect(gauge func(of *prometheus.Desc, value float64, labels ...string)) {
	gauge(info, 1, s.ready, s.revision)
	if s.stalled != "" {
		gauge(stalled, 1, s.stalled)
	}
	if !s.suspended.IsZero() {
		gauge(suspended, float64(s.suspended.Unix()))
	}
	if s.outbox != nil {
		gauge(depth, float64(s.outbox()))
	}
	if !s.success.IsZero() {
		gauge(succeeded, float64(s.success.UnixMilli())/1000)
	}
	if s.counts == nil {
		return
	}
	for key, n := range s.counts.definitions {
		gauge(definitions, float64(n), key[0], key[1])
	}
	for guard, n := range s.counts.held {
		gauge(held, float64(n), guard)
		gauge(heldSince, float64(s.counts.heldSince[guard].Unix()), guard)
	}
	gauge(drifted, float64(s.counts.drifted))
	gauge(fights, float64(s.counts.fights))
	gauge(waiting, float64(s.counts.waiting))
}
