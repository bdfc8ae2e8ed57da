package cluster_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/fstest"

	"headgate.dev/headgate/reconcile/cluster"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/reconcile/report"
	"headgate.dev/headgate/render"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A place is a Source of one file from one location.
type place struct {
	id   render.SourceID
	text string
}

func (p place) Fetch(context.Context, string) (render.Input, error) {
	return render.Input{Revision: p.id.Commit, Source: p.id, Files: fstest.MapFS{"all.yaml": {Data: []byte(p.text)}}}, nil
}

// A pass of another source writes nothing, because the two sources would prune each other's objects.
func TestOtherSourceWritesNothing(t *testing.T) {
	w := newWorld(t)
	w.made(t, namespace(w.sync.Namespace))
	of := func(name string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + ", namespace: " + w.sync.Namespace + "}\n"
	}
	a := place{render.SourceID{Repository: "example.org/a", Commit: strings.Repeat("a", 40)}, of("a")}
	b := place{render.SourceID{Repository: "example.org/b", Commit: strings.Repeat("b", 40)}, of("b")}
	pass := func(from place) (report.Report, error) {
		t.Helper()
		c := w.cluster(t, cluster.Options{})
		r := reconcilerOf(c, w)
		r.Source, r.Recorder = from, c
		w.requests.Reset()
		return r.Run(t.Context(), "")
	}
	if _, err := pass(a); err != nil {
		t.Fatal(err)
	}
	before := w.inventory(t)
	for range 2 {
		result, err := pass(b)
		var refusal *reason.SourceError
		if !errors.As(err, &refusal) || refusal.Recorded != "example.org/a" || refusal.Found != "example.org/b" || result.Verdict.ExitCode != 1 {
			t.Fatalf("want a refusal that names both, and exit code 1, got %d, %v", result.Verdict.ExitCode, err)
		}
	}
	if n := w.requests.Writes(); n != 0 {
		t.Errorf("The second time, there is nothing to remember, either: %v", w.requests.Log())
	}
	after := w.inventory(t)
	if recorded(t, before)["source"] == nil || before.GetAnnotations()["headgate.dev/inventory"] != after.GetAnnotations()["headgate.dev/inventory"] {
		t.Errorf("The record stays as it was: %v", after.GetAnnotations())
	}
	if _, err := w.at(configMaps, w.sync.Namespace).Get(t.Context(), "b", metav1.GetOptions{}); err == nil {
		t.Error("b was made")
	}
	if result, err := pass(a); err != nil || result.Summary.Pruned+result.Summary.Created > 0 {
		t.Errorf("a goes on as before: %+v, %v", result.Summary, err)
	}

	// A mirror contains the commit that was applied last. From then on, it is the source of the sync.
	mirror := a
	mirror.id.Repository, mirror.id.Commit = "mirror.example.org/a", strings.Repeat("c", 40)
	mirror.id.Contains = func(commit string) (bool, error) { return commit == a.id.Commit, nil }
	if result, err := pass(mirror); err != nil || result.Summary.Updated+result.Summary.Created > 0 {
		t.Errorf("%+v, %v", result.Summary, err)
	}
	if _, err := pass(a); err == nil {
		t.Error("a does not know the commit of the mirror")
	}
}
