package reconcile

import (
	"context"
	"slices"
	"testing"
	"testing/fstest"

	"headgate.dev/headgate/reconcile/demand"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/question"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A stale is a cluster with an object that cannot be applied before its managed fields are migrated.
type stale struct {
	migrated bool
	fails    bool // the migration does
	applied  []string
}

func (s *stale) Observe(_ context.Context, want render.Desired) (facts.Observed, error) {
	id := manifest.ID{Kind: "ConfigMap", Name: "a", Namespace: "default"}
	live := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a", "namespace": "default"}}}
	after := live.DeepCopy()
	after.Object["data"] = map[string]any{"size": "2"}
	trial := facts.Trial{Live: live, After: after}
	if !s.migrated {
		trial = facts.Trial{Live: live, After: live, Migrates: []string{"v1beta1"}}
	}
	return demand.Ask(facts.Observed{
		Ground: facts.Ground{
			Kinds:     map[schema.GroupKind]plan.Kind{{Kind: "ConfigMap"}: {Version: "v1", Resource: "configmaps", Namespaced: true}},
			Inventory: inventory.Inventory{Entries: map[manifest.ID]inventory.Entry{}},
		},
		Live: facts.Live{
			Objects: map[manifest.ID]*metav1.PartialObjectMetadata{id: {ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "default"}}},
			Trials:  map[manifest.ID]facts.Trial{id: trial},
		},
	}, want)
}

func (s *stale) Answer(context.Context, []question.Any) (question.Answers, error) {
	return nil, nil
}

func (s *stale) Apply(_ context.Context, p plan.Plan) ([]plan.Outcome, error) {
	var done []plan.Outcome
	for _, step := range p.Steps {
		o := plan.Outcome{ID: step.ID, Action: step.Action, Did: step.Do()}
		switch {
		case o.Did == plan.DoMigrate && s.fails:
			o.Err = errBoom
			s.applied = append(s.applied, "failed")
		case o.Did == plan.DoMigrate:
			s.migrated = true
			s.applied = append(s.applied, "migrated")
		default:
			s.applied = append(s.applied, "applied")
		}
		done = append(done, o)
	}
	return done, nil
}

// An object that needs a migration is applied in the same pass. If the migration fails, only that object fails.
func TestMigrate(t *testing.T) {
	files := fstest.MapFS{"a.yaml": {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: default}\ndata: {size: '2'}\n")}}
	for name, tc := range map[string]struct {
		place stale
		want  []string
		exit  int
		noted bool
	}{
		"Migrated": {want: []string{"migrated", "applied"}, noted: true},
		"Failed":   {place: stale{fails: true}, want: []string{"failed", "failed"}, exit: 1},
	} {
		t.Run(name, func(t *testing.T) {
			r := Reconciler{Observer: &tc.place, Applier: &tc.place, Options: render.Options{Owner: render.OwnerHeadgate}, NoWait: true}
			result, _, err := r.Carry(t.Context(), Task{Render: func(ctx context.Context) (render.Desired, error) {
				return r.render(ctx, render.Input{Files: files, Revision: "a"})
			}})
			if err != nil || !slices.Equal(tc.place.applied, tc.want) || result.Verdict.ExitCode != tc.exit {
				t.Errorf("it did %v, exit code %d, %v; want %v, %d", tc.place.applied, result.Verdict.ExitCode, err, tc.want, tc.exit)
			}
			noted := slices.ContainsFunc(result.Findings, func(f manifest.Finding) bool { return f.Rule == "managed-fields-migrated" })
			if noted != tc.noted {
				t.Errorf("findings: %v", result.Findings)
			}
		})
	}
}
