package controller

import (
	"testing"

	"headgate.dev/headgate/reconcile/api/v1alpha1"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Sync waits until its dependency has applied the commit, or holds nothing, either.
func TestLacks(t *testing.T) {
	condition := func(name string) []metav1.Condition {
		return []metav1.Condition{{Type: name, Status: metav1.ConditionTrue}}
	}
	ready := condition(v1alpha1.ConditionReady)
	for name, tc := range map[string]struct {
		until v1alpha1.Until
		repo  string
		of    v1alpha1.Status
		want  string
	}{
		"New":           {"", "other", v1alpha1.Status{}, "is not observed yet"},
		"NotApplied":    {"", "other", v1alpha1.Status{ObservedGeneration: 2, LastAttemptedRevision: "a"}, "is not applied"},
		"Failed":        {"", "other", v1alpha1.Status{ObservedGeneration: 2, LastAttemptedRevision: "b", LastAppliedRevision: "a"}, "is not applied"},
		"Stalled":       {"", "other", v1alpha1.Status{ObservedGeneration: 2, LastAttemptedRevision: "a", LastAppliedRevision: "a", Conditions: condition(v1alpha1.ConditionStalled)}, "is stalled"},
		"Applied":       {"", "other", v1alpha1.Status{ObservedGeneration: 2, LastAttemptedRevision: "a", LastAppliedRevision: "a"}, ""},
		"OldSpec":       {"", "other", v1alpha1.Status{ObservedGeneration: 1, LastAttemptedRevision: "a", LastAppliedRevision: "a"}, "is not observed yet"},
		"OldCommit":     {"", "same", v1alpha1.Status{ObservedGeneration: 2, LastAttemptedRevision: "a", LastAppliedRevision: "a"}, "has not applied new"},
		"SameCommit":    {"", "same", v1alpha1.Status{ObservedGeneration: 2, LastAttemptedRevision: "new", LastAppliedRevision: "new"}, ""},
		"Held":          {v1alpha1.UntilApplied, "other", v1alpha1.Status{ObservedGeneration: 2, LastAttemptedRevision: "a", LastAppliedRevision: "a", Conditions: condition(v1alpha1.ConditionHeld)}, ""},
		"HeldAndReady":  {v1alpha1.UntilReady, "other", v1alpha1.Status{ObservedGeneration: 2, LastAttemptedRevision: "a", LastAppliedRevision: "a", Conditions: append(condition(v1alpha1.ConditionHeld), ready...)}, "is not ready"},
		"Ready":         {v1alpha1.UntilReady, "other", v1alpha1.Status{ObservedGeneration: 2, LastAttemptedRevision: "a", LastAppliedRevision: "a", Conditions: ready}, ""},
		"NotReady":      {v1alpha1.UntilReady, "other", v1alpha1.Status{ObservedGeneration: 2, LastAttemptedRevision: "a", LastAppliedRevision: "a"}, "is not ready"},
		"NotReadyFirst": {v1alpha1.UntilReady, "same", v1alpha1.Status{ObservedGeneration: 2, LastAttemptedRevision: "a", LastAppliedRevision: "a"}, "has not applied new"},
	} {
		s, other := v1alpha1.Sync{}, &v1alpha1.Sync{Status: tc.of}
		s.Spec.Source.Repo, other.Spec.Source.Repo, other.Generation = "same", tc.repo, 2
		if got := lacks(s, v1alpha1.Dependency{Name: "other", Until: tc.until}, other, "new"); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// Two Syncs with sources of Flux have no repository. If these counted as the same, one would wait for ever for a commit of another source.
func TestSyncsOfDifferentSourcesHaveDifferentCommits(t *testing.T) {
	from := func(namespace, name string) v1alpha1.Sync {
		s := v1alpha1.Sync{ObjectMeta: metav1.ObjectMeta{Namespace: "team"}}
		s.Spec.Source.SourceRef = &v1alpha1.SourceRef{Kind: "GitRepository", Namespace: namespace, Name: name}
		return s
	}
	if originOf(from("", "a")) == originOf(from("", "b")) || originOf(from("", "a")) == originOf(from("other", "a")) {
		t.Error("different sources have the same commits")
	}
	if originOf(from("", "a")) != originOf(from("team", "a")) {
		t.Error("one source has different commits")
	}
}
