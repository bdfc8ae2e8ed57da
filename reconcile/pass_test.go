package reconcile

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"headgate.dev/headgate/reconcile/demand"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/question"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/reconcile/report"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// A beside is a cluster in which Crossplane installs a provider after some time.
type beside struct {
	began    time.Time
	healthy  time.Duration // time until the provider is healthy; 0 for never
	served   time.Duration // time until the provider's kind is served; 0 for never
	moved    int           // number of applies after the first that find a changed inventory
	applied  []string
	attempts int
}

var (
	kindProvider = schema.GroupKind{Group: "pkg.crossplane.io", Kind: "Provider"}
	kindConfig   = schema.GroupKind{Group: "toy.example.org", Kind: "ProviderConfig"}
)

func (b *beside) Observe(_ context.Context, want render.Desired) (facts.Observed, error) {
	seen := facts.Observed{
		Ground: facts.Ground{
			Kinds:     map[schema.GroupKind]plan.Kind{kindProvider: {Version: "v1", Resource: "providers"}},
			Inventory: inventory.Inventory{Entries: map[manifest.ID]inventory.Entry{}},
		},
		Live: facts.Live{Objects: map[manifest.ID]*metav1.PartialObjectMetadata{}},
	}
	past := func(d time.Duration) bool { return d > 0 && time.Since(b.began) >= d }
	if past(b.served) {
		seen.Kinds[kindConfig] = plan.Kind{Version: "v1", Resource: "providerconfigs"}
	}
	if past(b.healthy) {
		seen.Upstream.Packages = map[manifest.ID]crossplane.LivePackage{
			{Group: kindProvider.Group, Kind: kindProvider.Kind, Name: "toy"}: {Installed: metav1.ConditionTrue, Healthy: metav1.ConditionTrue},
		}
	}
	return demand.Ask(seen, want)
}

func (b *beside) Answer(context.Context, []question.Any) (question.Answers, error) {
	return nil, nil
}

func (b *beside) Apply(_ context.Context, p plan.Plan) ([]plan.Outcome, error) {
	b.attempts++
	if b.attempts > 1 && b.attempts-1 <= b.moved {
		return nil, reason.ErrMoved
	}
	var done []plan.Outcome
	for _, s := range p.Steps {
		if s.Writes() && s.Err == nil {
			b.applied = append(b.applied, s.ID.Name)
			done = append(done, plan.Outcome{ID: s.ID, Action: s.Action})
		}
	}
	return done, nil
}

func TestSettle(t *testing.T) {
	files := fstest.MapFS{"all.yaml": {Data: []byte(`
apiVersion: pkg.crossplane.io/v1
kind: Provider
metadata: {name: toy}
spec: {package: registry.example.org/toy:v1}
---
apiVersion: toy.example.org/v1
kind: ProviderConfig
metadata: {name: config}
`)}}
	cases := map[string]struct {
		reason  string
		place   beside
		applied []string
		exit    int
		says    string        // part of the status, or of the config's error
		atMost  time.Duration // maximum duration
	}{
		"InOnePass": {
			reason: "A waiting object is applied as soon as possible.",
			place:  beside{healthy: 20 * time.Second, served: 20 * time.Second}, applied: []string{"toy", "config"},
			says: "2 objects", atMost: 30 * time.Second,
		},
		"ServedAMomentLater": {
			reason: "The API server serves a kind some time after its package is healthy.",
			place:  beside{healthy: 20 * time.Second, served: 25 * time.Second}, applied: []string{"toy", "config"},
			says: "2 objects", atMost: 40 * time.Second,
		},
		"SomebodyWasFaster": {
			reason: "A pass must not give up because another process changed the inventory.",
			place:  beside{healthy: time.Second, served: time.Second, moved: 3}, applied: []string{"toy", "config"},
			says: "2 objects", atMost: 30 * time.Second,
		},
		"NeverServed": {
			reason: "A healthy package that does not have the kind will never provide it.",
			place:  beside{healthy: 20 * time.Second}, applied: []string{"toy"},
			exit: report.ExitFailed, says: "no API serves the kind ProviderConfig.toy.example.org, and nothing in this commit brings it", atMost: 40 * time.Second,
		},
		"NeverHealthy": {
			reason: "An object whose kind does not appear in time has failed.",
			place:  beside{}, applied: []string{"toy"},
			exit: report.ExitFailed, says: "not sent: after 5m0s it still waits for the Provider toy", atMost: 5*time.Minute + time.Second,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				place := tc.place
				place.began = time.Now()
				r := Reconciler{Observer: &place, Applier: &place, Options: render.Options{Owner: render.OwnerCrossplane}}
				task := Task{Render: func(ctx context.Context) (render.Desired, error) {
					return r.render(ctx, render.Input{Files: files, Revision: "a"})
				}}
				result, pass, err := r.Carry(t.Context(), task)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tc.applied, place.applied); diff != "" {
					t.Errorf("%s\napplied (-want +got):\n%s", tc.reason, diff)
				}
				words := result.Verdict.Activation.Description
				for _, s := range result.Steps {
					words += "\n" + s.Error
				}
				if result.Verdict.ExitCode != tc.exit || !strings.Contains(words, tc.says) {
					t.Errorf("%s\nexit code %d, want %d; %q is not in %q", tc.reason, result.Verdict.ExitCode, tc.exit, tc.says, words)
				}
				if took := time.Since(place.began); took > tc.atMost {
					t.Errorf("%s\nit took %s", tc.reason, took)
				}
				if tc.place.healthy > 0 {
					return
				}
				again := time.Now()
				task.Waits = pass.Waits
				if _, _, err := r.Carry(t.Context(), task); err != nil || time.Since(again) > time.Second {
					t.Errorf("what is late is not waited for in every pass: %s, %v", time.Since(again), err)
				}
			})
		})
	}
}

// A mover is a cluster in which another process changes the inventory while a pass writes.
type mover struct {
	there  map[string]bool // what was written
	sent   map[string]int  // how often
	moves  int             // number of applies that end because of a changed inventory
	broken int             // which observation fails; 0 for none
	looks  int
}

var errGone = errors.New("the API server is gone")

func (m *mover) Observe(_ context.Context, want render.Desired) (facts.Observed, error) {
	m.looks++
	if m.looks == m.broken {
		return facts.Observed{}, errGone
	}
	seen := facts.Observed{
		Ground: facts.Ground{
			Kinds:     map[schema.GroupKind]plan.Kind{{Kind: "ConfigMap"}: {Version: "v1", Resource: "configmaps", Namespaced: true}},
			Inventory: inventory.Inventory{Entries: map[manifest.ID]inventory.Entry{}},
		},
		Live: facts.Live{Objects: map[manifest.ID]*metav1.PartialObjectMetadata{}},
	}
	for name := range m.there {
		id := manifest.ID{Kind: "ConfigMap", Namespace: "default", Name: name}
		seen.Objects[id] = &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID(name)}}
		seen.Trials = map[manifest.ID]facts.Trial{}
	}
	return demand.Ask(seen, want)
}

func (m *mover) Answer(context.Context, []question.Any) (question.Answers, error) {
	return nil, nil
}

func (m *mover) Apply(_ context.Context, p plan.Plan) ([]plan.Outcome, error) {
	var done []plan.Outcome
	for _, s := range p.Steps {
		if s.Writes() && len(done) < 2 { // the apply does not reach the other steps
			m.there[s.ID.Name] = true
			m.sent[s.ID.Name]++
			done = append(done, plan.Outcome{ID: s.ID, Action: s.Action})
		}
	}
	if m.moves--; m.moves >= 0 {
		return done, reason.ErrMoved
	}
	return done, nil
}

// A pass reports everything that it wrote, however often the inventory changed in the meantime.
func TestNoOutcomeIsLost(t *testing.T) {
	files := fstest.MapFS{}
	for _, name := range []string{"a", "b", "c", "d"} {
		files[name+".yaml"] = &fstest.MapFile{Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + ", namespace: default}\n")}
	}
	cases := map[string]struct {
		reason        string
		moves, broken int
		created       int
		fails         bool
	}{
		"OnceMoved":  {"The second attempt finds the objects that the first one created.", 1, 0, 4, false},
		"AlwaysLate": {"The number of attempts is limited, and the last result is reported.", 3, 0, 4, true},
		"Unplanned":  {"The API server becomes unreachable before the second attempt.", 1, 2, 2, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m := &mover{there: map[string]bool{}, sent: map[string]int{}, moves: tc.moves, broken: tc.broken}
			r := Reconciler{Source: commits{"": files}, Observer: m, Applier: m, NoWait: true}
			result, err := r.Run(t.Context(), "")
			if (err != nil) != tc.fails || tc.fails && result.Verdict.ExitCode == report.ExitSuccess {
				t.Errorf("%s\nerror %v, exit code %d", tc.reason, err, result.Verdict.ExitCode)
			}
			if result.Summary.Created != tc.created {
				t.Errorf("%s\n%d created, want %d: %+v", tc.reason, result.Summary.Created, tc.created, result.Summary)
			}
			for name, n := range m.sent {
				if n != 1 {
					t.Errorf("%s was sent %d times", name, n)
				}
			}
		})
	}
}

// An ender is a cluster that becomes unreachable after the first tier of a destroy.
type ender struct {
	applied bool
	looks   int
	lasts   int // number of observations that still succeed
}

func (e *ender) Observe(_ context.Context, want render.Desired) (facts.Observed, error) {
	if e.looks++; e.applied && e.looks > e.lasts {
		return facts.Observed{}, errGone
	}
	s := inventory.Sync{Namespace: "ns", Name: "prod"}
	seen := facts.Observed{
		Ground: facts.Ground{
			Kinds: map[schema.GroupKind]plan.Kind{
				{Kind: "ConfigMap"}: {Version: "v1", Resource: "configmaps", Namespaced: true}, {Kind: "Namespace"}: {Version: "v1", Resource: "namespaces"},
			},
			Inventory: inventory.Inventory{Sync: s, ResourceVersion: "1", Entries: map[manifest.ID]inventory.Entry{}},
		},
		Live:    facts.Live{Objects: map[manifest.ID]*metav1.PartialObjectMetadata{}},
		Answers: question.Answers{question.Inside{Of: manifest.ID{Kind: "Namespace", Name: "team"}}: question.Counted{}},
	}
	for _, id := range []manifest.ID{{Kind: "ConfigMap", Namespace: "team", Name: "a"}, {Kind: "Namespace", Name: "team"}} {
		seen.Inventory.Entries[id] = inventory.Entry{UID: types.UID(id.Name)}
		seen.Objects[id] = &metav1.PartialObjectMetadata{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: id.Kind},
			ObjectMeta: metav1.ObjectMeta{
				Name: id.Name, Namespace: id.Namespace, UID: types.UID(id.Name),
				Labels: map[string]string{inventory.SyncLabel: s.Key()}, Annotations: map[string]string{inventory.InventoryAnnotation: s.Key()},
			},
		}
	}
	return demand.Ask(seen, want)
}

func (e *ender) Answer(context.Context, []question.Any) (question.Answers, error) {
	return nil, nil
}

func (e *ender) Apply(_ context.Context, p plan.Plan) ([]plan.Outcome, error) {
	var done []plan.Outcome
	for _, s := range p.Steps {
		if s.Writes() {
			done = append(done, plan.Outcome{ID: s.ID, Action: s.Action})
		}
	}
	e.applied = true
	return done, nil
}

// A destroy that loses the cluster at any time must not report objects as deleted that it never reached.
func TestDestroyReportsWhatItReached(t *testing.T) {
	for name, tc := range map[string]struct {
		cluster ender
		timeout time.Duration
		pruned  int
	}{
		"AfterATier":   {ender{}, time.Minute, 1},
		"AfterWaiting": {ender{lasts: 2}, time.Nanosecond, 0}, // the deleted objects still exist, and then the cluster is unreachable
	} {
		e := &tc.cluster
		result, err := Reconciler{Observer: e, Applier: e, Sync: inventory.Sync{Namespace: "ns", Name: "prod"}, Timeout: tc.timeout}.Destroy(t.Context(), plan.Destroying)
		if !errors.Is(err, errGone) || result.Verdict.ExitCode == report.ExitSuccess {
			t.Errorf("%s: error %v, exit code %d", name, err, result.Verdict.ExitCode)
		}
		if result.Summary.Pruned != tc.pruned {
			t.Errorf("%s: want %d of 2 reported as pruned, got %+v", name, tc.pruned, result.Summary)
		}
	}
}
