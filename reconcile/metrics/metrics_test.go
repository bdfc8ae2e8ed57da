package metrics

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/report"
	"headgate.dev/headgate/render/manifest"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var platform = inventory.Sync{Namespace: "headgate-system", Name: "platform"}

// shown returns the lines of our own metrics, without buckets and sums.
func shown(t *testing.T, m *Metrics) []string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
	if w.Code != http.StatusOK {
		t.Fatalf("%d: %s", w.Code, w.Body)
	}
	var lines []string
	for line := range strings.Lines(w.Body.String()) {
		line = strings.TrimSpace(strings.ReplaceAll(line, `sync="headgate-system/platform"`, "S"))
		if name, _, _ := strings.Cut(line, " "); strings.HasPrefix(line, "headgate_") && !strings.Contains(name, "_bucket{") && !strings.Contains(name, "_sum") {
			lines = append(lines, line)
		}
	}
	return lines
}

// without removes the lines with a prefix.
func without(lines []string, prefix string) []string {
	return slices.DeleteFunc(lines, func(line string) bool { return strings.HasPrefix(line, prefix) })
}

func step(action plan.Action, cause plan.Cause, guard plan.GuardName) report.Step {
	return report.Step{Action: action, Would: plan.Update, Cause: cause, Guard: guard, ID: manifest.ID{Kind: "ConfigMap", Name: "a"}}
}

func TestPasses(t *testing.T) {
	m := New()
	m.Add(platform.Namespace, platform.Name, func() int { return 3 })
	before := []string{`headgate_outbox_depth{S} 3`, `headgate_sync_info{ready="Unknown",revision="",S} 1`}
	if diff := cmp.Diff(before, without(shown(t, m), "headgate_preview_")); diff != "" {
		t.Errorf("before the first pass (-want +got):\n%s", diff)
	}
	if got := m.Waiting(); len(got) != 1 {
		t.Errorf("before the first pass, these wait: %q", got)
	}

	r := report.Report{Sync: platform, Revision: "c0ffee", Applied: true, Verdict: report.Verdict{Activation: report.Status{State: report.Failure}, ExitCode: report.ExitHeld}}
	for i := range 3 {
		r.Definitions = append(r.Definitions, report.Definition{Name: fmt.Sprint(i), Package: "provider-a", Active: i == 0, Retained: i == 1})
	}
	r.Definitions = append(r.Definitions, report.Definition{Name: "alone", Active: true})
	r.Steps = []report.Step{
		step(plan.Update, plan.Drift, ""), step(plan.Keep, plan.Drift, "drift"), step(plan.Hold, plan.Drift, "fight"), step(plan.Hold, plan.Commit, "schema"),
	}
	r.Steps[3].Undone = "ConfigMap/b failed"
	r.Fights = []facts.Fight{{ID: manifest.ID{Kind: "ConfigMap", Name: "a"}}}
	m.Passed(r, time.Second)
	after := []string{
		`headgate_definitions{provider="",state="active",S} 1`,
		`headgate_definitions{provider="provider-a",state="active",S} 1`,
		`headgate_definitions{provider="provider-a",state="inactive",S} 1`,
		`headgate_definitions{provider="provider-a",state="retained",S} 1`,
		`headgate_drifted_objects{S} 2`, // the first was corrected
		`headgate_fought_objects{S} 1`,
		`headgate_held_steps{guard="fight",S} 1`,
		`headgate_held_steps{guard="schema",S} 1`,
		`headgate_outbox_depth{S} 3`,
		`headgate_reconcile_duration_seconds_count{S} 1`,
		`headgate_sync_info{ready="False",revision="c0ffee",S} 1`,
		`headgate_waiting_prunes{S} 1`,
	}
	now := without(shown(t, m), "headgate_preview_")
	if diff := cmp.Diff(after, without(without(slices.Clone(now), "headgate_last_success"), "headgate_held_since")); diff != "" {
		t.Errorf("after a pass (-want +got):\n%s", diff)
	}
	if len(now) != len(after)+3 { // and since when two guards hold
		t.Error("a pass that only holds steps is a success")
	}
	if got := m.Waiting(); len(got) != 0 {
		t.Errorf("after the pass, these wait: %q", got)
	}

	m.Untouched(report.Report{Sync: platform, Revision: "followed"})
	for i, line := range now {
		now[i] = strings.Replace(line, "c0ffee", "followed", 1)
	}
	if diff := cmp.Diff(now, without(shown(t, m), "headgate_preview_")); diff != "" {
		t.Errorf("a commit without a pass changes only the revision (-want +got):\n%s", diff)
	}
	for i, line := range now {
		now[i] = strings.Replace(line, "followed", "c0ffee", 1)
	}

	// A pass that stopped changes no counts, and the time of the last success stays.
	m.Passed(report.Failed(platform, "c0ffee", errors.New("the API server is away")), time.Second)
	if diff := cmp.Diff(without(now, "headgate_reconcile_"), without(without(shown(t, m), "headgate_preview_"), "headgate_reconcile_")); diff != "" {
		t.Errorf("after a pass that stopped (-want +got):\n%s", diff)
	}
	// What is over is not shown any more.
	m.Passed(report.Report{Sync: platform, Revision: "decade", Verdict: report.Verdict{Activation: report.Status{State: report.Success}}}, time.Second)
	over := without(without(without(shown(t, m), "headgate_preview_"), "headgate_reconcile_"), "headgate_last_success")
	want := []string{`headgate_drifted_objects{S} 0`, `headgate_fought_objects{S} 0`, `headgate_outbox_depth{S} 3`, `headgate_sync_info{ready="True",revision="decade",S} 1`, `headgate_waiting_prunes{S} 0`}
	if diff := cmp.Diff(want, over); diff != "" {
		t.Errorf("after a quiet pass (-want +got):\n%s", diff)
	}
}

// The time of the oldest hold of a guard is that of the first pass that found it, and not of this process: an alert on old holds fires also if
// the leader changes every hour.
func TestHeldSince(t *testing.T) {
	m := New()
	m.Add(platform.Namespace, platform.Name, nil)
	at := func(since int64, name string) report.Step {
		s := step(plan.Hold, plan.Commit, "schema")
		first := metav1.Unix(since, 0)
		s.Since, s.ID.Name = &first, name
		return s
	}
	m.Passed(report.Report{Sync: platform, Steps: []report.Step{at(1_600_000_000, "a"), at(1_500_000_000, "b"), at(1_700_000_000, "c")}}, time.Second)
	if want := `headgate_held_since_timestamp_seconds{guard="schema",S} 1.5e+09`; !slices.Contains(shown(t, m), want) {
		t.Errorf("no %s in\n%s", want, strings.Join(shown(t, m), "\n"))
	}
}

// A pass that fails makes the process ready, so that Kubernetes does not wait for a commit to be repaired.
func TestFailedPassIsAPass(t *testing.T) {
	m := New()
	m.Add(platform.Namespace, platform.Name, nil)
	m.Passed(report.Failed(inventory.Sync{Namespace: "other", Name: "sync"}, "", errors.New("unknown")), time.Second)
	if len(m.Waiting()) != 1 {
		t.Error("the pass of another sync counts")
	}
	m.Passed(report.Failed(platform, "", errors.New("no such branch")), time.Second)
	if len(m.Waiting()) != 0 {
		t.Error("a failed pass does not count")
	}
	if got := strings.Join(shown(t, m), "\n"); strings.Contains(got, "headgate_last_success") || strings.Contains(got, "headgate_definitions") || !strings.Contains(got, `ready="False"`) {
		t.Errorf("a failed first pass shows no success and no counts:\n%s", got)
	}
}

// Commits name packages and any number of definitions. Neither may grow the number of series, or break a scrape.
func TestCardinalityIsBounded(t *testing.T) {
	m := New()
	m.Add(platform.Namespace, platform.Name, nil)
	r := report.Report{Sync: platform}
	add := func(pkg string, n int) {
		for i := range n {
			r.Definitions = append(r.Definitions, report.Definition{Name: fmt.Sprint(pkg, i), Package: pkg, Active: i%2 == 0})
		}
	}
	add(strings.Repeat("long", 1<<16), 400)
	add("not \xff UTF-8", 300)
	add("other", 200)
	add("largest", 1000)
	for i := range 500 {
		add(fmt.Sprintf("provider-%03d", i), 2)
	}
	m.Passed(r, time.Second)
	lines := slices.DeleteFunc(shown(t, m), func(line string) bool { return !strings.HasPrefix(line, "headgate_definitions") })
	if len(lines) > 2*mostProviders {
		t.Errorf("%d series of definitions", len(lines))
	}
	for _, want := range []string{`headgate_definitions{provider="largest",state="active",S} 500`, `headgate_definitions{provider="provider-000",state="active",S} 1`} {
		if !slices.Contains(lines, want) {
			t.Errorf("no %s in:\n%s", want, strings.Join(lines, "\n"))
		}
	}
	total := 0
	for _, line := range lines {
		var n int
		if _, err := fmt.Sscan(line[strings.LastIndex(line, " "):], &n); err != nil {
			t.Fatal(err)
		}
		total += n
		if len(line) > 400 || strings.Contains(line, "\xff") {
			t.Errorf("%.80q…", line)
		}
	}
	if total != len(r.Definitions) {
		t.Errorf("the series count %d definitions of %d", total, len(r.Definitions))
	}
}

func TestRequests(t *testing.T) {
	m := New()
	m.Requested("LIST")
	m.Requested("LIST")
	m.Requested("DRY-RUN PATCH")
	m.Previewed(time.Minute)
	want := []string{`headgate_api_requests_total{verb="DRY-RUN PATCH"} 1`, `headgate_api_requests_total{verb="LIST"} 2`, `headgate_preview_duration_seconds_count 1`}
	if diff := cmp.Diff(want, shown(t, m)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A sync that goes away leaves no series but the number of its objects, and that goes once a sync of its name is back, or once the
// objects are deleted.
func TestSyncsGo(t *testing.T) {
	m := New()
	series := func() []string { return without(shown(t, m), "headgate_preview_") }
	run := func() {
		m.Add(platform.Namespace, platform.Name, nil)
		m.Suspend(platform.Namespace, platform.Name, time.Unix(1_800_000_000, 0))
		m.Passed(report.Report{Sync: platform, Summary: report.Summary{Created: 1, Updated: 2, Unchanged: 4}}, time.Second)
	}
	orphans := []string{`headgate_orphaned_objects{S} 7`}
	run()
	if !slices.Contains(series(), `headgate_suspended_until_timestamp_seconds{S} 1.8e+09`) {
		t.Errorf("a suspended sync shows:\n%s", strings.Join(series(), "\n"))
	}
	m.Remove(platform.Namespace, platform.Name)
	if diff := cmp.Diff(orphans, series()); diff != "" {
		t.Errorf("after the sync went (-want +got):\n%s", diff)
	}
	m.Stall(platform.Namespace, platform.Name, "AboveCeiling")
	if diff := cmp.Diff([]string{`headgate_stalled{reason="AboveCeiling",S} 1`, `headgate_sync_info{ready="False",revision="",S} 1`}, series()); diff != "" {
		t.Errorf("a sync that does not run (-want +got):\n%s", diff)
	}
	if got := m.Waiting(); len(got) != 0 {
		t.Errorf("a sync that does not run keeps the process from being ready: %q", got)
	}
	m.Remove(platform.Namespace, platform.Name)
	if diff := cmp.Diff(orphans, series()); diff != "" {
		t.Errorf("after the stalled sync went (-want +got):\n%s", diff)
	}
	run()
	if slices.Contains(series(), orphans[0]) {
		t.Error("the objects of a sync that is back are no orphans")
	}
	m.Remove(platform.Namespace, platform.Name)
	m.Forget(platform.Namespace, platform.Name)
	if got := series(); len(got) != 0 {
		t.Errorf("after the objects were deleted:\n%s", strings.Join(got, "\n"))
	}
	for i := range 2 * mostOrphaned { // a tenant creates and deletes syncs
		name := fmt.Sprint(i)
		m.Add("team", name, nil)
		m.Passed(report.Report{Sync: inventory.Sync{Namespace: "team", Name: name}, Summary: report.Summary{Created: 1}}, time.Second)
		m.Remove("team", name)
	}
	if got := series(); len(got) > mostOrphaned+1 || !slices.Contains(got, fmt.Sprintf(`headgate_orphaned_objects{sync="other"} %d`, mostOrphaned)) {
		t.Errorf("%d series of orphans", len(got))
	}
}
