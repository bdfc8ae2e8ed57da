package target

import (
	"errors"
	"slices"
	"testing"

	"headgate.dev/headgate/reconcile"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A source of Flux may have an artifact and still be in trouble: nothing newer comes.
func TestProblemOf(t *testing.T) {
	ready := func(status string) map[string]any {
		return map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": status, "message": "authentication failed"}}}
	}
	for name, tc := range map[string]struct {
		spec, status map[string]any
		want         string
	}{
		"Ready":       {nil, ready("True"), ""},
		"Fetching":    {nil, ready("Unknown"), ""},
		"NoCondition": {nil, nil, ""}, // an ExternalArtifact needs none
		"Failed":      {nil, ready("False"), "authentication failed"},
		"Suspended":   {map[string]any{"suspend": true}, ready("True"), "it is suspended in Flux: 'flux resume' lets it fetch again"},
	} {
		got := problemOf(&unstructured.Unstructured{Object: map[string]any{"spec": tc.spec, "status": tc.status}})
		if is := got != nil; is != (tc.want != "") || is && got.Error() != tc.want {
			t.Errorf("%s: problemOf() = %v, want %q", name, got, tc.want)
		}
	}
}

// A Sync that reads the same branch itself must wait for this one, and nobody waits for another branch.
func TestFollowedBy(t *testing.T) {
	for name, tc := range map[string]struct {
		ref        map[string]any
		repository string
		branch     string
	}{
		"Default": {nil, "git.example.org/platform", "master"},
		"Branch":  {map[string]any{"branch": "main"}, "git.example.org/platform", "main"},
		"Name":    {map[string]any{"branch": "main", "name": "refs/heads/prod"}, "git.example.org/platform", "refs/heads/prod"},
		"Tag":     {map[string]any{"branch": "main", "tag": "v1"}, "git.example.org/platform", "v1"},
		"Range":   {map[string]any{"tag": "v1", "semver": ">=1"}, "git.example.org/platform", "semver:>=1"},
		"Commit":  {map[string]any{"branch": "main", "commit": "0123abc"}, "git.example.org/platform", "0123abc"},
	} {
		spec := map[string]any{"url": "ssh://git@git.example.org/Platform.git"}
		if tc.ref != nil {
			spec["ref"] = tc.ref
		}
		repository, branch := followedBy(&unstructured.Unstructured{Object: map[string]any{"spec": spec}})
		if repository != tc.repository || branch != tc.branch {
			t.Errorf("%s: followedBy() = %s, %s", name, repository, branch)
		}
	}
}

// Only changes are told, and the first state: an earlier run of the Sync may have told another one.
func TestSourceStates(t *testing.T) {
	var told []string
	s := sourceStates{event: func(e reconcile.Event) {
		if e.Err == nil {
			told = append(told, "ready")
			return
		}
		told = append(told, e.Err.Error())
	}}
	for _, problem := range []error{nil, nil, errors.New("a"), errors.New("a"), errors.New("b"), nil} {
		s.tell(problem)
	}
	if want := []string{"ready", "a", "b", "ready"}; !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
}
